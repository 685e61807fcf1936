// seeds.cpp: starts a process for each seed, shows what they do, passes signals on, and sums up.
#include "src/cli/seeds.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <deque>
#include <nlohmann/json.hpp>
#include <set>

#include "src/base/child_process.h"
#include "src/base/log.h"
#include "src/base/program_name.h"
#include "src/base/run_child.h"
#include "src/cli/batch_view.h"
#include "src/cli/train_arguments.h"
#include "src/launcher/output.h"
#include "src/launcher/signals.h"
#include "src/run/lock.h"
#include "src/run_report/report.h"
#include "wd/detail/parallel.h"
#include "wd/detail/supervise.h"
#include "wd/error.h"

namespace wd::cli {
namespace {

namespace fs = std::filesystem;
constexpr std::size_t kLastLines = 20;  // of a seed that fails
constexpr int kWaitMilliseconds = 100;

// The words of this command without these options, each of which has a value.
std::vector<std::string> command_without(const std::set<std::string>& options) {
  std::vector<std::string> words;
  const std::vector<std::string> all = own_command();
  for (std::size_t k = 0; k < all.size(); ++k) {
    const std::string name = all[k].substr(0, all[k].find('='));
    if (!options.contains(name)) words.push_back(all[k]);
    if (options.contains(name) && name == all[k]) ++k;
  }
  return words;
}

// A process that trains one seed.
struct Training {
  std::size_t seed;  // its place
  Child child;
  launcher::LineCutter lines = {};
  std::deque<std::string> last = {};  // of them
};

std::vector<BatchRun> runs_in(const fs::path& folder, const std::vector<std::int64_t>& seeds) {
  std::vector<BatchRun> runs;
  for (const std::int64_t seed : seeds)
    runs.push_back({.label = concat("seed ", seed), .folder = folder / std::to_string(seed)});
  return runs;
}

class Batch {
 public:
  Batch(const TrainArguments& arguments, const Experiment& first, const fs::path& folder)
      : arguments_(arguments),
        folder_(folder),
        lock_(folder, arguments.resumes_or_begins() ? run::Lock::kLongPatience : run::Lock::kPatience),
        view_(runs_in(folder, arguments.seeds), arguments.quiet) {
    const LaunchOptions options = arguments.launch.options(first.config.trainer.device);
    workers_ = static_cast<std::size_t>(options.num_workers);
    if (options.gpus) gpus_ = visible_gpus();
    const auto processors = static_cast<std::size_t>(available_processors());
    const std::size_t places = gpus_.empty() ? processors : gpus_.size();
    const std::size_t jobs =
        arguments.jobs > 0 ? arguments.jobs : std::max<std::size_t>(places / workers_, 1);
    slots_.resize(std::min(jobs, view_.runs().size()));
    command_ = command_without({"--seeds", "--jobs", "--run_dir", "--resume"});
    if (!arguments.quiet) command_.emplace_back("--quiet");
    if (first.config.trainer.threads == 0)
      command_.push_back(
          concat("--threads=", std::max<std::size_t>(processors / (slots_.size() * workers_), 1)));
  }

  int run() {
    for (;;) {
      for (const int signal : signals_.take()) pass_on(signal);
      bool busy = false;
      for (std::size_t s = 0; s < slots_.size(); ++s) {
        if (slots_[s]) watch(slots_[s]);
        if (!slots_[s] && next_ < view_.runs().size() && signals_.first() == 0) start(s);
        busy = busy || slots_[s];
      }
      if (!busy && (next_ == view_.runs().size() || signals_.first() != 0)) break;
      view_.refresh();
      signals_.wait(kWaitMilliseconds);
    }
    return finish();
  }

 private:
  void start(std::size_t slot) {
    const std::size_t seed = next_++;
    const std::vector<std::string> command =
        joined(command_, {concat("--seed=", arguments_.seeds[seed]),
                          concat("--run_dir=", view_.runs()[seed].folder.string()), "--resume=auto"});
    std::vector<std::string> gpus;  // if there are more jobs than GPUs, they share them
    for (std::size_t w = 0; w < workers_ && workers_ <= gpus_.size(); ++w)
      gpus.push_back(gpus_[(slot * workers_ + w) % gpus_.size()]);
    std::vector<std::pair<std::string, std::string>> variables;
    if (!gpus.empty()) variables.emplace_back("CUDA_VISIBLE_DEVICES", join(gpus, ","));
    slots_[slot].emplace(seed, start_child({.command = command,
                                            .variables = variables,
                                            .keeps_stdout = true,  // on which it is quiet
                                            .apart = true,
                                            .death_signal = SIGHUP,
                                            .signal_mask = signals_.mask_before()}));
  }

