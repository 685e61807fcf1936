// Trains the pendulum with PPO of RLtools until its mean return reaches a goal; prints the cost as JSON.
// Sizes are constants of the program, as RLtools wants them. rltools_pendulum.py compiles and runs it:
//
//     PROGRAM SEED GOAL MOST_STEPS
//
// The return is the one that ours stops at: of the last 100 episodes of training, in which the policy acts
// with its noise. So neither side spends time on evaluation.

// The order matters: definitions must precede the templates that use them.
// clang-format off
#include <rl_tools/operations/cpu_mux.h>
#include <rl_tools/rl/environments/pendulum/operations_cpu.h>
#include <rl_tools/nn/optimizers/adam/instance/operations_generic.h>
#include <rl_tools/nn/operations_cpu_mux.h>
#include <rl_tools/nn/layers/standardize/operations_generic.h>
#include <rl_tools/nn_models/mlp_unconditional_stddev/operations_generic.h>
#include <rl_tools/nn_models/sequential/operations_generic.h>
#include <rl_tools/nn/optimizers/adam/operations_generic.h>
#include <rl_tools/rl/algorithms/ppo/loop/core/config.h>
#include <rl_tools/rl/algorithms/ppo/loop/core/operations_generic.h>
// clang-format on

#include <cstdio>
#include <cstdlib>
#include <deque>
#include <numeric>
#include <vector>

namespace rlt = rl_tools;

using Device = rlt::devices::DEVICE_FACTORY<>;
using Index = Device::index_t;
using Random = Device::SPEC::RANDOM::ENGINE<>;
using Types = rlt::numeric_types::Policy<float>;
using Pendulum = rlt::rl::environments::Pendulum<rlt::rl::environments::pendulum::Specification<
    float, Index, rlt::rl::environments::pendulum::DefaultParameters<float>>>;

struct Settings : rlt::rl::algorithms::ppo::loop::core::DefaultParameters<Types, Index, Pendulum> {
  static constexpr Index STEP_LIMIT = 1'000'000;  // this program stops before
  static constexpr Index ACTOR_HIDDEN_DIM = HIDDEN, CRITIC_HIDDEN_DIM = HIDDEN;
  static constexpr Index EPISODE_STEP_LIMIT = Pendulum::EPISODE_STEP_LIMIT;
  static constexpr Index N_ENVIRONMENTS = REPLICAS, ON_POLICY_RUNNER_STEPS_PER_ENV = STEPS;
  static constexpr Index DATASET_SIZE = N_ENVIRONMENTS * ON_POLICY_RUNNER_STEPS_PER_ENV, BATCH_SIZE = BATCH;
  struct OPTIMIZER_PARAMETERS : rlt::nn::optimizers::adam::DEFAULT_PARAMETERS_TENSORFLOW<Types> {
    static constexpr float ALPHA = LEARNING_RATE;
  };
  struct PPO_PARAMETERS : rlt::rl::algorithms::ppo::DefaultParameters<Types, Index, BATCH> {
    static constexpr float GAMMA = DISCOUNT, ACTION_ENTROPY_COEFFICIENT = ENTROPY;
    static constexpr Index N_EPOCHS = EPOCHS;
  };
};
using Config = rlt::rl::algorithms::ppo::loop::core::Config<Types, Index, Random, Pendulum, Settings>;

int main(int count, char** arguments) {
  if (count != 4) {
    std::fprintf(stderr, "usage: %s SEED GOAL MOST_STEPS\n", arguments[0]);
    return 2;
  }
  const Index seed = std::strtoull(arguments[1], nullptr, 10);
  const double goal = std::atof(arguments[2]), most_steps = std::atof(arguments[3]);
  constexpr Index kReplicas = Settings::N_ENVIRONMENTS, kRollout = Settings::DATASET_SIZE;
  Device device;
  Config::State<Config> state;
  rlt::malloc(device, state);
  rlt::init(device, state, seed);
  std::vector<double> running(kReplicas);  // return of each replica's episode
  std::deque<double> last;                 // returns of the last 100 episodes
  double mean_return = -1e9, steps = 0;
  bool reached = false;
  while (!reached && steps < most_steps) {
    rlt::step(device, state);
    steps += kRollout;
    const auto& rows = state.on_policy_runner_dataset;  // step by step, in each the replicas
    for (Index i = 0; i < kRollout; ++i) {
      double& sum = running[i % kReplicas];
      sum += rlt::get(rows.rewards, i, 0);
      if (!rlt::get(rows.truncated, i, 0)) continue;
      last.push_back(sum);
      sum = 0;
      if (last.size() > 100) last.pop_front();
    }
    if (last.size() < 100) continue;
    mean_return = std::accumulate(last.begin(), last.end(), 0.0) / 100;
    reached = mean_return >= goal;
  }
  std::printf("{\"env_steps\": %.0f, \"return\": %.1f, \"reached\": %s}\n", steps, mean_return,
              reached ? "true" : "false");
}
