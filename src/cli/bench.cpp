// bench.cpp: `wdtrain bench`: steps a second of the environment alone, of acting in it, or of training.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <nlohmann/json.hpp>

#include "src/cli/output.h"
#include "src/cli/setup.h"
#include "src/device.h"
#include "src/rollout/random_play.h"
#include "src/suggest.h"
#include "src/trainer/timeline.h"
#include "wd/log.h"
#include "wd/trainer.h"

namespace wd::cli {
namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

constexpr std::int64_t kLastLevelCaches = 4;    // the observation rows are this many times the cache,
constexpr std::int64_t kLeastBytes = 64 << 20;  // but never less than this,
constexpr std::int64_t kMostBytes = std::int64_t{1} << 30;  // and never more
constexpr int kLeastSteps = 8, kMostSteps = 4096;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// What was measured: phases in milliseconds of one round.
struct Measured {
  std::int64_t env_steps = 0;
  double seconds = 0.0;
  const char* round = "step";  // what a round is
  std::int64_t rounds = 0;
  std::vector<std::pair<const char*, double>> phases;  // seconds over all rounds
};

// Runs rounds until the time is over; the first tenth of it, at least one round, is warm-up.
std::int64_t repeat(double seconds, Device device, const std::function<void()>& round,
                    const std::function<void()>& warm, double& elapsed) {
  const auto run = [&](double limit) {
    const Clock::time_point start = Clock::now();
    std::int64_t rounds = 0;
    do {
      round();
      synchronize(device);
      ++rounds;
      elapsed = seconds_since(start);
    } while (elapsed < limit);
    return rounds;
  };
  run(0.1 * seconds);
  warm();
  return run(seconds);
}

// Bytes that the observation rows of one step take.
std::int64_t step_bytes(const Spec& spec, int num_envs) {
  std::int64_t floats = 0;
  for (const Role& role : spec.roles)
    floats += std::int64_t{role.count} * ((role.observation_size() + 3) / 4 * 4);
  return floats * 4 * num_envs;
}

std::int64_t last_level_cache() {
  const long bytes = ::sysconf(_SC_LEVEL3_CACHE_SIZE);
  return bytes > 0 ? bytes : 0;
}

// Steps that a buffer must hold for its rows to leave the cache before they are written again.
int buffer_steps(const Spec& spec, int num_envs) {
  const std::int64_t bytes = std::clamp(kLastLevelCaches * last_level_cache(), kLeastBytes, kMostBytes);
  const std::int64_t step =
      std::max<std::int64_t>(step_bytes(spec, num_envs), 1);  // roles may observe nothing
  return static_cast<int>(std::clamp<std::int64_t>(bytes / step + 1, kLeastSteps, kMostSteps));
}

std::vector<std::string> policy_names(const Config& config) {
  std::vector<std::string> names;
  for (const PolicySettings& policy : config.policies) names.push_back(policy.name);
  return names;
}

// Random legal actions in every step; a round fills the buffer once.
Measured bench_env(const Setup& setup, int num_envs, double seconds) {
  const Spec spec = setup.environment->spec();
  ReplicasOptions options = replicas_options(setup.config, setup.device);
  options.num_envs = num_envs;
  Replicas replicas(*setup.row, *setup.environment, options);
  Trajectory trajectory(spec, policy_names(setup.config), setup.config.policy_of_role,
                        buffer_steps(spec, num_envs), num_envs, setup.device);
  Timeline timeline(setup.device);
  const Queue queue = current_queue(setup.device);
  const int steps = trajectory.steps();
  RandomPlay play{.seed = static_cast<std::uint64_t>(setup.config.trainer.seed)};
  bool masked = false;
  for (const Role& role : spec.roles) masked = masked || role.action_mask;
  replicas.step(trajectory.first_rows());
  const auto round = [&] {
    for (int t = 0; t < steps; ++t, ++play.step) {
      for (std::size_t p = 0; p < trajectory.policies().size(); ++p) {
        play.policy = static_cast<std::uint32_t>(p);
        play_at_random(queue, trajectory.policies()[p], t, t, play);
      }
      timeline.mark(Phase::kInference);
      replicas.step(trajectory.rows(t));
      timeline.mark(Phase::kEnvironment);
    }
    if (masked) trajectory.carry_over();  // what is legal now
  };
  Measured measured;
  measured.rounds =
      repeat(seconds, setup.device, round, [&] { timeline.totals(); }, measured.seconds) * steps;
  measured.env_steps = measured.rounds * num_envs;
  const auto totals = timeline.totals();
  measured.phases = {{"environment", totals[static_cast<std::size_t>(Phase::kEnvironment)]},
                     {"actions", totals[static_cast<std::size_t>(Phase::kInference)]}};
  return measured;
}

// Rollouts, or whole iterations; a round is one.
Measured bench_trainer(const Setup& setup, bool train, double seconds) {
  Trainer trainer(setup.config, *setup.row, *setup.environment, setup.device);
  const auto round = [&] { train ? static_cast<void>(trainer.iterate()) : trainer.rollout(); };
  Measured measured;
  measured.round = train ? "iteration" : "rollout";
  measured.rounds = repeat(seconds, setup.device, round, [&] { trainer.take_metrics(); }, measured.seconds);
  measured.env_steps = measured.rounds * setup.config.trainer.num_envs * setup.config.trainer.rollout_steps();
  const MetricsRow row = trainer.take_metrics();
  const auto add = [&](const char* phase, std::string_view metric) {
    for (const auto& [name, value] : row.values())
      if (name == metric) measured.phases.emplace_back(phase, value);
  };
  add("environment", "time/environment_s");
  add("inference", "time/inference_s");
  if (train) add("update", "time/update_s");
  add("other", "time/other_s");
  return measured;
}

Json report(const Setup& setup, const std::string& mode, int num_envs, const Measured& measured) {
  const double rate = static_cast<double>(measured.env_steps) / measured.seconds;
  const int agents = setup.environment->spec().num_agents();
  Json ms;
  for (const auto& [phase, seconds] : measured.phases)
    ms[phase] = 1e3 * seconds / static_cast<double>(measured.rounds);
  return {{"env", setup.row->name},
          {"mode", mode},
          {"device", setup.device.is_cuda() ? "cuda" : "cpu"},
          {"device_name", describe(setup.device)},
          {"num_envs", num_envs},
          {"agents", agents},
          {"seconds", measured.seconds},
          {"env_steps", measured.env_steps},
          {"env_steps_per_s", rate},
          {"agent_steps_per_s", rate * agents},
          {"ms_per", measured.round},
          {"ms", ms}};
}

std::string text(const Json& json) {
  std::vector<std::vector<std::string>> rows;
  for (const auto& [key, value] : json.items()) {
    if (value.is_object()) continue;
    rows.push_back({key, value.is_string()         ? value.get<std::string>()
                         : value.is_number_float() ? concat(value.get<double>())
                                                   : value.dump()});
  }
  for (const auto& [phase, value] : json["ms"].items())
    rows.push_back({"ms " + phase, concat(value.get<double>())});
  return table(rows, 0);
}

}  // namespace

