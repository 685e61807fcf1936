"""`wdtrain league`: who plays whom, how results are counted, what the ratings are, by the library choix, and the page."""

import collections
import json
import os
import pathlib
import shutil

import choix
import numpy as np
import pytest

from cli.program import output, wdtrain

CONNECT4 = pathlib.Path(os.environ["WD_SOURCE_DIR"]) / "examples/connect4/connect4.cu"
# Of one step. `seat`: the first agent wins whatever anybody does; else each is paid what it chose, and a little more.
DUEL = """
#include <wd/env.h>

struct Duel {
  struct Params {
    int agents = 2;
    bool seat = false;
    void describe(auto&& field) {
      field("agents", agents, {1, 4}, "each has its role");
      field("seat", seat, "the first agent wins");
    }
  };
  struct State {
    wd::PerAgent<int> moved;
    void describe(auto&& field) { field("moved", moved); }
  };
  static wd::Spec spec(const Params& p) {
    std::vector<wd::Role> roles;
    for (int k = 0; k < p.agents; ++k)
      roles.push_back({.name = std::string(1, "abcd"[k]), .count = 1, .observation = {{"one"}}, .action = wd::ActionSpace::discrete({2})});
    return {.roles = roles, .time_limit = 1, .at_time_limit = wd::AtTimeLimit::kTerminates};
  }
  WD_FN static void reset(auto& team, const Params& p, State& s, wd::Random) {
    team.each(p.agents, [&](int i) { s.moved[i] = 0; });
  }
  WD_FN static void step(auto& team, const Params& p, State& s, wd::Actions actions, wd::Random, wd::Outcome& out) {
    team.each(p.agents, [&](int i) {
      s.moved[i] = 1;
      out.reward(i) = p.seat ? (i == 0 ? 1.0f : -1.0f) : 0.5f + actions.discrete(i, 0);
    });
  }
  WD_FN static void observe(auto& team, const Params& p, const State&, wd::Observations obs) {
    team.each(p.agents, [&](int i) { obs(i, 0) = 1.0f; });
  }
  static void scripted(const Params&, const State&, int, wd::ScriptedAction& action) { action.discrete(0, 1); }
};
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """runs/four of Connect Four, and runs/duel, which learned for a moment."""
    folder = tmp_path_factory.mktemp("league")
    (folder / "duel.cu").write_text(DUEL)
    train = ["--device", "cpu", "--quiet"]
    output("train", CONNECT4, *train, "--total_steps", 81920, "--run_dir", "runs/four", "--set", "policy.shared.average=0.9", cwd=folder)
    for name, roles in {"duel": "[a, b]", "alone": "[a]", "crowd": "[a, b, c, d]"}.items():
        output("train", "duel.cu", *train, "--total_steps", 2000, "--num_envs", 50, "--train_batch_size", 500, "--run_dir", f"runs/{name}",
               "--set", f"env.agents={roles.count(',') + 1}", "--set", f"policy={{shared: {{roles: {roles}, algorithm: PPO, model: {{fc_dims: [8]}}}}}}", cwd=folder)
    return folder


def league(place, *words):
    return json.loads(output("league", "--json", "--device", "cpu", *words, cwd=place))


def pairs_of(result):
    return {(pair["player"], pair["other"]): tuple(pair[key] for key in ("wins", "draws", "losses")) for pair in result["pairs"]}


def rating_of(result):
    return {player["name"]: player["rating"] for player in result["players"]}


def check_counts(result, players, games):
    """Each pair once in both orders, all games of each; and the sums of each player."""
    pairs = pairs_of(result)
    assert set(pairs) == {(a, b) for a in players for b in players if a != b} and len(result["pairs"]) == len(pairs)
    assert all(sum(counts) == games and pairs[b, a] == counts[::-1] for (a, b), counts in pairs.items())
    assert {player["name"] for player in result["players"]} == set(players)
    for player in result["players"]:
        wins, draws, losses = np.sum([pairs[player["name"], other] for other in players if other != player["name"]], axis=0)
        assert (player["wins"], player["draws"], player["losses"], player["games"]) == (wins, draws, losses, wins + draws + losses)
        assert player["score"] == pytest.approx((wins + draws / 2) / player["games"])
    ratings = [player["rating"] for player in result["players"]]
    assert ratings == sorted(ratings, reverse=True) and sum(ratings) == pytest.approx(0, abs=1e-9)


def by_choix(result):
    """Ratings by the library: a win is two comparisons, a draw one each way, and the prior counts twice as well."""
    names = [player["name"] for player in result["players"]]
    data = [(names.index(a), names.index(b)) for (a, b), (wins, draws, _) in pairs_of(result).items() for _ in range(2 * wins + draws)]
    found = choix.opt_pairwise(len(names), data, alpha=1 / 4.6**2, tol=1e-12)
    return dict(zip(names, found - found.mean()))


@pytest.fixture(scope="module")
def three(place):
    return league(place, "runs/four", "random", "scripted", "--games", 60)


def test_all_pairs_play_and_results_are_those_of_the_players(place, three):
    check_counts(three, ["runs/four", "random", "scripted"], 60)
    assert three["by_game"] and not three["repeats"] and three["games"] == 60
    assert [player["name"] for player in three["players"]] == ["scripted", "runs/four", "random"]
    pairs = pairs_of(three)
    assert pairs["scripted", "random"][0] >= 57 and pairs["scripted", "runs/four"][0] >= 45 and pairs["runs/four", "random"][0] >= 36
    # Whatever their order, the games are the same.
    other = league(place, "scripted", "random", "runs/four", "--games", 60)
    assert pairs_of(other) == pairs and rating_of(other) == pytest.approx(rating_of(three))
    assert pairs_of(league(place, "runs/four", "scripted", "--games", 60)).items() <= pairs.items()


def test_results_are_those_of_eval(place, three):
    means = []
    for seated in ("first=random", "second=random"):
        result = json.loads(output("eval", "runs/four", "--policy", seated, "--episodes", 30, "--json", "--device", "cpu", cwd=place))
        means.append(result["returns"]["second" if seated.startswith("first") else "first"]["mean"])
    wins, _, losses = pairs_of(three)["runs/four", "random"]
    assert wins - losses == pytest.approx(30 * sum(means))


def test_ratings_are_those_of_choix(place, three):
    # Where there are no seats, to the last digits.
    duel = league(place, "runs/duel", "random", "scripted", "--games", 200)
    check_counts(duel, ["runs/duel", "random", "scripted"], 100)
    assert not duel["by_game"] and "first_seat" not in duel and "seats changed" in duel["note"]
    assert sum(pair["draws"] for pair in duel["pairs"]) > 40 and pairs_of(duel)["scripted", "random"][2] == 0
    assert rating_of(duel) == pytest.approx(by_choix(duel), abs=1e-5)
    # The seat, which choix does not know, moves ratings apart by a few percent at most.
    assert rating_of(three) == pytest.approx(by_choix(three), rel=0.1, abs=0.05)


def test_a_policy_and_its_copy_are_equal(place):
    shutil.copytree(place / "runs/four", place / "runs/copy", dirs_exist_ok=True)
    result = league(place, "runs/four", "runs/copy", "--games", 200)
    check_counts(result, ["runs/four", "runs/copy"], 200)
    for player in result["players"]:
        assert player["low"] <= 0 <= player["high"] and player["elo_high"] - player["elo_low"] < 150
        assert player["elo_high"] == pytest.approx(player["high"] * 400 / np.log(10))


def test_seats_are_balanced(place):
    """Where the seat decides, every pair has won half of its games."""
    result = league(place, "runs/duel", "random", "scripted", "--games", 40, "--set", "env.seat=true")
    check_counts(result, ["runs/duel", "random", "scripted"], 40)
    assert set(pairs_of(result).values()) == {(20, 0, 20)} and result["by_game"] and not result["repeats"]
    assert all(rating == pytest.approx(0, abs=1e-6) for rating in rating_of(result).values())
    assert result["first_seat"]["low"] > 2
    assert f"To begin is worth {round(result['first_seat']['elo'])} Elo [" in result["note"]


def test_draws_are_halves(place):
    result = league(place, "runs/duel", "scripted", "--greedy", "--games", 40)
    assert pairs_of(result) == {("runs/duel", "scripted"): (0, 20, 0), ("scripted", "runs/duel"): (0, 20, 0)}
    for player in result["players"]:
        assert player["score"] == 0.5 and player["rating"] == pytest.approx(0, abs=1e-9) and -2 < player["low"] < 0 < player["high"] < 2


def test_checkpoints_and_averages_are_members(place):
    members = ["runs/four:shared", "runs/four:shared.average", "runs/four/checkpoints/latest", "random"]
    result = league(place, *members, "--games", 20)
    check_counts(result, members, 20)
    # The newest checkpoint is the run, and the average is not.
    pairs = pairs_of(result)
    assert pairs["runs/four:shared", "random"] == pairs["runs/four/checkpoints/latest", "random"] != pairs["runs/four:shared.average", "random"]
    assert rating_of(result)["random"] < rating_of(result)["runs/four:shared"]


def test_players_who_draw_nothing_repeat_their_games(place):
    words = ["runs/four", "scripted", "random", "--games", 20, "--greedy"]
    result = league(place, *words, "--set", "env.random_plies=0")
    assert result["repeats"] and result["greedy"] and "one and the same game" in result["note"]
    assert not league(place, *words, "--set", "env.random_plies=8")["repeats"]
    assert not league(place, *words[:-1], "--set", "env.random_plies=0")["repeats"]


def test_the_same_seed_plays_the_same_games(place):
    words = ["runs/four", "random", "--games", 40]
    first, again, other = (league(place, *words, "--seed", seed) for seed in (1, 1, 2))
    assert first == again and pairs_of(first) != pairs_of(other)


def test_the_table(place, tmp_path):
    text = output("league", "runs/duel", "scripted", "random", "--games", 20, "--device", "cpu", "--out", tmp_path / "a.html", cwd=place)
    head, *rows = text.splitlines()
    assert head.split("  ")[0] == "" and all(word in head for word in ("PLAYER", "ELO", "95 % INTERVAL", "WON", "DRAWN", "LOST", "VS 1", "VS 3"))
    assert rows[0].split()[:2] == ["1", "scripted"] and len({len(row.rstrip()) for row in rows[:1]}) == 1
    assert text.endswith("a.html: open it in a browser\n") and (tmp_path / "a.html").exists()
    assert "Ratings are relative to the mean of these players" in text


def test_json_writes_no_page_that_is_not_named(place, tmp_path):
    words = ["league", place / "runs/duel", "random", "--games", 2, "--json", "--device", "cpu"]
    json.loads(output(*words, cwd=tmp_path))
    assert list(tmp_path.iterdir()) == []
    json.loads(output(*words, "--out", "a.html", cwd=tmp_path))
    assert [file.name for file in tmp_path.iterdir()] == ["a.html"]


@pytest.mark.parametrize("words, said", [
    (["runs/four"], "two players at least"),
    ([], "two players at least"),
    (["random", "scripted"], "one of them a run or a checkpoint"),
    (["runs/four", "random", "--games", "5"], "--games 5: must be even"),
    (["runs/four", "random", "runs/four"], "runs/four is named twice"),
    (["runs/four", "self"], "league self: name a run, a checkpoint, random or scripted"),
    (["runs/four", "pool"], "league pool: name a run, a checkpoint, random or scripted"),
    (["average", "runs/four"], "league average: name a run, a checkpoint, random or scripted"),
    (["runs/four", "runs/duel"], "runs/duel: is a run of"),
    (["runs/four", "runs"], "runs"),
    (["runs/four", "runs/fuor"], "runs/fuor: is none of"),
    (["runs/nothing", "random"], "runs/nothing"),
    (["runs/four:other", "random"], "other"),
    (["runs/duel:shared.average", "random"], "has no average of the weights"),
    (["runs/alone", "random"], "needs a game with two sides, and duel has 1"),
    (["runs/crowd", "random"], "needs a game with two sides, and duel has 4"),
    (["runs/four", "random", "--out", "page.txt"], "--out page.txt: must end in .html"),
    (["runs/four", "random", "--out", "none/page.html"], "none"),
    (["runs/four", "random", "--set", "trainer.num_envs=3"], "has no effect on an evaluation"),
], ids=lambda value: " ".join(value) if isinstance(value, list) else "")
def test_what_is_refused(place, words, said):
    done = wdtrain("league", *words, "--device", "cpu", *([] if "--games" in words else ["--games", 2]), cwd=place)
    assert done.returncode == 2 and said in done.stderr and done.stdout == "" and "terminate" not in done.stderr, done
    assert not (place / "league.html").exists()


def test_a_link_that_is_named_stays_one(place, tmp_path):
    (tmp_path / "page.html").touch()
    (tmp_path / "link.html").symlink_to("page.html")
    done = wdtrain("league", "runs/four", "random", "--games", 2, "--device", "cpu", "--out", tmp_path / "link.html", cwd=place)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "link.html").is_symlink() and "</html>" in (tmp_path / "page.html").read_text()


@pytest.mark.parametrize("width, dark", [(1280, False), (390, True)])
def test_the_page(place, browser, tmp_path, width, dark):
    strange = "runs/</script><b>"
    shutil.copytree(place / "runs/duel", place / strange, dirs_exist_ok=True)
    file = tmp_path / "league.html"
    result = league(place, "runs/duel", "random", strange, "scripted", "--games", 40, "--out", file)
    page = browser.new_context(viewport={"width": width, "height": 900}, color_scheme="dark" if dark else "light").new_page()
    troubles = []
    page.on("console", lambda message: troubles.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.on("request", lambda request: troubles.append(request.url) if request.url != file.as_uri() and not request.url.startswith("data:") else None)
    page.goto(file.as_uri())
    assert page.title() == "duel: a league of 4" and "40 games of each pair" in page.inner_text("#about")
    assert page.inner_text("#ratings-note") == result["note"].replace("\n", " ") and page.locator("b").count() == 0
    names = [player["name"] for player in result["players"]]
    assert page.evaluate("[...document.querySelectorAll('#ratings tr')].slice(1).map(row => row.cells[0].textContent)") == [f"{k + 1} {name}" for k, name in enumerate(names)]
    shown = page.evaluate("[...document.querySelectorAll('#matrix tr')].slice(1).map(row => [...row.cells].map(cell => cell.textContent))")
    pairs = pairs_of(result)
    for i, (head, *cells) in enumerate(shown):
        assert head == f"{i + 1} {names[i]}" and cells[i] == ""
        for j in range(4):
            if j != i:
                wins, draws, _ = pairs[names[i], names[j]]
                assert float(cells[j]) == pytest.approx(100 * (wins + draws / 2) / 20, abs=0.5001)
    shades = collections.Counter(page.evaluate("[...document.querySelectorAll('#matrix td')].map(cell => getComputedStyle(cell).backgroundColor)"))
    assert len(shades) > 2
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "the page itself does not scroll sideways"
    if folder := os.environ.get("WD_SCREENSHOTS"):
        page.screenshot(path=f"{folder}/league_{width}.png", full_page=True)
    assert troubles == []
