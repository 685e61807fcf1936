// probe.cpp: runs one warm-up iteration, then as many iterations as the timing needs.
#include "src/autoscale/probe.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "src/autoscale/report.h"
#include "src/base/atomic_file.h"
#include "src/base/host_memory.h"
#include "src/base/stopwatch.h"
#include "src/device/device.h"
#include "src/device/out_of_memory.h"
#include "src/report/format.h"
#include "src/report/plain_error.h"
#include "wd/detail/parallel.h"
#include "wd/error.h"
#include "wd/heartbeat.h"
#include "wd/launch.h"
#include "wd/trainer.h"

namespace wd::scaling {
namespace {

// If a probe without a reference has a warm-up iteration of at least this length, that iteration is itself
// used as the timing. The cost of warming up (a tenth of 7 s, where pages are touched for the first time) is
// worth less than a second iteration.
constexpr double kLongSeconds = 10.0;
constexpr std::size_t kMaxTurns = 200;
// Turn length when two settings take turns: short, so that anything that slows the machine slows both; long
// enough for the clock's resolution and for caches to fill.
constexpr double kTurnSeconds = 0.1;
constexpr double kPartOfOther = 0.25;  // a turn lasts at least this fraction of the other setting's turn
constexpr std::size_t kMinTurns = 3;   // so that warming up does not take most of the time

// Thrown if a probe is too slow. The text is shown to the user.
struct TooSlow {
  std::string why;
};

// The worker process, which both settings of a probe share.
struct Worker {
  const Config& config;
  const Environment& environment;
  Device device;
  ProcessGroup group;
  double max_seconds;  // 0: no limit
  Stopwatch watch = {};

  // On a GPU, the clock cannot be checked within an iteration that is replayed as a CUDA graph.
  bool replays() const { return device.is_cuda() && config.trainer.cuda_graphs; }
  bool out_of_time() const { return max_seconds > 0.0 && watch.seconds() > max_seconds; }
};

// One rank's part of training with one setting.
class Training {
 public:
  // Also warms up. Each warm-up iteration may take at most `max_seconds` (0: no limit). Throws TooSlow, as
  // iterate() does.
  Training(const Worker& worker, const Probe& probe, double max_seconds)
      : worker_(worker),
        probe_(probe),
        trainer_(with(worker.config, probe), worker.environment, worker.device, worker.group) {
    // The second iteration of a kind captures its graph, which also takes memory.
    const int iterations = worker.replays() ? 2 : 1;
    do warm_up_ = iterate(max_seconds);
    while (trainer_.times_made() < iterations);
    static_cast<void>(trainer_.take_metrics());
    static_cast<void>(trainer_.snapshot());  // training needs the memory that a checkpoint needs
  }

  double warm_up() const { return warm_up_; }  // [s] of the last warm-up iteration

  // Environment steps per second.
  double rate(double seconds, int iterations = 1) const {
    return static_cast<double>(iterations) * static_cast<double>(probe_.batch()) / seconds;
  }

  // Returns the seconds of the slowest rank. All ranks.
  double iterate(double max_seconds = 0.0) {
    const Stopwatch watch;
    heartbeat::iteration(trainer_.counts().iteration + 1);
    std::function<bool()> should_stop;
    const auto too_long = [&] { return max_seconds > 0.0 && watch.seconds() > max_seconds; };
    const bool whole = worker_.replays() || !trainer_.can_be_undone();  // nothing stops within an iteration
    if (!whole) should_stop = [&] { return worker_.out_of_time() || too_long(); };
    const bool complete = trainer_.iterate(should_stop);
    synchronize(worker_.device);
    const at::Tensor told = at::tensor({watch.seconds(), worker_.out_of_time() ? 1.0 : 0.0}, at::kDouble);
    trainer_.group().all_reduce(told, ReduceOp::kMax);
    const auto seconds = told[0].item<double>();
    if (told[1].item<double>() != 0.0 && (!complete || whole))
      throw TooSlow{"not done in " + report::format_duration(worker_.max_seconds)};
    if (!complete || (max_seconds > 0.0 && seconds > max_seconds)) {
      throw TooSlow{concat("an iteration takes longer than autoscale.max_iteration_seconds = ", max_seconds)};
    }
    return seconds;
  }

