// league.cpp: `wdtrain league`: plays runs, checkpoints, random and scripted players against each other, and
// rates them.
#include "src/cli/league.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "src/base/atomic_file.h"
#include "src/base/json.h"
#include "src/cli/match_options.h"
#include "src/cli/output.h"
#include "src/cli/programs.h"
#include "src/cli/runs.h"
#include "src/evaluation/league.h"
#include "src/play/packed.h"
#include "wd/error.h"

namespace wd::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string note_of(const League& league) {
  const Rating& first = league.ratings.first_seat;
  const auto rounded = [](double rating) { return concat(std::lround(elo(rating))); };
  std::string note = "Ratings are relative to the mean of these players, and mean nothing elsewhere.\n";
  note += league.by_game
              ? concat("To begin is worth ", rounded(first.value), " Elo [", rounded(first.low), ", ",
                       rounded(first.high), "].")
              : "Two games from one start, with the seats changed, are one: who got more in both won it.";
  if (league.repeats)
    note +=
        "\nSome players, who draw no actions, played one and the same game again and again: their points\n"
        "say little. Draw starts, or leave out --greedy.";
  return note;
}

// Players from the best on.
Json json_of(const League& league, const Experiment& setup, const Match& match) {
  std::vector<int> order(league.members.size());
  std::iota(order.begin(), order.end(), 0);
  const auto rating = [&](int i) { return league.ratings.players[static_cast<std::size_t>(i)]; };
  const auto name = [&](int i) { return league.members[static_cast<std::size_t>(i)].name; };
  std::ranges::stable_sort(order, std::greater(), [&](int i) { return rating(i).value; });
  Json json = {{"env", setup.environment->name()}, {"seed", match.seed},
               {"greedy", match.greedy},           {"starts", word_of(match.starts)},
               {"games", match.episodes},          {"by_game", league.by_game},
               {"repeats", league.repeats},        {"note", note_of(league)},
               {"players", Json::array()},         {"pairs", Json::array()}};
  const auto counted = [](Json into, const SeatedGames& all) {
    into["games"] = std::lround(all.games());
    into["wins"] = std::lround(all.wins);
    into["draws"] = std::lround(all.draws);
    into["losses"] = std::lround(all.losses);
    into["score"] = all.score();
    return into;
  };
  const auto rated = [](Json into, const Rating& rating) {
    into.update({{"rating", rating.value}, {"low", rating.low}, {"high", rating.high}});
    into.update({{"elo", elo(rating.value)}, {"elo_low", elo(rating.low)}, {"elo_high", elo(rating.high)}});
    return into;
  };
  if (league.by_game) json["first_seat"] = rated(Json::object(), league.ratings.first_seat);
  for (const int i : order) {
    json["players"].push_back(counted(rated({{"name", name(i)}}, rating(i)), league.of(i)));
    for (const int j : order)
      if (i != j)
        json["pairs"].push_back(counted({{"player", name(i)}, {"other", name(j)}}, league.of(i, j)));
  }
  return json;
}

std::string text_of(const Json& json) {
  std::vector<std::vector<std::string>> rows = {
      {"", "PLAYER", "ELO", "95 % INTERVAL", "WON", "DRAWN", "LOST"}};
  const std::size_t players = json["players"].size();
  for (std::size_t k = 1; k <= players; ++k) rows[0].push_back(concat("VS ", k));
  auto pair = json["pairs"].begin();
  for (std::size_t i = 0; i < players; ++i) {
    const Json& one = json["players"][i];
    const auto number = [&](const char* key) { return concat(std::lround(one[key].get<double>())); };
    rows.push_back({concat(i + 1), one["name"], number("elo"),
                    concat("[", number("elo_low"), ", ", number("elo_high"), "]"), number("wins"),
                    number("draws"), number("losses")});
    for (std::size_t j = 0; j < players; ++j)
      rows.back().push_back(i == j ? "" : concat(std::lround(100.0 * (*pair++)["score"].get<double>())));
  }
  return concat(table(rows, 1), "VS: points in percent against that player; a draw is half a win.\n",
                json["note"].get<std::string>(), "\n");
}

