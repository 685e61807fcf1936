// reproduce.cpp: `wdtrain reproduce RUN`: trains again with a run's configuration, and compares the results.
#include <filesystem>

#include "src/base/files.h"
#include "src/base/json.h"
#include "src/base/log.h"
#include "src/base/program_name.h"
#include "src/cli/arguments.h"
#include "src/cli/output.h"
#include "src/run/start.h"
#include "src/run_report/record.h"
#include "src/run_report/state.h"
#include "wd/error.h"

namespace wd::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// The value that a recorded command gave an option; empty if none.
std::string value_of(const Json& start, const std::string& option) {
  const Json command = start.value("command", Json::array());
  for (std::size_t k = 0; k + 1 < command.size(); ++k)
    if (command[k] == option && command[k + 1].is_string()) return command[k + 1];
  return "";
}

std::vector<std::string> training_of(const fs::path& run, const Json& start, const fs::path& folder) {
  std::vector<std::string> arguments{"--config", (run / "config.yaml").string(), "--run_dir",
                                     folder.string()};
  const int workers = start.value("workers", 1);
  if (workers > 1) {
    const bool gpus = !start.value("gpus", Json::array()).empty();
    arguments.insert(arguments.end(), {gpus ? "--num_gpus" : "--num_workers", std::to_string(workers)});
  }
  if (const std::string weights = value_of(start, "--warm_start"); !weights.empty())
    arguments.insert(arguments.end(), {"--warm_start", weights});
  return arguments;
}

// Returns true if all weights files have the same bytes.
bool compare(const fs::path& then, const fs::path& now) {
  bool same = true;
  for (const fs::directory_entry& entry : fs::directory_iterator(then / "weights")) {
    const std::string name = entry.path().filename().string();
    const bool equal = read_whole(entry.path()) == read_whole(now / "weights" / name);
    print(concat(name, equal ? ": the same bytes\n" : ": other bytes\n"));
    same = same && equal;
  }
  return same;
}

}  // namespace

int reproduce(const CommandLine& line) {
  Arguments arguments(
      line, "reproduce",
      "Train again with the configuration, seed and number of workers of a run, and compare the "
      "weights. Exits with 1 if they differ.");
  std::string run, folder;
  bool print_only = false;
  arguments.word("RUN", run, "the run's folder");
  arguments.option("--run_dir", folder, "FOLDER", "folder of the new run (RUN-again)");
  arguments.flag("--print", print_only, "only print the command");
  if (!arguments.parse()) return 0;
  if (run.empty()) throw UsageError("reproduce: name a run's folder");
  if (!report::is_run(run)) throw UsageError(concat(run, ": not a run's folder"));
  const report::RunState then = report::read_state(run);
  const std::vector<Json> starts = run::read_starts(run);
  if (starts.empty())
    throw UsageError(concat(
        run,
        ": has no starts.jsonl: it was trained by a program that did not write one; train with --config ",
        run, "/config.yaml"));
  fs::path place = fs::path(run).lexically_normal();
  if (!place.has_filename()) place = place.parent_path();
  if (folder.empty()) folder = place.string() + "-again";
  const std::vector<std::string> command = training_of(run, starts.front(), folder);
  if (print_only) {
    std::string text = program_command();
    for (const std::string& word : command) text += ' ' + shell_word(word);
    print(text + '\n');
    return 0;
  }
  const int workers = starts.front().value("workers", 1);
  const std::vector<std::string> changed = run::differences(starts.front(), run::describe_start({}, workers));
  for (const std::string& difference : changed) logging::warn(concat("not as it was: ", difference));
  if (then.status != "finished") {
    logging::warn(concat("the run is ", then.status, " (", then.text("stop_reason"),
                         "): this one trains to the end of its configuration, "
                         "and the weights will differ"));
  }
  const int code = train({line.program, command});
  if (code != 0) return code;
  const bool same = compare(run, folder);
  if (!same && changed.empty() && then.text("device") == "cpu" && then.status == "finished")
    logging::error(
        "the weights differ although nothing that is known to matters has changed: please report it");
  return same ? 0 : 1;
}

}  // namespace wd::cli