 private:
  static Config with(Config config, const Probe& probe) {
    config.trainer.num_envs = probe.num_envs;
    config.trainer.train_batch_size = probe.batch();
    for (PolicySettings& policy : config.policies) policy.algorithm->learn_at_once();
    return config;
  }

  const Worker& worker_;
  Probe probe_;
  Trainer trainer_;
  double warm_up_ = 0.0;
};

std::uint64_t peak(const Worker& worker) {
  const at::Tensor bytes = at::full({1}, static_cast<std::int64_t>(used_memory(worker.device)), at::kLong);
  worker.group.all_reduce(bytes, ReduceOp::kMax);
  return static_cast<std::uint64_t>(bytes.item<std::int64_t>());
}

// The rate is a mean, not a quantile over iterations: a quantile would favor settings with short iterations.
struct Turn {
  double seconds = 0.0, rate = 0.0;
};

Turn take_turn(Training& training, double min_seconds) {
  Turn turn;
  int iterations = 0;
  for (; turn.seconds < min_seconds; ++iterations) turn.seconds += training.iterate();
  turn.rate = training.rate(turn.seconds, iterations);
  return turn;
}

// Returns the ratios of the speeds of a and b, one per pair of turns. The order alternates, so that a machine
// that slows down favors neither. All ranks see the same seconds.
std::vector<double> in_turns(Training& a, Training& b, double measured_seconds) {
  std::vector<double> ratios;
  Turn of_a, of_b;
  double sum = 0.0;
  do {
    const auto take_a = [&] { of_a = take_turn(a, std::max(kTurnSeconds, kPartOfOther * of_b.seconds)); };
    const auto take_b = [&] { of_b = take_turn(b, std::max(kTurnSeconds, kPartOfOther * of_a.seconds)); };
    const bool a_first = ratios.size() % 2 == 0;
    if (a_first) take_a();
    take_b();
    if (!a_first) take_a();
    ratios.push_back(of_a.rate / of_b.rate);
    sum += of_a.seconds + of_b.seconds;
  } while (ratios.size() < kMinTurns || (ratios.size() < kMaxTurns && sum < 2.0 * measured_seconds));
  return ratios;
}

ProbeEnd measure(const Worker& worker, const ProbeOrder& order) {
  try {
    Training training(worker, order.probe, order.max_iteration_seconds);
    ProbeEnd outcome{.kind = Kind::kFits, .bytes = peak(worker)};
    if (order.reference) {
      Training other(worker, *order.reference, 0.0);
      outcome.ratios = in_turns(training, other, order.measured_seconds);
    } else {
      const double warm_up = training.warm_up();
      outcome.env_steps_per_s =
          warm_up >= kLongSeconds ? training.rate(warm_up) : take_turn(training, order.measured_seconds).rate;
    }
    return outcome;
  } catch (const TooSlow& slow) {
    return {.kind = Kind::kTooSlow, .bytes = peak(worker), .detail = slow.why};
  }
}

int train_shortly(const ProbeOrder& order, const Config& config, const Environment& environment) {
  Membership self = read_membership();
  if (self.world_size == 1) self = {};
  share_threads(config.trainer.threads, self.local_world_size);
  const Device device = select_device(static_cast<DeviceRequest>(config.trainer.device), self.local_rank);
  if (!device.is_cuda() && order.memory_bytes > 0) limit_memory(order.memory_bytes);
  const ProcessGroup group = join({}, self, device);
  const Worker worker{config, environment, device, group, order.max_seconds};
  const ProbeEnd outcome = measure(worker, order);
  if (group.leads()) write_file_atomically(order.answer, outcome_json(outcome), Durability::kReplace);
  return 0;
}

}  // namespace

int run_probe(const ProbeOrder& order, const Config& config, const Environment& environment) {
  try {
    return train_shortly(order, config, environment);
  } catch (const std::exception& error) {
    if (!ran_out_of_memory(error)) throw;
    const std::string message = plain_message(error);
    heartbeat::failed(message.substr(0, message.find(';')), false);
    return kOutOfMemoryCode;
  }
}

}  // namespace wd::scaling