// Throws UsageError.
std::vector<League::Member> members_of(const std::vector<std::string>& names, const MatchOptions& options,
                                       const Experiment& setup, const std::vector<GameSide>& sides) {
  std::vector<League::Member> members;
  for (const std::string& name : names) {
    if (std::ranges::find(members, name, &League::Member::name) != members.end())
      throw UsageError(concat("league: ", name, " is named twice"));
    members.push_back({name, options.with(setup, sides, "league ", name).players});
  }
  return members;
}

}  // namespace

int league(const CommandLine& line) {
  Arguments arguments(line, "league",
                      "Play runs against each other in a game with two sides, all pairs on both seats, and "
                      "rate them: a table, and a page with the points of each pair.");
  MatchOptions options;
  std::vector<std::string> names;
  std::string named;
  bool prints_json = false, opens = false;
  int games = 100;
  arguments.word("PLAYER", names,
                 "runs, checkpoints (RUN:POLICY and RUN:POLICY.average too), random, scripted; "
                 "the first run says in which environment");
  arguments.number("--games", games, {2, 1e6}, "INT", "games of each pair, half of them on each seat (100)");
  options.add_how(arguments);
  arguments.option("-o,--out", named, "FILE", "page to write (league.html)");
  arguments.flag("--json", prints_json,
                 "print one JSON object; the page is written if --out or --open asks for it");
  arguments.flag("--open", opens, "show the page: in $BROWSER, or by xdg-open or open");
  if (!arguments.parse()) return 0;
  const std::vector<std::string> shows = opens ? browser() : std::vector<std::string>();
  for (const std::string& name : names)
    if (const PlayerSpec::Kind kind = PlayerSpec::of(name).kind;
        kind == PlayerSpec::kSelf || kind == PlayerSpec::kPool || name == "average")
      throw UsageError(concat("league ", name, ": name a run, a checkpoint, random or scripted"));
  const auto run = std::ranges::find(names, PlayerSpec::kRun,
                                     [](const std::string& name) { return PlayerSpec::of(name).kind; });
  if (names.size() < 2 || run == names.end())
    throw UsageError(
        "league needs PLAYER PLAYER...: two players at least, one of them a run or a checkpoint");
  if (games % 2 != 0) throw UsageError(concat("--games ", games, ": must be even, half on each seat"));
  const std::string out = !named.empty() || (prints_json && !opens) ? named : "league.html";
  if (!out.empty() && !out.ends_with(".html")) throw UsageError("--out " + out + ": must end in .html");
  check_place("--out", out);
  options.run = one_run(parts_of_player(*run).first);
  const Experiment setup = options.load();
  Evaluator evaluator(setup.config, *setup.environment, weights_of(options.run), setup.device);
  if (evaluator.sides().size() != 2)
    throw UsageError(concat("league needs a game with two sides, and ", setup.environment->name(), " has ",
                            evaluator.sides().size(), ": eval compares players of others"));
  Match match = options.match(setup, evaluator.sides());
  match.episodes = games;
  const Json json = json_of(play_league(evaluator, setup.environment->spec(),
                                        members_of(names, options, setup, evaluator.sides()), match),
                            setup, match);
  if (!out.empty()) {
    std::string page = kLeaguePage;
    fill_in(page, "{{LEAGUE}}", inside_script(dump(json)));
    named.empty() ? write_file_atomically(out, page, Durability::kReplace) : write_named_file(out, page);
  }
  print(prints_json ? dump(json) + "\n"
                    : concat(text_of(json), out, opens ? "\n" : ": open it in a browser\n"));
  if (opens) open_page(shows, out);
  return 0;
}

}  // namespace wd::cli
