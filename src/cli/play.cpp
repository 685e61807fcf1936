// play.cpp: `wdtrain play`: records episodes of a run's policies, for a browser or as numbers.
#include <filesystem>

#include "src/base/atomic_file.h"
#include "src/base/join.h"
#include "src/base/log.h"
#include "src/base/printable.h"
#include "src/cli/match_options.h"
#include "src/cli/output.h"
#include "src/cli/programs.h"
#include "src/cli/setup.h"
#include "src/play/movie.h"
#include "src/play/rollout.h"
#include "src/run_report/report.h"
#include "wd/checkpoint.h"
#include "wd/error.h"

namespace wd::cli {
namespace {

struct PlayOptions {
  MatchOptions match;
  std::string opponent, beside, out;
  int episodes = 1, steps = 10'000, replica = 0, frames_per_second = 0;
};

bool is_json(const std::string& out) { return out == "-" || out.ends_with(".json"); }

// Where the page belongs: into the run's folder, but not into that of a checkpoint, which is sealed.
std::string output_of(const PlayOptions& options) {
  if (options.frames_per_second != 0 && !is_movie(options.out))
    throw UsageError("--fps belongs to a movie: --out must end in .gif or .mp4");
  if (options.out.empty() && !options.match.pretrained.empty()) return options.match.pretrained + ".html";
  if (options.out.empty())
    return is_checkpoint(options.match.run)
               ? "rollout.html"
               : (std::filesystem::path(options.match.run) / "rollout.html").string();
  if (is_json(options.out) || is_movie(options.out) || options.out.ends_with(".html")) return options.out;
  throw UsageError("--out " + options.out +
                   ": must end in .html, .gif, .mp4 or .json, or be - for JSON on stdout");
}

void record(const Experiment& setup, const PlayOptions& options, Rollout& rollout, Pictures pictures) {
  Evaluator evaluator(setup.config, *setup.environment, weights_of(options.match.run), setup.device);
  std::vector<Match> matches = options.opponent.empty()
                                   ? std::vector<Match>{options.match.match(setup, evaluator.sides())}
                                   : options.match.against(setup, evaluator.sides(), options.opponent);
  rollout.beside = !options.beside.empty();
  if (rollout.beside)
    matches.push_back(options.match.with(setup, evaluator.sides(), "--beside ", options.beside));
  for (Match match : matches) {
    match.episodes = options.episodes;
    match.first_replica = static_cast<std::uint32_t>(options.replica);
    wd::record(evaluator, match, options.steps, rollout, pictures);
  }
}

// A movie needs what the environment shows of itself; a page without a drawing shows it, or says why not.
void record(const Experiment& setup, const PlayOptions& options, const std::string& out, Rollout& rollout) {
  if (rollout.shows_itself && is_movie(out)) return record(setup, options, rollout, Pictures::kFull);
  if (!rollout.shows_itself || is_json(out) || !rollout.spec.drawing.shapes.empty())
    return record(setup, options, rollout, Pictures::kNone);
  try {
    record(setup, options, rollout, Pictures::kSmall);
  } catch (const std::exception& error) {
    logging::warn(concat("the page has no pictures: ", error.what()));
    rollout.episodes.clear();
    record(setup, options, rollout, Pictures::kNone);
  }
}

// A report that a training wrote is older than the page, so it is written again with a link to it.
void link_from_report(const std::filesystem::path& run, const std::filesystem::path& page) {
  std::error_code missing;
  if (page != run / "rollout.html" || !std::filesystem::is_regular_file(run / "report.html", missing)) return;
  try {
    run_report::write_run_report(run);
  } catch (const std::exception& error) {
    logging::warn(concat("the report has no link to the page: ", error.what()));
  }
}

// One line per episode.
std::string summary(const Rollout& rollout) {
  std::vector<std::vector<std::string>> rows = {{"EPISODE", "STEPS"}};
  for (const Role& role : rollout.spec.roles) {
    rows[0].push_back(role.name);
    rows[0].push_back("RETURN");
  }
  for (const Rollout::Episode& episode : rollout.episodes) {
    std::vector<std::string> row = {concat(rows.size()), concat(episode.record.steps)};
    for (std::size_t r = 0; r < rollout.spec.roles.size(); ++r) {
      const Series& reward = episode.record.roles[r].reward;
      double sum = 0.0;
      for (const double value : reward.values) sum += value;
      row.push_back(episode.players[r]);
      row.push_back(concat(sum / rollout.spec.roles[r].count));
    }
    rows.push_back(row);
  }
  return table(rows, 0);
}

}  // namespace

int play(const CommandLine& line) {
  Arguments arguments(
      line, "play",
      "Record episodes of a run's policies, and write a page that shows them in a browser, a movie "
      "(needs ffmpeg), or their numbers as JSON.");
  PlayOptions options;
  options.match.add_to(arguments);
  arguments.number("--episodes", options.episodes, {1, 256}, "INT", "episodes to record per match (1)");
  arguments.number("--max_steps", options.steps, {1, 1e6}, "INT",
                   "steps of an episode to record at most (10k)");
  arguments.number("--replica", options.replica, {0, 1e9}, "INT",
                   "number of the replica that plays the first episode, which decides its start (0)");
  arguments.option("--opponent", options.opponent, "PLAYER",
                   "record each trained role in turn against random, scripted, a run or a checkpoint");
  arguments.option("--beside", options.beside, "PLAYER",
                   "record the same starts with this player in all roles too (random, scripted, a run or a "
                   "checkpoint), and show them beside each other");
  arguments.option("-o,--out", options.out, "FILE",
                   "page (.html), movie (.gif, .mp4) or numbers (.json; "
                   "- is stdout) to write (RUN/rollout.html; ENV.html if pretrained)");
  arguments.number("--fps", options.frames_per_second, {1, 120}, "INT", "steps per second of a movie (20)");
  bool opens = false;
  arguments.flag("--open", opens, "show the page or movie: in $BROWSER, or by xdg-open or open");
  if (!arguments.parse()) return 0;
  options.match.need_run("play");
  if (!options.opponent.empty() && !options.beside.empty())
    throw UsageError("--opponent and --beside both choose other players: give one of them");
  const std::string out = output_of(options);
  if (opens && is_json(out))
    throw UsageError("--open shows a page or a movie, and --out is JSON: leave out one");
  const std::vector<std::string> shows = opens ? browser() : std::vector<std::string>();
  check_place("--out", out);
  const Experiment setup = options.match.load();
  const std::string& pretrained = options.match.pretrained;
  Rollout rollout =
      rollout_of(*setup.environment, pretrained.empty() ? options.match.run : "pretrained " + pretrained);
  if (is_movie(out)) check_movie(rollout, out);
  record(setup, options, out, rollout);
  const int frames_per_second = options.frames_per_second == 0 ? 20 : options.frames_per_second;
  const std::string content = is_movie(out)  ? movie_of(rollout, out, frames_per_second)
                              : is_json(out) ? rollout_json(rollout)
                                             : rollout_page(rollout);
  if (options.out.empty()) {
    write_file_atomically(out, content, Durability::kReplace);
  } else {
    write_result(out, content);
  }
  link_from_report(options.match.run, out);
  if (out != "-")
    print(concat(summary(rollout),
                 rollout.beside && rollout.spec.roles.size() > 1
                     ? "all roles change together; with --policy ROLE=random, that one is random in both\n"
                     : "",
                 on_one_line(out), " (", (content.size() + 999) / 1000, " kB)",
                 out.ends_with(".html") && !opens ? ": open it in a browser\n" : "\n"));
  if (opens) open_page(shows, out);
  return 0;
}

}  // namespace wd::cli
