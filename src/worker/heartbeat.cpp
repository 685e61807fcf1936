// heartbeat.cpp: writes to this worker's slot in the launcher's memory.
#include "wd/heartbeat.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include <cstdlib>

#include "src/base/whole_number.h"
#include "src/worker/monotonic.h"
#include "src/worker/status.h"

namespace wd {
namespace launcher {
namespace {

// Returns -1 if the variable holds no such number.
int number_in(const char* variable) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? -1 : whole_number<int>(text).value_or(-1);
}

WorkerStatus* map_slot() {
  const int descriptor = number_in(kStatusVariable), slot = number_in("LOCAL_RANK");
  if (descriptor < 0 || slot < 0 || ::fcntl(descriptor, F_GET_SEALS) != kStatusSeals) return nullptr;
  struct stat status{};
  const std::size_t size = (static_cast<std::size_t>(slot) + 1) * sizeof(WorkerStatus);
  if (::fstat(descriptor, &status) != 0 || static_cast<std::size_t>(status.st_size) < size) return nullptr;
  ::fcntl(descriptor, F_SETFD, FD_CLOEXEC);  // this worker's own children do not inherit it
  void* const memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<WorkerStatus*>(memory) + slot;
}

}  // namespace

const char* phase_name(int phase) {
  // In the order of heartbeat::Activity.
  constexpr std::array kNames{"starting", "rollout", "update", "checkpoint", "done"};
  const auto index = static_cast<std::size_t>(phase);
  return index < kNames.size() ? kNames[index] : "unknown";
}

WorkerStatus* launched_status() {
  static WorkerStatus* const slot = map_slot();
  return slot;
}

WorkerStatus& worker_status() {
  static WorkerStatus own;
  WorkerStatus* const slot = launched_status();
  return slot == nullptr ? own : *slot;
}

void report_failure(WorkerStatus& status, std::string_view message, bool secondary) {
  int none = 0;
  if (!status.failed.compare_exchange_strong(none, 1)) return;
  status.failed_at_ns = now_ns();
  status.secondary = secondary ? 1 : 0;
  write_text(status.message, message);
  status.failed.store(2);
}

}  // namespace launcher

namespace heartbeat {
namespace {

launcher::WorkerStatus& status() { return launcher::worker_status(); }

}  // namespace

void beat() { status().beats.fetch_add(1, std::memory_order_relaxed); }

void enter(Activity activity) {
  status().phase.store(static_cast<int>(activity));
  beat();
}

void iteration(std::int64_t number) {
  status().iteration.store(number);
  beat();
}

Collective::Collective() {
  status().collectives.fetch_add(1);
  status().inside_collective.fetch_add(1);
}

Collective::~Collective() {
  status().inside_collective.fetch_sub(1);
  beat();
}

void device(std::string_view name) { launcher::write_text(status().device, name); }

void run_folder(std::string_view path) {
  if (status().has_run_folder.load() != 0) return;
  launcher::write_text(status().run_folder, path);
  status().has_run_folder.store(1);
}

void failed(std::string_view message, bool secondary) {
  launcher::report_failure(status(), message, secondary);
}

void finished(int exit_code) {
  status().exit_code.store(exit_code);
  enter(Activity::kDone);
}

}  // namespace heartbeat
}  // namespace wd
