// Trains the pendulum with PPO of RLtools until its mean return reaches a goal; prints the cost as JSON.
// Sizes are constants of the program, as RLtools wants them. rltools_pendulum.py compiles and runs it:
//
//     PROGRAM SEED GOAL MOST_STEPS
//
// The return is the one that ours stops at: of the policy with its noise, over the last 100 episodes. No
// episode ends early, so it is 200 times the mean reward of the last 20,000 steps, and needs no evaluation.

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
  constexpr Index kRollout = Settings::DATASET_SIZE, kEpisode = Pendulum::EPISODE_STEP_LIMIT;
  constexpr Index kLast = (100 * kEpisode + kRollout - 1) / kRollout;  // rollouts that hold 100 episodes
  Device device;
  Config::State<Config> state;
  rlt::malloc(device, state);
  rlt::init(device, state, seed);
  std::deque<double> means;  // of rewards, by rollout
  double mean_return = -1e9, steps = 0;
  bool reached = false;
  while (!reached && steps < most_steps) {
    rlt::step(device, state);
    steps += kRollout;
    double sum = 0;
    for (Index i = 0; i < kRollout; ++i) sum += rlt::get(state.on_policy_runner_dataset.rewards, i, 0);
    means.push_back(sum / kRollout);
    if (means.size() > kLast) means.pop_front();
    sum = 0;
    for (const double mean : means) sum += mean;
    mean_return = kEpisode * sum / means.size();
    reached = means.size() == kLast && mean_return >= goal;
  }
  std::printf("{\"env_steps\": %.0f, \"return\": %.1f, \"reached\": %s}\n", steps, mean_return,
              reached ? "true" : "false");
}