  void read(Training& from) {
    constexpr std::string_view kWarning = "warning: ";
    std::array<char, 4096> bytes{};
    for (ssize_t got = 0; (got = ::read(from.child.err.get(), bytes.data(), bytes.size())) > 0;)
      for (const std::string& said : from.lines.add({bytes.data(), static_cast<std::size_t>(got)})) {
        const std::string& line = from.last.emplace_back(said, 0, said.size() - 1);
        if (line.starts_with(kWarning) && warned_.insert(line).second)
          logging::warn(concat(view_.runs()[from.seed].label, ": ", line.substr(kWarning.size())));
        if (from.last.size() > kLastLines) from.last.pop_front();
      }
  }

  void watch(std::optional<Training>& slot) {
    int status = 0;
    const bool ended = ::waitpid(slot->child.pid, &status, WNOHANG) > 0;
    read(*slot);
    if (!ended) return;
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    const bool stopped = signals_.first() != 0 && std::set{SIGHUP, SIGINT, SIGTERM}.contains(code - 128);
    if (code == 0) ++finished_;
    if (code != 0 && !stopped) {
      failures_.push_back(concat(view_.runs()[slot->seed].label, " failed with exit code ", code));
      exit_code_ = exit_code_ == 1 || code != 2 ? 1 : 2;
      view_.mark_failed(slot->seed);
      logging::error(concat(failures_.back(), ":\n", join({slot->last.begin(), slot->last.end()}, "\n")));
    }
    slot.reset();
  }

  void pass_on(int signal) {
    logging::warn(std::exchange(stopping_, true)
                      ? "stopping at once"
                      : "stopping: each seed ends with a checkpoint; once more to stop at once");
    for (const std::optional<Training>& one : slots_)
      if (one) ::kill(one->child.pid, signal);
  }

  // Says how all went. Returns the exit code.
  int finish() {
    view_.finish();
    report_batch(view_.runs(), folder_, "seed", arguments_.quiet);
    for (const std::string& failure : failures_) logging::error(failure);
    if (finished_ == view_.runs().size()) return 0;
    logging::warn(
        concat("to go on: the same command with --run_dir ", shell_word(folder_.string()), " --resume auto"));
    return signals_.first() != 0 ? 128 + signals_.first() : exit_code_;
  }

  const TrainArguments& arguments_;
  fs::path folder_;
  run::Lock lock_;
  launcher::Signals signals_;
  BatchView view_;
  std::size_t workers_ = 1, next_ = 0, finished_ = 0;
  std::vector<std::string> gpus_, command_, failures_;
  std::vector<std::optional<Training>> slots_;
  std::set<std::string> warned_;
  bool stopping_ = false;
  int exit_code_ = 0;
};

}  // namespace

std::vector<std::int64_t> parse_seeds(const std::string& text) {
  std::vector<std::int64_t> seeds;
  for (const std::string& part : split(text, ',')) {
    const std::size_t dots = part.find("..");
    const std::int64_t first = parse_integer("--seeds", part.substr(0, dots), TrainerSettings::kSeeds);
    const std::int64_t last = dots == std::string::npos
                                  ? first
                                  : parse_integer("--seeds", part.substr(dots + 2), TrainerSettings::kSeeds);
    if (last < first || last - first >= static_cast<std::int64_t>(run_report::kMostRuns))
      throw UsageError(
          concat("--seeds ", part, ": must be FIRST..LAST, and at most ", run_report::kMostRuns, " seeds"));
    for (std::int64_t seed = first; seed <= last; ++seed) seeds.push_back(seed);
  }
  if (std::set(seeds.begin(), seeds.end()).size() != seeds.size())
    throw UsageError(concat("--seeds ", text, ": names a seed twice"));
  return seeds;
}

int train_seeds(const TrainArguments& arguments, const Experiment& first) {
  // A process of the first seed looks at all settings, which takes threads that this one must not have.
  const std::string seed = concat("--seed=", arguments.seeds.front());
  const Ended checked =
      run_child(joined(command_without({"--seeds", "--jobs"}), {seed, "--print_config"}), {});
  if (checked.exit_code != 0) {
    std::fputs(checked.err.c_str(), stderr);
    return checked.exit_code;
  }
  const fs::path folder = make_batch_folder(first.config, arguments.resumes_or_begins(), "seeds");
  if (!arguments.quiet) print(concat("training seeds in ", folder.string(), "\n"));
  return Batch(arguments, first, folder).run();
}

}  // namespace wd::cli
