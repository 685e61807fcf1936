"""The page of `wdtrain play` in headless Chromium: light and dark, desktop and phone, by mouse and by keyboard,
without an error and without a request. It shows the numbers that the JSON has."""

import itertools
import json
import os
import pathlib
import re
import shutil
import subprocess

import numpy as np
import pytest

from cli.program import output, wdtrain
from play import cells


GAMES = {
    "tag_continuous": ["--set", "env.num_taggers=2", "--set", "env.num_runners=5", "--set", "env.episode_length=40", "--set",
                       "env.tagging_distance=0.1", "--num_envs", 8, "--train_batch_size", 160],
    "tag_gridworld": [], "simple_tag": [], "simple_spread": [], "foraging": [],
    "simple_adversary": [], "simple_reference": [], "simple_speaker_listener": [], "cartpole": [], "pendulum": [], "acrobot": [], "mountain_car": [],
    "continuous_mountain_car": ["--set", "env.episode_length=60"],
    "memory_chain": ["--set", "env.memory_length=10", "--num_envs", 8, "--train_batch_size", 352], "t_maze": [],
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    made = {}

    def run(game):
        if game not in made:
            made[game] = folder / game
            output("--env", game, "--device", "cpu", "--quiet", "--max_seconds", 1, "--run_dir", made[game], *GAMES[game])
            output("play", "--run", made[game], "--device", "cpu", "--episodes", 2)
            output("play", "--run", made[game], "--device", "cpu", "--episodes", 2, "--out", made[game] / "rollout.json")
        return made[game] / "rollout.html", json.loads((made[game] / "rollout.json").read_text())

    return run


@pytest.fixture
def opened(browser, runs):
    """Opens a page; afterwards there must have been no error and no request."""
    troubles = []

    def open_page(game, width=1280, height=900, dark=False, touch=False, out=None, arguments=(), moves=False):
        file, rollout = runs(game)
        if out:
            file = file.with_name(out)
            output("play", file.parent, "--device", "cpu", "--out", file, *arguments)
        context = browser.new_context(viewport={"width": width, "height": height}, color_scheme="dark" if dark else "light", has_touch=touch,
                                      reduced_motion="no-preference" if moves else "reduce")
        page = context.new_page()
        page.on("console", lambda message: troubles.append(message.text) if message.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("request", lambda request: troubles.append(request.url) if request.url != file.as_uri() and not request.url.startswith("data:") else None)
        page.goto(file.as_uri())
        page.wait_for_function("document.title !== 'rollout'")
        return page, rollout

    yield open_page
    assert troubles == []


def inked(page, canvas="world"):
    """Fraction of the canvas that is drawn on."""
    return page.evaluate("""id => { const c = document.getElementById(id), d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
        let n = 0; for (let i = 3; i < d.length; i += 4) n += d[i] > 0; return n / (d.length / 4); }""", canvas)


@pytest.mark.parametrize("game", GAMES)
@pytest.mark.parametrize("width, height, dark", [(1280, 900, False), (390, 844, True)])
def test_every_game_is_drawn_and_fits(opened, game, width, height, dark):
    page, _ = opened(game, width, height, dark)
    assert inked(page) > 0.001 and inked(page, "returns") > 0.001
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_numbers_are_those_of_the_json(opened):
    page, rollout = opened("tag_continuous")
    for index, episode in enumerate(rollout["episodes"]):
        page.evaluate("index => setEpisode(index)", index)
        for t in (0, episode["steps"] // 2, episode["steps"]):
            for name, frames in episode["state"].items():
                shown = page.evaluate("([name, t, n]) => Array.from({length: n}, (_, i) => episode.state[name](t, i))", [name, t, len(frames[t])])
                span = max(max(frame) for frame in frames) - min(min(frame) for frame in frames)
                assert shown == pytest.approx(frames[t], abs=span / 65535 + 1e-12), (name, t)
        for role in rollout["roles"]:
            data, name = episode["roles"][role["name"]], role["name"]
            for t in (0, episode["steps"] - 1):
                for series, tolerance in [("reward", 1e-4), ("action", 0), ("value", 1e-3), ("probability", 1 / 500)]:
                    flat = [x for entry in data[series][t] for x in (entry if isinstance(entry, list) else [entry])]
                    shown = page.evaluate("([role, series, t, n]) => Array.from({length: n}, (_, i) => episode.roles[role][series](t, i))",
                                          [name, series, t, len(flat)])
                    assert shown == pytest.approx(flat, abs=tolerance), (name, series, t)


def test_it_plays_to_the_end_and_stops(opened):
    page, rollout = opened("tag_continuous")
    page.evaluate("setSpeed(SPEEDS.length - 1)")
    page.click("#play")
    assert page.inner_text("#play") == "Pause"
    page.wait_for_function("document.getElementById('play').textContent === 'Play'", timeout=20000)
    steps = rollout["episodes"][0]["steps"]
    assert page.inner_text("#step") == f"step {steps} of {steps}"


def test_the_keyboard_is_enough(opened):
    page, rollout = opened("tag_continuous")
    step = lambda: page.inner_text("#step").split()[1]
    for key, expected in [("ArrowRight", "1"), ("Shift+ArrowRight", "11"), ("ArrowLeft", "10"), ("Home", "0")]:
        page.keyboard.press(key)
        assert step() == expected, key
    page.keyboard.press("]")
    page.keyboard.press("]")
    assert page.inner_text("#agent h2").startswith("tagger 1")
    page.keyboard.press("[")
    assert page.inner_text("#agent h2").startswith("tagger 0")
    assert page.locator("#agent .bars").count() == 2
    page.keyboard.press("e")
    assert page.input_value("#episode") == "1"
    page.keyboard.press("End")
    assert step() == str(rollout["episodes"][1]["steps"])
    page.keyboard.press("i")
    assert page.is_checked("#ids")
    page.keyboard.press(" ")
    assert page.inner_text("#play") == "Pause"
    reached = set()
    for _ in range(18):  # every control can be reached
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.id"))
    assert {"world", "scrub", "play", "back", "next", "speed", "episode", "beside", "trails", "ids", "loop", "panel", "full"} <= reached


def test_it_plays_by_itself_and_again_if_it_loops(opened):
    page, rollout = opened("simple_spread", moves=True)
    page.wait_for_function("frame > 1")
    page.keyboard.press("l")
    page.evaluate("setSpeed(SPEEDS.length - 1)")
    page.wait_for_function("frame >= lastFrame()")
    page.wait_for_function("playing && frame < lastFrame()")


def test_the_world_fills_the_window(opened):
    page, _ = opened("tag_continuous", 1280, 800)
    area = "[...document.querySelectorAll('.world')].reduce((sum, c) => sum + c.clientWidth * c.clientHeight, 0) / innerWidth / innerHeight"
    assert page.evaluate(area) >= 0.6 and page.evaluate("document.documentElement.scrollHeight") <= 800
    page.keyboard.press("p")
    assert page.evaluate(area) >= 0.8 and page.is_hidden("aside")
    page.keyboard.press("f")
    page.wait_for_function("document.fullscreenElement === $('stage')")
    page.keyboard.press("f")
    page.wait_for_function("document.fullscreenElement === null")


@pytest.mark.parametrize("width, height", [(1280, 800), (400, 800)])
def test_trained_beside_random(opened, width, height):
    page, rollout = opened("tag_continuous", width, height, out="beside.html", arguments=["--beside", "random", "--episodes", 2])
    assert page.evaluate("rollout.beside && rollout.episodes.map(e => e.players.tagger)") == ["trained", "trained", "random", "random"]
    first = page.evaluate("panes.map(pane => [pane.episode.players.runner, valueOf(pane.episode, shapes[0].x, 0, 3)])")
    assert [player for player, _ in first] == ["trained", "random"] and first[0][1] == pytest.approx(first[1][1], abs=1e-3), "the same start"
    assert inked(page) > 0.001 and inked(page, "world-2") > 0.001
    boxes = [page.locator(f"#{name}").bounding_box() for name in ("world", "world-2")]
    assert (boxes[0]["y"] == boxes[1]["y"]) == (width > 820) and boxes[0]["width"] == boxes[1]["width"]
    page.keyboard.press("e")  # its partner comes along
    assert page.evaluate("[$('episode').value, $('beside').value]") == ["1", "3"]
    page.keyboard.press("End")
    assert page.locator("figcaption").nth(1).inner_text().startswith("random: ")
    x, y = page.evaluate("panes[1].places.map(place => [place.x, place.y]).sort((a, b) => a[1] - b[1])[0]")  # a phone's controls are below
    page.mouse.click(boxes[1]["x"] + x, boxes[1]["y"] + y)
    assert "random" in page.inner_text("#agent h2"), "numbers are those of the world that was clicked"
    page.keyboard.press("b")
    assert page.evaluate("panes.length") == 1 and page.locator(".world").count() == 1


def test_the_page_of_many_agents_is_below_a_megabyte(opened, runs, tmp_path):
    output("--env", "tag_continuous", "--device", "cpu", "--quiet", "--total_steps", 1, "--run_dir", tmp_path / "run")
    output("play", tmp_path / "run", "--device", "cpu")
    page = tmp_path / "run" / "rollout.html"
    assert page.stat().st_size < 1e6
    assert json.loads(re.search(r'id="rollout">(.*?)</script>', page.read_text())[1])["episodes"][0]["roles"]["runner"]["probability"]["width"] % 42 == 0


# Machado et al. 2009: what people with dichromacy see of linear sRGB; and OKLab (Ottosson 2020), whose unit here is a hundredth.
SIGHTS = ["1 0 0 0 1 0 0 0 1", "0.152286 1.052583 -0.204868 0.114503 0.786281 0.099216 -0.003882 -0.048116 1.051998",
          "0.367322 0.860646 -0.227968 0.280085 0.672501 0.047413 -0.011820 0.042940 0.968881",
          "1.255528 -0.076749 -0.178779 -0.078411 0.930809 0.147602 0.004733 0.691367 0.303900"]
CONES = "0.4122214708 0.5363325363 0.0514459929 0.2119034982 0.6806995451 0.1073969566 0.0883024619 0.2817188376 0.6299787005"
LAB = "0.2104542553 0.7936177850 -0.0040720468 1.9779984951 -2.4285922050 0.4505937099 0.0259040371 0.7827717662 -0.8086757660"


def difference(one, other, sight):
    matrix = lambda text: np.array(text.split(), float).reshape(3, 3)
    linear = lambda color: ((np.array([int(color[i : i + 2], 16) for i in (1, 3, 5)]) / 255 + 0.055) / 1.055) ** 2.4
    seen = lambda color: matrix(LAB) @ np.cbrt(matrix(CONES) @ np.clip(matrix(sight) @ linear(color), 0, 1))
    return 100 * np.linalg.norm(seen(one) - seen(other))


def test_color_blind_people_tell_roles_apart(opened):
    page, _ = opened("cartpole")
    colors = page.evaluate("COLORS")
    assert min(difference(one, other, sight) for one, other in itertools.combinations(colors, 2) for sight in SIGHTS) >= 9
    assert difference("#cf222e", "#1a7f37", SIGHTS[2]) < 9, "a red and a green"
    movie = re.search(r"kRoles\[\] = (.*?);", (pathlib.Path(os.environ["WD_SOURCE_DIR"]) / "src/play/movie.cpp").read_text(), re.S)[1]
    assert ["#{:02x}{:02x}{:02x}".format(*map(int, color)) for color in re.findall(r"(\d+), +(\d+), +(\d+)", movie)] == colors
    report = (pathlib.Path(os.environ["WD_SOURCE_DIR"]) / "src/run_report/page.js").read_text()
    assert re.findall(r"'(#\w{6})'", re.search(r"const COLORS = (.*?);", report, re.S)[1]) == colors


@pytest.mark.parametrize("width", [320, 480])
def test_several_episodes_fit_a_phone(opened, width):
    page, _ = opened("simple_tag", width, 700, out="opponent.html", arguments=["--opponent", "scripted", "--episodes", 2])
    assert "against scripted" in page.inner_text("#episode option:checked")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.inner_text("#replica").startswith("adversaries in the game")


def test_a_box_shows_action_mean_and_deviation(opened):
    page, rollout = opened("pendulum")
    page.evaluate("go(0)")
    pendulum = rollout["episodes"][0]["roles"]["pendulum"]
    place = lambda name: 25 * (min(max(pendulum[name][0][0][0] if isinstance(pendulum[name][0][0], list) else pendulum[name][0][0], -2), 2) + 2)
    style = lambda name: page.locator(f"#agent .box .{name}").evaluate("e => [parseFloat(e.style.left), parseFloat(e.style.width)]")
    assert style("amount") == pytest.approx([min(50, place("action")), abs(place("action") - 50)], abs=0.11)
    assert style("mean")[0] == pytest.approx(place("mean"), abs=0.11)
    assert style("spread") == pytest.approx([place("below"), place("above") - place("below")], abs=0.11)
    assert "one standard deviation [" in page.inner_text("#agent") and page.is_hidden("#events-section")


def test_the_page_of_a_number_that_is_not_finite_says_so(browser, tmp_path):
    faulty = pathlib.Path(os.environ["WD_BUILD_DIR"]) / "faulty"
    subprocess.run([faulty, "--env", "faulty", "--set", "env.fault=overflow", "--run_dir", tmp_path / "run", "--num_envs", "12", "--device", "cpu", "-q",
                    "--train_batch_size", "84", "--total_steps", "1000000", "--set", "policy={player: {algorithm: A2C, normalize_value: false}}"],
                   capture_output=True, timeout=120)
    (file,) = (tmp_path / "run" / "rollouts").glob("failed_in_*.html")
    page = browser.new_page()
    page.goto(file.as_uri())
    page.wait_for_function("document.title !== 'rollout'")
    assert page.title() == "faulty: training failed, a number is not finite"
    assert re.search(r"observation inf in step \d+ of the rollout, replica \d+, agent 5, entry 3", page.inner_text("#failure"))
    assert page.evaluate("frame === episode.steps && selected.id === 5")
    assert page.inner_text("#agent tr.bad td").startswith("score") and page.inner_text("#agent tr.bad").endswith("Infinity")
    assert page.locator("#states tr.bad").count() == 1
    page.evaluate("go(0)")
    assert page.locator("#states tr.bad").count() == 0 and page.locator("#agent tr.bad").count() == 0


def test_agents_that_enter_and_leave_are_events(opened):
    page, _ = opened("tag_continuous")
    events = page.evaluate("""() => {
        const unpacked = unpack, runners = rollout.episodes[0].roles.runner.in_game;
        window.unpack = (bytes, series) => series === runners ? (f, i) => i !== 1 || (f >= 2 && f < 5) ? 1 : 0 : unpacked(bytes, series);
        return load(0).events.map(event => [event.f, event.text]);
    }""")
    assert [[f, text.split(" ", 1)[1].split(" ", 1)[1]] for f, text in events] == [[2, "enters the game"], [5, "leaves the game"]], events


def test_the_axis_of_a_chart_has_room_for_its_numbers(opened):
    page, _ = opened("pendulum")
    left, width, frames = page.evaluate("""() => {
        const canvas = $('returns'), box = canvas.getBoundingClientRect(), c = canvas.getContext('2d');
        chart(canvas, [{color: 'red', at: m => -1234567 * m, last: 1}], 0);
        c.font = '11px system-ui';
        const left = canvas.left, width = c.measureText('-1234567').width, click = x => (canvas.onclick({clientX: box.left + x}), frame);
        return [left, width, [left, left + 1, box.width - 4].map(x => (chart(canvas, [{color: 'red', at: m => -1234567 * m, last: 1}], 0), click(x)))];
    }""")
    assert left >= width + 6, "the minus sign is cut off"
    assert frames[0] == 0 and frames[2] == page.evaluate("episode.steps")


def test_an_agent_is_selected_by_a_touch(opened):
    page, rollout = opened("tag_continuous", 390, 844, touch=True)
    x, y = page.evaluate("[panes[0].places[3].x, panes[0].places[3].y]")
    box = page.locator("#world").bounding_box()
    page.touchscreen.tap(box["x"] + x, box["y"] + y)
    assert page.evaluate("selected !== null")
    assert page.locator("#agent td").first.inner_text() == "x"


@pytest.mark.parametrize("landmarks", [0, 9])
def test_an_array_is_scenery_and_is_listed(browser, tmp_path, landmarks):
    starts = [{"landmark_x": [-1 + i / 4 for i in range(landmarks)], "landmark_y": [1.25] * landmarks, "x": [0] * 4, "y": [-1, -0.5, 0, 0.5]}]
    (tmp_path / "starts.json").write_text(json.dumps(starts))
    output("--env", "simple_tag", "--device", "cpu", "--quiet", "--total_steps", 1, "--run_dir", tmp_path / "run", "--set", f"env.num_landmarks={landmarks}",
           "--set", "env.landmark_size=0.1", "--set", "env.reset=given", "--set", f"env.starts={tmp_path / 'starts.json'}")
    output("play", tmp_path / "run", "--device", "cpu", "--starts", "training")
    page, troubles = browser.new_page(), []
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.goto((tmp_path / "run" / "rollout.html").as_uri())
    page.wait_for_function("document.title !== 'rollout'")
    # The color at a place of the world, and of scenery.
    color = """([x, y]) => { const r = window.devicePixelRatio || 1, c = document.getElementById('world').getContext('2d');
        return Array.from(c.getImageData(Math.round(panes[0].toPixels.x(x) * r), Math.round(panes[0].toPixels.y(y) * r), 1, 1).data); }"""
    soft = page.evaluate("""() => { const c = document.createElement('canvas').getContext('2d');
        c.fillStyle = css('--soft'); c.fillRect(0, 0, 1, 1); return Array.from(c.getImageData(0, 0, 1, 1).data); }""")
    drawn = [page.evaluate(color, [-1 + i / 4, 1.25]) == soft for i in range(9)]
    assert drawn == [i < landmarks for i in range(9)]
    listed = page.inner_text("#replica tr:has-text('landmark_y')")
    assert listed.split("\t")[1] == (", ".join(["1.25"] * 9) if landmarks else "none")
    assert troubles == []


def colors_at(page, places):
    """Red, green, blue and opacity of the world at these (x, y)."""
    colors = page.evaluate("""places => { const c = $('world'), p = panes[0].toPixels, r = window.devicePixelRatio || 1,
            d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
        return places.map(([x, y]) => { const at = 4 * (Math.floor(p.y(y) * r) * c.width + Math.floor(p.x(x) * r)); return [...d.slice(at, at + 4)]; }); }""",
                           [list(place) for place in places])
    return [tuple(color) for color in colors]


@pytest.mark.parametrize("game", cells.GAMES)
def test_cells_are_a_board(browser, game, tmp_path):
    run, rollout = cells.played(game, tmp_path, "rollout.html")
    page, troubles = browser.new_page(reduced_motion="reduce"), []
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.goto((run / "rollout.html").as_uri())
    page.wait_for_function("document.title !== 'rollout'")
    rgb = lambda color: tuple(bytes.fromhex(color[1:])) + (255,)
    colors = {"": (0, 0, 0, 0), "gray": rgb(page.evaluate("css('--soft')")), "#12ab9f": rgb("#12ab9f"), "#f0e442": rgb("#f0e442")}
    colors.update((role, rgb(color)) for role, color in zip(cells.GAMES[game].roles, ("#d55e00", "#2b7bd0")))
    for t in range(rollout["episodes"][0]["steps"] + 1):
        places = cells.expected(game, rollout, t)
        for moment in (t, t + 0.6):  # cells do not change between steps
            page.evaluate("f => drawWorlds(f)", moment)
            assert dict(zip(places, colors_at(page, places))) == {place: colors[color] for place, color in places.items()}, moment
    assert page.is_hidden("#trails") and page.is_hidden("#ids"), "no shape is of an agent"
    for role in (*cells.GAMES[game].roles, cells.GAMES[game].roles[0]):  # a click selects one after the other
        page.click("#world")
        assert page.inner_text("#agent h2").startswith(f"{role} ")
    assert troubles == []


def test_trails_lie_on_cells(browser, tmp_path):
    run, _ = cells.played("tiles", tmp_path, "rollout.html", arguments=["--set", "env.walkers=true"])
    page = browser.new_page(reduced_motion="reduce")
    page.goto((run / "rollout.html").as_uri())
    page.wait_for_function("document.title !== 'rollout'")
    page.evaluate("f => go(f)", cells.TRAIL_STEP)
    seen = lambda place: colors_at(page, [place])[0]
    beside, trail = seen(cells.BESIDE_TRAIL), seen(cells.ON_TRAIL)
    assert seen(cells.NO_TRAIL) == beside
    assert beside[:3] == tuple(bytes.fromhex(page.evaluate("css('--soft')")[1:]))
    assert trail[0] > beside[0] + 20 and trail[2] < beside[2] - 10, "the color of the agent over that of the cell"
    page.uncheck("#trails")
    assert seen(cells.ON_TRAIL) == beside


def test_a_strange_path_does_not_break_the_page(browser, runs, tmp_path):
    file, _ = runs("cartpole")
    run = shutil.copytree(file.parent, tmp_path / "a <!--<script>b & 'c'")
    output("play", "--run", run, "--device", "cpu")
    page = browser.new_page()
    page.goto((run / "rollout.html").as_uri())
    page.wait_for_function("document.title !== 'rollout'")
    assert str(run) in page.inner_text("#about")


def test_without_a_drawing_the_state_is_a_table(browser, runs, tmp_path):
    file, _ = runs("tag_gridworld")
    before, _, rest = file.read_text().partition('id="rollout">')
    described, _, after = rest.partition("</script>")
    described = json.loads(described)
    described["drawing"]["shapes"] = []
    (tmp_path / "plain.html").write_text(f'{before}id="rollout">{json.dumps(described)}</script>{after}')
    page = browser.new_page()
    page.goto((tmp_path / "plain.html").as_uri())
    page.wait_for_function("document.title !== 'rollout'")
    agents = sum(role["count"] for role in described["roles"])
    assert page.locator("#states tr").count() == agents + 1 and page.is_hidden("#world")
    page.click("#states tr >> nth=2")
    assert page.inner_text("#agent h2").startswith("tagger 1")


GLOW = '''
import gymnasium
import numpy as np

class Glow(gymnasium.Env):
    """Its pictures are 640 x 480: the step says how red they are, and the left half is blue too."""
    observation_space, action_space = gymnasium.spaces.Box(0, 1, (1,), np.float32), gymnasium.spaces.Discrete(2)
    def __init__(self, render_mode=None):
        self.render_mode, self.t = render_mode, 0
    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t = 0
        return np.zeros(1, np.float32), {}
    def step(self, action):
        self.t += 1
        return np.full(1, self.t / 12, np.float32), float(action), False, self.t == 12, {}
    def render(self):
        picture = np.zeros((480, 640, 3), np.uint8)
        picture[..., 0], picture[:, :320, 2] = 51 * (self.t % 6), 255
        return picture

class Thin(Glow):
    def render(self):
        return np.full((1000, 1, 3), 255, np.uint8)

class Dark(Glow):
    def render(self):
        return None
'''


def test_a_game_in_python_shows_its_own_pictures(browser, tmp_path):
    (tmp_path / "glow.py").write_text(GLOW)
    train = ["--device", "cpu", "--quiet", "--total_steps", 512, "--num_envs", 4, "--train_batch_size", 256]
    output("--env", "glow:Glow", *train, "--run_dir", tmp_path / "run", cwd=tmp_path)
    output("play", tmp_path / "run", "--device", "cpu", "--beside", "random", cwd=tmp_path)
    context = browser.new_context(viewport={"width": 1280, "height": 800}, reduced_motion="reduce")
    page, troubles = context.new_page(), []
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.goto((tmp_path / "run/rollout.html").as_uri())
    page.wait_for_function("document.title === 'glow_Glow: a rollout'")
    color = """([id, side]) => { const canvas = document.getElementById(id), c = canvas.getContext('2d');
        return [...c.getImageData(canvas.width * (0.5 + side), canvas.height / 2, 1, 1).data]; }"""
    for step in (0, 1, 5, 7, 12):
        page.evaluate("step => go(step)", step)
        for world in ("world", "world-2"):
            assert page.evaluate(color, [world, -0.2]) == [51 * (step % 6), 0, 255, 255]
            assert page.evaluate(color, [world, 0.2]) == [51 * (step % 6), 0, 0, 255]
    assert page.is_hidden("#states") and page.is_hidden("#trails") and "dashed: random" in page.inner_text("#legend")
    assert (tmp_path / "run/rollout.html").stat().st_size < 100_000
    output("--env", "glow:Thin", *train, "--run_dir", tmp_path / "thin", cwd=tmp_path)
    output("play", tmp_path / "thin", "--device", "cpu", cwd=tmp_path)
    page.goto((tmp_path / "thin/rollout.html").as_uri())
    page.wait_for_function("document.title === 'glow_Thin: a rollout'")
    assert page.evaluate(color, ["world", 0])[3] > 0 and page.evaluate("[pictured.width, pictured.height]") == [1, 1000], "a line of pixels stays one"
    output("--env", "glow:Dark", *train, "--run_dir", tmp_path / "dark", cwd=tmp_path)
    done = wdtrain("play", tmp_path / "dark", "--device", "cpu", cwd=tmp_path)
    assert done.returncode == 0 and "the page has no pictures: " in done.stderr and "render() returns nothing" in done.stderr, done
    page.goto((tmp_path / "dark/rollout.html").as_uri())
    page.wait_for_function("document.title === 'glow_Dark: a rollout'")
    assert "has no drawing and no state to show" in page.inner_text("#states") and troubles == []


def test_a_link_leads_to_a_moment(browser, runs):
    file, rollout = runs("tag_gridworld")
    page = browser.new_page()
    page.goto(file.as_uri() + "#step=3")
    page.wait_for_function("document.title !== 'rollout'")
    assert page.evaluate("[frame, playing]") == [3, False]
