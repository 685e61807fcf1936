// prober.cpp: turns the way a gang of workers ended into the outcome of a probe.
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>

#include "src/autoscale/probe.h"
#include "src/autoscale/report.h"
#include "src/base/files.h"
#include "src/base/host_memory.h"
#include "src/base/stopwatch.h"
#include "src/launcher/gang.h"
#include "src/launcher/options.h"
#include "src/run/lock.h"
#include "wd/error.h"

namespace wd::scaling {
namespace {

constexpr std::string_view kPrefix = "wd-autoscale-";

constexpr std::time_t kYoung = 60;  // [s]: younger folders may be about to be locked

// Removes what killed searches left behind: folders of this user that no process has locked.
void clear_away(const std::filesystem::path& place) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(place, error)) {
    struct stat status{};
    if (!entry.path().filename().string().starts_with(kPrefix) ||
        ::lstat(entry.path().c_str(), &status) != 0 || !S_ISDIR(status.st_mode) ||
        status.st_uid != ::geteuid() || std::time(nullptr) - status.st_mtime < kYoung ||
        !std::filesystem::exists(entry.path() / run::kLockName, error))
      continue;
    try {
      const run::Lock lock(entry.path());
      std::filesystem::remove_all(entry.path(), error);
    } catch (const std::runtime_error&) {  // in use
    }
  }
}

std::filesystem::path make_folder() {
  const std::filesystem::path place = std::filesystem::temp_directory_path();
  clear_away(place);
  std::string name = (place / concat(kPrefix, "XXXXXX")).string();
  WD_CHECK(::mkdtemp(name.data()) != nullptr, name, ": cannot make this folder");
  return name;
}

// Derives the outcome from the failures of a probe's workers.
ProbeEnd judge(const std::vector<launcher::Failure>& failures, bool killed_for_memory) {
  const auto lacked_memory = [&](const launcher::Failure& failure) {
    return failure.exit_code == kOutOfMemoryCode || (failure.signal == "SIGKILL" && killed_for_memory);
  };
  const auto found = std::ranges::find_if(failures, lacked_memory);
  if (found == failures.end()) return {.kind = Kind::kFailed, .detail = describe(root_cause(failures))};
  const bool by_kernel = found->exit_code != kOutOfMemoryCode;
  return {.kind = Kind::kOutOfMemory,
          .detail = by_kernel ? "ended by the out-of-memory killer" : found->message};
}

// A folder for answers, locked while it is in use.
class Folder {
 public:
  Folder() : path_(make_folder()), lock_(path_) {}
  ~Folder() {
    std::error_code error;
    std::filesystem::remove_all(path_, error);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::filesystem::path answer() const { return path_ / "answer.json"; }

 private:
  std::filesystem::path path_;
  run::Lock lock_;
};

// Runs the workers and returns how they ended.
launcher::Ending run_workers(const LaunchOptions& options, const std::vector<std::string>& command,
                             const ProbeOrder& order) {
  launcher::Signals signals;
  launcher::Console console(true);
  const std::vector<std::string> gpus = launcher::choose_gpus(options);
  const std::string run_id = launcher::run_id(options);
  const launcher::Launch launch{.options = options,
                                .command = command,
                                .gpus = gpus,
                                .run_id = run_id,
                                .signals = signals,
                                .console = console,
                                .variables = {{kProbeVariable, order_json(order)}}};
  launcher::Ending ended;
  if (auto meeting = launcher::make_rendezvous(options)->meet(0, signals)) {
    launcher::Gang gang(launch, 0, {});
    gang.start(std::move(*meeting));
    ended = gang.watch([] {});
  }
  if (signals.first() != 0) throw Interrupted(signals.first());
  return ended;
}

ProbeEnd outcome_of(const launcher::Ending& ended, const std::filesystem::path& answer,
                    const OomWatch& memory) {
  if (!ended.failures.empty()) return judge(ended.failures, memory.may_have_killed());
  const std::optional<std::string> text = read_whole(answer);
  if (text && ended.exit_code == 0) return parse_outcome(*text);
  return {.detail = concat("a probe ended with exit code ", ended.exit_code, " and without an answer")};
}

}  // namespace

Measure prober(const LaunchOptions& launch, const std::vector<std::string>& command,
               const AutoscaleSettings& settings, std::uint64_t memory_bytes) {
  LaunchOptions options = launch;
  options.max_restarts = 0;
  return [=, folder = std::make_shared<Folder>()](const Probe& probe, const std::optional<Probe>& reference,
                                                  double max_seconds) {
    const bool for_speed = settings.objective == kObjectiveSpeed;
    const ProbeOrder order{.probe = probe,
                           .reference = reference,
                           .max_seconds = max_seconds,
                           .max_iteration_seconds = for_speed ? settings.max_iteration_seconds : 0.0,
                           .measured_seconds = settings.probe_seconds,
                           .memory_bytes = memory_bytes,
                           .answer = folder->answer()};
    std::filesystem::remove(order.answer);
    const OomWatch memory;
    const Stopwatch watch;
    ProbeEnd outcome = outcome_of(run_workers(options, command, order), order.answer, memory);
    outcome.seconds = watch.seconds();
    return outcome;
  };
}

}  // namespace wd::scaling
