// workloads.cpp: the work of a round, and its amount.
#include "src/bench/workloads.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "src/device/device.h"
#include "src/device/profile_kernels.h"
#include "wd/game.h"
#include "wd/trainer.h"

namespace wd::bench {
namespace {

constexpr std::int64_t kLastLevelCaches = 4;               // size of the buffers relative to the cache,
constexpr std::int64_t kMinBytes = 64 << 20;               // lower bound of that size,
constexpr std::int64_t kMaxBytes = std::int64_t{1} << 30;  // and its upper bound
constexpr int kMinSteps = 8, kMaxSteps = 4096;

std::int64_t last_level_cache() {
  const long bytes = ::sysconf(_SC_LEVEL3_CACHE_SIZE);
  return bytes > 0 ? bytes : 0;
}

std::int64_t buffer_steps(RolloutShape shape) {
  const std::int64_t bytes = std::clamp(kLastLevelCaches * last_level_cache(), kMinBytes, kMaxBytes);
  shape.steps = 1;
  const double one = trajectory_bytes(shape);
  shape.steps = 2;
  const double step = trajectory_bytes(shape) - one;
  return std::clamp<std::int64_t>(bytes / static_cast<std::int64_t>(step) + 1, kMinSteps, kMaxSteps);
}

Result describe(const Setting& setting, const char* mode) {
  Result result;
  result.env = setting.environment.name();
  result.mode = mode;
  result.device = setting.device.is_cuda() ? "cuda" : "cpu";
  result.device_name = wd::describe(setting.device);
  result.agents = setting.environment.spec().num_agents();
  return result;
}

void run(const Workload& workload, double seconds, Result& result) {
  result.windows = measure(workload, seconds);
  result.peak_bytes = peak_memory(workload.device);
  if (!workload.device.is_cuda()) return;
  profile::KernelTracer tracer;
  workload.round();
  synchronize(workload.device);
  const profile::KernelTrace trace = tracer.stop();
  result.launches = Launches{trace.launches, trace.kernel_calls()};
}

Result bench_trainer(const Setting& setting, bool train) {
  Result result = describe(setting, train ? "train" : "act");
  Config config = setting.config;
  for (PolicySettings& policy : config.policies) policy.algorithm->learn_at_once();
  Trainer trainer(config, setting.environment, setting.device);
  const Trajectory& trajectory = trainer.trajectory();
  result.num_envs = trajectory.num_envs();
  result.rollout_steps = result.steps_in_round = trajectory.steps();
  result.round = train ? "iteration" : "rollout";
  const Work environment = environment_work(trajectory),
             inference = inference_work(trajectory, setting.config);
  if (setting.device.is_cuda() && setting.config.trainer.cuda_graphs) {
    result.phases = {{"rollout", Phase::kRollout, environment + inference}};
  } else {
    result.phases = {{"environment", Phase::kEnvironment, environment},
                     {"inference", Phase::kInference, inference}};
  }
  if (train) result.phases.push_back({"update", Phase::kUpdate, update_work(trajectory, setting.config)});
  result.phases.push_back({"other", Phase::kOther, {}});
  PhaseSeconds before = trainer.phase_seconds();
  const auto phases = [&] {
    PhaseSeconds now = trainer.phase_seconds(), since = now;
    for (std::size_t k = 0; k < now.size(); ++k) since[k] -= before[k];
    before = now;
    return since;
  };
  const auto round = [&] { train ? static_cast<void>(trainer.iterate()) : trainer.rollout(); };
  run({round, phases, setting.device}, setting.seconds, result);
  return result;
}

}  // namespace

Result bench_environment(const Setting& setting, int num_envs, int steps) {
  const Spec spec = setting.environment.spec();
  const Device device = setting.device;
  RolloutShape shape = RolloutShape::of(spec, setting.config, num_envs, device);
  for (CastPolicy& policy : shape.cast.policies) policy.state_size = policy.opponents = 0;  // no network runs
  if (steps == 0) steps = static_cast<int>(buffer_steps(shape));
  shape.steps = steps;
  ReplicasOptions options = replicas_options(setting.config, device);
  options.num_envs = num_envs;
  Game game(setting.environment, options, std::move(shape));
  const Trajectory& trajectory = game.trajectory();
  for (std::size_t p = 0; p < trajectory.policies().size(); ++p)
    game.add(std::make_unique<RandomPlayer>(device, p));
  Timeline timeline(device);
  Player::Draw draw{.seed = static_cast<std::uint64_t>(setting.config.trainer.seed)};
  const bool masked = std::ranges::any_of(spec.roles, &Role::action_mask);
  game.begin();
  const auto round = [&] {
    for (int t = 0; t < steps; ++t, ++draw.step) {
      game.act(t, draw);
      timeline.mark(Phase::kInference);
      game.step(t);
      timeline.mark(Phase::kEnvironment);
    }
    if (masked) game.begin();  // legal actions in the next step
  };
  Result result = describe(setting, "env");
  result.num_envs = num_envs;
  result.rollout_steps = result.steps_in_round = steps;
  result.by_step = true;
  result.phases = {{"environment", Phase::kEnvironment, environment_work(trajectory)},
                   {"actions", Phase::kInference, random_play_work(trajectory)}};
  run({round, [&] { return timeline.totals(); }, device}, setting.seconds, result);
  return result;
}

Result bench_act(const Setting& setting) { return bench_trainer(setting, false); }
Result bench_train(const Setting& setting) { return bench_trainer(setting, true); }

}  // namespace wd::bench
