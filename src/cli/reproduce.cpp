// reproduce.cpp: `wdtrain reproduce RUN`: trains again with a run's configuration, and compares the results.
#include <algorithm>
#include <filesystem>
#include <limits>

#include "src/base/files.h"
#include "src/base/join.h"
#include "src/base/json.h"
#include "src/base/log.h"
#include "src/base/printable.h"
#include "src/base/program_name.h"
#include "src/base/whole_number.h"
#include "src/cli/arguments.h"
#include "src/cli/output.h"
#include "src/cli/resume.h"
#include "src/cli/runs.h"
#include "src/cli/setup.h"
#include "src/run/start.h"
#include "src/run_report/record.h"
#include "wd/config.h"
#include "wd/error.h"
#include "wd/experiment.h"
#include "wd/outside.h"
#include "wd/safetensors.h"
#include "wd/weights.h"

namespace wd::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// What starts.jsonl says of the start of a run.
struct RecordedStart {
  std::vector<std::string> command;
  int workers = 1;
  bool gpus = false;
  std::vector<std::string> warm_start;  // with absolute paths
};

std::vector<std::string> words_of(const Json& list, const std::string& problem) try {
  return list.get<std::vector<std::string>>();
} catch (const Json::exception&) {
  throw UsageError(problem);
}

RecordedStart read_start(const fs::path& run, const Json& start) {
  const auto problem = [&](const char* name, const char* kind) {
    return concat((run / "starts.jsonl").string(), ": ", name, " must be ", kind, ", and is ",
                  on_one_line(dump(start.value(name, Json())).substr(0, 100)));
  };
  RecordedStart recorded;
  const Json workers = start.value("workers", Json(1U)), folder = start.value("folder", Json(""));
  if (!workers.is_number_unsigned() || workers.get<std::uint64_t>() < 1 ||
      workers.get<std::uint64_t>() > std::numeric_limits<int>::max())
    throw UsageError(problem("workers", "a count"));
  if (!folder.is_string()) throw UsageError(problem("folder", "a path"));
  recorded.workers = workers;
  recorded.gpus = !words_of(start.value("gpus", Json::array()), problem("gpus", "a list of names")).empty();
  const std::vector<std::string>& command = recorded.command =
      words_of(start.value("command", Json::array()), problem("command", "a list of words"));
  constexpr std::string_view kOption = "--warm_start";
  std::vector<std::string> given;
  for (std::size_t k = 1; k < command.size(); ++k) {
    if (command[k] == kOption && k + 1 < command.size()) given.push_back(command[++k]);
    if (command[k].starts_with(concat(kOption, "="))) given.push_back(command[k].substr(kOption.size() + 1));
  }
  const fs::path base = folder.get<std::string>();
  for (WarmStart& begun : parse_warm_starts(given, base)) {
    begun.run = (base / begun.run).string();
    recorded.warm_start.push_back(begun.text());
  }
  return recorded;
}

fs::path weights_file(const fs::path& run, const std::string& policy) {
  return run / "weights" / (policy + ".safetensors");
}

// Refuses what cannot be compared, before anything is trained.
void check_weights(const fs::path& run, const std::vector<std::string>& policies) {
  for (const std::string& policy : policies) {
    const fs::path file = weights_file(run, policy);
    std::error_code unknown;
    const fs::file_type type = fs::symlink_status(file, unknown).type();
    if (type == fs::file_type::not_found)
      throw UsageError(
          concat(file.string(), ": there is no such file: the run has no weights to compare with"));
    if (type != fs::file_type::regular)
      throw UsageError(concat(file.string(), ": is not a regular file: put the weights themselves there"));
  }
}

// The environment steps after which the weights were saved.
std::int64_t steps_of_weights(const fs::path& run, const std::vector<std::string>& policies) {
  std::int64_t steps = -1;
  for (const std::string& policy : policies) {
    const fs::path file = weights_file(run, policy);
    const TensorMetadata metadata = SafetensorsReader(file).metadata();
    const auto found = metadata.find("env_steps");
    const auto saved =
        whole_number<std::int64_t>(found == metadata.end() ? std::string() : found->second).value_or(0);
    if (saved < 1)
      throw UsageError(concat(file.string(),
                              ": was saved before an iteration was complete, or by a program "
                              "that did not write when"));
    if (steps >= 0 && saved != steps)
      throw UsageError(concat(file.string(), ": was saved after ", saved, " steps, and that of ",
                              policies.front(), " after ", steps,
                              ": the run was killed in between; continue it with --resume"));
    steps = saved;
  }
  return steps;
}

// `steps` is 0 for a run that came to the end of its configuration.
std::vector<std::string> training_of(const run_report::RunRecord& then, const RecordedStart& start,
                                     const fs::path& folder, std::int64_t steps) {
  std::vector<std::string> arguments{"--config", (then.folder / "config.yaml").string(), "--run_dir",
                                     folder.string()};
  if (start.workers > 1)
    arguments.insert(arguments.end(),
                     {start.gpus ? "--num_gpus" : "--num_workers", std::to_string(start.workers)});
  for (const std::string& weights : start.warm_start)
    arguments.insert(arguments.end(), {"--warm_start", weights});
  if (steps > 0) arguments.insert(arguments.end(), {"--total_steps", std::to_string(steps)});
  if (const std::string limit = then.setting("trainer.max_seconds"); !limit.empty() && limit != "0")
    arguments.insert(arguments.end(), {"--max_seconds", "0"});
  return arguments;
}

