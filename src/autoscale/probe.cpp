// probe.cpp: an iteration that warms up, then as many as it takes to be timed.
#include "src/autoscale/probe.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <new>

#include "src/autoscale/budget.h"
#include "src/autoscale/json_fields.h"
#include "src/autoscale/report.h"
#include "src/device.h"
#include "src/run/format.h"
#include "wd/atomic_file.h"
#include "wd/error.h"
#include "wd/heartbeat.h"
#include "wd/launch.h"
#include "wd/parallel.h"
#include "wd/trainer.h"

namespace wd::scaling {
namespace {

using Clock = std::chrono::steady_clock;

// A first iteration of this length is timed itself: what warming up costs is lost in it.
constexpr double kLongSeconds = 4.0;
constexpr int kMostIterations = 200;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// The lower quartile: whatever else goes on in a machine only makes iterations longer.
double undisturbed(std::vector<double> seconds) {
  std::ranges::sort(seconds);
  return seconds[(seconds.size() - 1) / 4];
}

// One rank's part of a probe.
class Timing {
 public:
  // replays: on a GPU, where nobody can look at the clock within an iteration.
  Timing(const ProbeOrder& order, Trainer& trainer, Device device, bool replays)
      : order_(order), trainer_(trainer), device_(device), replays_(replays) {}

  Outcome take() {
    const std::optional<double> first = iterate();
    if (!first) return too_slow();
    static_cast<void>(trainer_.take_metrics());
    static_cast<void>(trainer_.snapshot());  // what a checkpoint needs, a training needs
    std::vector<double> measured;
    if (*first >= kLongSeconds) {
      measured.push_back(*first);
    } else {
      for (double sum = 0.0; sum < order_.measured_seconds && measured.size() < kMostIterations;) {
        const std::optional<double> one = iterate();
        if (!one) return too_slow();
        measured.push_back(*one);
        sum += *one;
      }
    }
    return {.kind = Kind::kFits,
            .bytes = peak(),
            .env_steps_per_s = static_cast<double>(order_.probe.batch()) / undisturbed(measured)};
  }

 private:
  // Seconds of the slowest rank; none where the time was over.
  std::optional<double> iterate() {
    const Clock::time_point start = Clock::now();
    heartbeat::iteration(trainer_.counts().iteration + 1);
    Trainer::IterateOptions options;
    if (!replays_) options.give_up = [this] { return out_of_time(); };
    const bool complete = trainer_.iterate(options);
    synchronize(device_);
    const at::Tensor told = at::tensor({seconds_since(start), out_of_time() ? 1.0 : 0.0}, at::kDouble);
    trainer_.group().all_reduce(told, ReduceOp::kMax);
    if (!complete || (replays_ && told[1].item<double>() != 0.0)) return {};
    return told[0].item<double>();
  }

  bool out_of_time() const { return order_.max_seconds > 0.0 && seconds_since(start_) > order_.max_seconds; }

  std::uint64_t peak() const {
    const at::Tensor bytes = at::full({1}, static_cast<std::int64_t>(used_memory(device_)), at::kLong);
    trainer_.group().all_reduce(bytes, ReduceOp::kMax);
    return static_cast<std::uint64_t>(bytes.item<std::int64_t>());
  }

  Outcome too_slow() const {
    return {.kind = Kind::kTooSlow,
            .bytes = peak(),
            .detail = "not done in " + run::format_duration(order_.max_seconds)};
  }

  const ProbeOrder& order_;
  Trainer& trainer_;
  Device device_;
  bool replays_;
  Clock::time_point start_ = Clock::now();
};

int train_shortly(const ProbeOrder& order, const Config& config, const EnvironmentRow& row,
                  const Environment& environment) {
  Membership self = read_membership();
  if (self.world_size == 1) self = {};
  share_threads(config.trainer.threads, self.local_world_size);
  const Device device = select_device(static_cast<DeviceRequest>(config.trainer.device), self.local_rank);
  if (!device.is_cuda() && order.memory_bytes > 0) limit_memory(order.memory_bytes);
  const ProcessGroup group = join({}, self, device);
  Trainer trainer(config, row, environment, device, group);
  const Outcome outcome =
      Timing(order, trainer, device, device.is_cuda() && config.trainer.cuda_graphs).take();
  if (group.leads()) write_file_atomically(order.answer, outcome_json(outcome), Durability::kReplace);
  return 0;
}

}  // namespace

bool is_out_of_memory(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) return true;
  std::string text = error.what();
  std::ranges::transform(text, text.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  // torch's CPU allocator, CUDA and its libraries, the system.
  return std::ranges::any_of(std::array{"out of memory", "can't allocate memory", "cannot allocate memory",
                                        "cublas_status_alloc_failed"},
                             [&](const char* words) { return text.find(words) != std::string::npos; });
}

int run_probe(const ProbeOrder& order, Config config, const EnvironmentRow& row,
              const Environment& environment) {
  config.trainer.num_envs = order.probe.num_envs;
  config.trainer.train_batch_size = order.probe.batch();
  try {
    return train_shortly(order, config, row, environment);
  } catch (const std::exception& error) {
    if (!is_out_of_memory(error)) throw;
    const std::string message = error.what();
    heartbeat::failed(message.substr(0, message.find('\n')), false);
    return kOutOfMemoryCode;
  }
}

std::string order_json(const ProbeOrder& order) {
  return Json{{"num_envs", order.probe.num_envs},   {"rollout_steps", order.probe.rollout_steps},
              {"max_seconds", order.max_seconds},   {"measured_seconds", order.measured_seconds},
              {"memory_bytes", order.memory_bytes}, {"answer", order.answer.string()}}
      .dump();
}

ProbeOrder parse_order(std::string_view written) {
  const Json json = Json::parse(written, nullptr, false);
  WD_CHECK(json.is_object(), kProbeVariable, " is set, and holds no order for a probe");
  try {
    return {.probe = {count(json, "num_envs", 1), count(json, "rollout_steps", 1)},
            .max_seconds = number(json, "max_seconds", 0.0),
            .measured_seconds = number(json, "measured_seconds", 0.0),
            .memory_bytes = static_cast<std::uint64_t>(count(json, "memory_bytes", 0)),
            .answer = text(json, "answer")};
  } catch (const Json::exception& error) {
    throw std::runtime_error(concat(kProbeVariable, ": ", error.what()));
  }
}

}  // namespace wd::scaling
