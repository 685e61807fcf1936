// gang.cpp: starts workers and runs the loop that watches them. gang_end.cpp handles failures.
#include "src/launcher/gang.h"

#include <poll.h>
#include <sys/wait.h>

#include <algorithm>

#include "src/worker/monotonic.h"
#include "wd/error.h"
#include "wd/heartbeat.h"

namespace wd::launcher {
namespace {

constexpr int kTurnMilliseconds = 50;
// If a turn takes longer, this process was stopped in the meantime.
constexpr std::int64_t kGap = kNanosecondsInASecond;

}  // namespace

Gang::Gang(const Launch& launch, int restart, std::filesystem::path restart_folder)
    : launch_(launch),
      restart_(restart),
      restart_folder_(std::move(restart_folder)),
      memory_(launch.options.num_workers),
      hangs_(launch.options, memory_.slots(), now_ns()) {
  for (int k = 0; k < launch.options.num_workers; ++k)
    workers_.push_back({.output = WorkerOutput(rank_of(k), launch.console)});
}

Gang::~Gang() {
  for (Worker& worker : workers_) {
    if (worker.alive) ::kill(worker.pid, SIGKILL);
  }
  if (state_ == State::kKilling) return;  // the kernel did not end them in time
  for (Worker& worker : workers_) {
    if (worker.alive) ::waitpid(worker.pid, nullptr, 0);
  }
}

int Gang::rank_of(int local_rank) const {
  return launch_.options.node_index * launch_.options.num_workers + local_rank;
}

ChildPlan Gang::plan_for(int local_rank, const Meeting& meeting) const {
  const LaunchOptions& options = launch_.options;
  const int rank = rank_of(local_rank);
  const std::string node = std::to_string(options.node_index);
  ChildPlan plan{.command = launch_.command,
                 .variables = {{"RANK", std::to_string(rank)},
                               {"LOCAL_RANK", std::to_string(local_rank)},
                               {"WORLD_SIZE", std::to_string(options.num_nodes * options.num_workers)},
                               {"LOCAL_WORLD_SIZE", std::to_string(options.num_workers)},
                               {"GROUP_RANK", node},
                               {"NODE_RANK", node},
                               {"MASTER_ADDR", meeting.address},
                               {"MASTER_PORT", std::to_string(meeting.port)},
                               {"TORCHELASTIC_RESTART_COUNT", std::to_string(restart_)},
                               {"TORCHELASTIC_MAX_RESTARTS", std::to_string(options.max_restarts)},
                               {"TORCHELASTIC_RUN_ID", launch_.run_id},
                               {"WD_TOKEN", meeting.token},
                               {kStatusVariable, std::to_string(memory_.descriptor())}},
                 .inherited = {memory_.descriptor()},
                 .keeps_stdout = rank == 0,
                 .signal_mask = launch_.signals.mask_before()};
  if (rank == 0 && meeting.store) {
    plan.variables.emplace_back("WD_STORE_FD", std::to_string(meeting.store.get()));
    plan.inherited.push_back(meeting.store.get());
  }
  if (!restart_folder_.empty()) plan.variables.emplace_back("WD_RESTART_DIR", restart_folder_.string());
  plan.variables.insert(plan.variables.end(), launch_.variables.begin(), launch_.variables.end());
  if (!launch_.gpus.empty())
    plan.variables.emplace_back("CUDA_VISIBLE_DEVICES", launch_.gpus[static_cast<std::size_t>(local_rank)]);
  return plan;
}

// Closes the socket here as soon as rank 0 has it, so that connections to a dead rank 0 are refused instead
// of being kept waiting.
void Gang::start(Meeting meeting) {
  for (std::size_t k = 0; k < workers_.size(); ++k) {
    Child child = start_child(plan_for(static_cast<int>(k), meeting));
    workers_[k].pid = child.pid;
    workers_[k].alive = true;
    workers_[k].output.add(std::move(child.err));
    workers_[k].output.add(std::move(child.out));
  }
}

Ending Gang::watch(const std::function<void()>& while_starting) {
  turned_at_ = now_ns();
  bool starting = true;
  while (any_alive()) {
    wait();
    take_signals();
    reap();
    for (Worker& worker : workers_) worker.output.read();
    find_folder();
    const std::int64_t now = now_ns();
    if (now - turned_at_ > kGap) ignore_gap(now - turned_at_);
    turned_at_ = now;
    if (state_ == State::kKilling && now > deadline_) break;
    act(now);
    starting = starting && any_starting();
    if (starting) while_starting();
  }
  for (const WorkerStatus& slot : memory_.slots())
    ending_.iteration = std::max(ending_.iteration, slot.iteration.load());
  return ending_;
}

// Waits until something happens or the turn is over.
void Gang::wait() {
  std::vector<pollfd> questions{{.fd = launch_.signals.descriptor(), .events = POLLIN, .revents = 0}};
  for (const Worker& worker : workers_) {
    for (const int descriptor : worker.output.descriptors())
      questions.push_back({.fd = descriptor, .events = POLLIN, .revents = 0});
  }
  // Poll() ignores a descriptor of -1.
  questions.push_back({.fd = launch_.console.waits_for(), .events = POLLOUT, .revents = 0});
  ::poll(questions.data(), questions.size(), kTurnMilliseconds);
  launch_.console.flush();
}

void Gang::reap() {
  for (std::size_t k = 0; k < workers_.size(); ++k) {
    int status = 0;
    if (workers_[k].alive && ::waitpid(workers_[k].pid, &status, WNOHANG) == workers_[k].pid)
      on_exit(static_cast<int>(k), status);
  }
}

void Gang::on_exit(int local_rank, int status) {
  Worker& worker = workers_[static_cast<std::size_t>(local_rank)];
  worker.alive = false;
  find_folder();
  worker.output.close();
  classify_exit(local_rank, status);
}

// The run's folder is the first folder that a worker names.
void Gang::find_folder() {
  if (!ending_.run_folder.empty()) return;
  for (const WorkerStatus& slot : memory_.slots()) {
    if (slot.has_run_folder.load() == 0) continue;
    const std::filesystem::path folder = read_text(slot.run_folder);
    if (!folder.is_absolute()) continue;
    ending_.run_folder = folder;
    for (Worker& worker : workers_) worker.output.open_log(folder, restart_);
    return;
  }
}

void Gang::send(int local_rank, int signal) {
  const Worker& worker = workers_[static_cast<std::size_t>(local_rank)];
  if (worker.alive) ::kill(worker.pid, signal);
}

void Gang::send_all(int signal) {
  for (std::size_t k = 0; k < workers_.size(); ++k) send(static_cast<int>(k), signal);
}

bool Gang::any_alive() const { return std::ranges::any_of(workers_, &Worker::alive); }

bool Gang::any_starting() const {
  return std::ranges::any_of(memory_.slots(), [](const WorkerStatus& slot) {
    return slot.phase.load() == static_cast<int>(heartbeat::Activity::kStarting);
  });
}

std::vector<bool> Gang::alive() const {
  std::vector<bool> result;
  for (const Worker& worker : workers_) result.push_back(worker.alive);
  return result;
}

}  // namespace wd::launcher