// Returns true if the weights files of all policies have the same bytes.
bool compare(const fs::path& then, const fs::path& now, const std::vector<std::string>& policies) {
  bool same = true;
  for (const std::string& policy : policies) {
    const std::optional<std::string> made = read_regular(weights_file(now, policy), kAnySize);
    if (!made) throw_file_error(weights_file(now, policy), "read it");
    const bool equal = read_regular(weights_file(then, policy), made->size()) == made;
    print(concat(policy, ".safetensors: ", equal ? "the same bytes\n" : "other bytes\n"));
    same = same && equal;
  }
  return same;
}

// The opponents that are others than at the start of a run, one per line.
std::vector<std::string> other_opponents(const Json& start, const Experiment& setup) try {
  std::vector<std::string> lines;
  const Json after = opponents_of(setup), before = start.value("opponents", Json::object());
  for (const auto& [policy, entries] : after.items()) {
    const Json of_policy = before.value(policy, Json::object());
    for (const auto& [entry, now] : entries.items()) {
      const Json then = of_policy.value(entry, now);
      if (then != now)
        lines.push_back(on_one_line(
            concat("opponents.", policy, ": ", entry, ": then ", dump(then), ", now ", dump(now))));
    }
  }
  return lines;
} catch (const Json::exception&) {
  throw UsageError("starts.jsonl: opponents must be texts by policy and entry");
}

}  // namespace

int reproduce(const CommandLine& line) {
  Arguments arguments(
      line, "reproduce",
      "Train again with the configuration, seed and number of workers of a run, as far as it came, and "
      "compare the weights of every policy. Exits with 1 if they differ.");
  std::string run, folder, env;
  bool print_only = false, trusted = false;
  arguments.word("RUN", run, "the run's folder");
  arguments.option("--run_dir", folder, "FOLDER", "folder of the new run (RUN-again)");
  arguments.option("-e,--env", env, "PATH.cu", kSourceHelp);
  arguments.flag("--trust", trusted, kTrustHelp);
  arguments.flag("--print", print_only, "only print the command");
  if (!arguments.parse()) return 0;
  if (run.empty()) throw UsageError("reproduce: name a run's folder");
  run = one_run(run);
  if (!run_report::is_run(run)) throw UsageError(concat(run, ": not a run's folder"));
  const run_report::RunRecord then = run_report::read_record(run);
  const std::vector<Json> starts = run::read_starts(run);
  if (starts.empty())
    throw UsageError(concat(
        run,
        ": has no starts.jsonl: it was trained by a program that did not write one; train with --config ",
        run, "/config.yaml"));
  const RecordedStart start = read_start(run, starts.front());
  if (then.state.is_active())
    throw UsageError(concat(run, ": is still training: wait for its end (", program_command(), " status ",
                            shell_word(run), " --follow)"));
  const Experiment setup = load_environment(
      {.env = env, .file = (fs::path(run) / "config.yaml").string(), .of_run = true, .trusted = trusted});
  std::vector<std::string> policies = setup.policy_names();
  for (const PolicySettings& policy : setup.config.policies)
    if (policy.average > 0.0) policies.push_back(average_name(policy.name));
  check_weights(run, policies);
  const bool finished = then.state.status == "finished";
  const std::int64_t steps = finished ? 0 : steps_of_weights(run, policies);
  fs::path place = fs::path(run).lexically_normal();
  if (!place.has_filename()) place = place.parent_path();
  if (folder.empty()) folder = place.string() + "-again";
  std::vector<std::string> command = training_of(then, start, folder, steps);
  if (trusted) command.emplace_back("--trust");
  if (!env.empty()) command.insert(command.end(), {"--env", env});
  if (print_only) {
    std::string text = program_command();
    for (const std::string& word : command) text += ' ' + shell_word(word);
    print(text + '\n');
    return 0;
  }
  std::vector<std::string> changed = run::differences(starts.front(), run::describe_start({}, start.workers));
  if (then.setting("source") != setup.config.source)
    changed.emplace_back("the environment's file has changed");
  std::ranges::copy(other_opponents(starts.front(), setup), std::back_inserter(changed));
  if (starts.size() > 1 && dynamic_cast<const OutsideEnvironment*>(setup.environment.get()) != nullptr)
    changed.emplace_back("it was continued, and its environments began new episodes then");
  for (std::size_t k = 1; k < starts.size(); ++k)
    if (contains(read_start(run, starts[k]).command, "--allow_drift"))
      changed.push_back("it was continued with --allow_drift, perhaps with other settings");
  for (const std::string& difference : changed) logging::warn(concat("not as it was: ", difference));
  if (!finished)
    logging::info(concat("the run is ", then.state.status, " (", then.state.text("stop_reason"),
                         "): this one trains the ", steps, " steps of its weights, without a time limit"));
  const int code = train({line.program, command});
  if (code != 0) return code;
  const bool same = compare(run, folder, policies);
  if (!same && changed.empty() && then.state.text("device") == "cpu")
    logging::error(
        "the weights differ although nothing that is known to matters has changed: please report it");
  return same ? 0 : 1;
}

}  // namespace wd::cli