int bench(const CommandLine& line) {
  Arguments arguments(line, "bench",
                      "Measure speed: of the environment with random actions, of acting in it, of training.");
  ConfigOptions options;
  std::string mode = "env", seconds = "5", num_envs;
  bool json = false;
  options.add_to(arguments, {{"--seed", "trainer.seed"}, {"--train_batch_size", "trainer.train_batch_size"}});
  arguments.option("--mode", mode, "env | act | train",
                   "env: step with random actions; act: roll out policies; train: iterate");
  arguments.option("--num_envs", num_envs, "INT", "replicas of the environment");
  arguments.option("--seconds", seconds, "NUMBER", "length of the measurement (5)");
  arguments.flag("--json", json, "one JSON object on stdout");
  if (!arguments.parse()) return 0;
  if (mode != "env" && mode != "act" && mode != "train") {
    throw UsageError("--mode " + mode + ": must be env, act or train" +
                     suggestion(mode, {"env", "act", "train"}));
  }
  const double limit = parse_number("--seconds", seconds, above(0.0, 1e6));
  ConfigSources sources = options.sources();
  // The environment alone has no training batch that the number of replicas must divide.
  if (!num_envs.empty() && mode != "env")
    sources.overrides.push_back({"trainer.num_envs", num_envs, "--num_envs"});
  const Setup setup = load_setup(sources);
  const auto replicas =
      static_cast<int>(mode == "env" && !num_envs.empty() ? parse_integer("--num_envs", num_envs, {1, 1e7})
                                                          : setup.config.trainer.num_envs);
  logging::info(concat("bench: ", setup.row->name, ", mode ", mode, ", ", replicas, " replicas, ",
                       describe(setup.device)));
  const Measured measured =
      mode == "env" ? bench_env(setup, replicas, limit) : bench_trainer(setup, mode == "train", limit);
  const Json result = report(setup, mode, replicas, measured);
  print(json ? result.dump() + "\n" : text(result));
  return 0;
}

}  // namespace wd::cli
