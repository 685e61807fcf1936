// Trains the pendulum with SAC or TD3 of RLtools and evaluates the greedy policy; prints the cost as JSON.
// Sizes are constants of the program, as RLtools wants them. pendulum.py compiles and runs it:
//
//     PROGRAM SEED GOAL EVERY
//
// After each EVERY steps, the policy without noise plays 100 episodes, which the times leave out: processor
// time and wall time are those of RLtools' own step function (RLtools allocates its state before). After the
// last step it plays 300 more. Macros give the settings: OF_SAC (else TD3 with OF_NOISE), OF_STEPS, OF_BATCH,
// OF_HIDDEN, OF_DISCOUNT, OF_LEARNING_RATE, OF_WARM_UP.

// The order matters: definitions must precede the templates that use them.
// clang-format off
#include <rl_tools/operations/cpu_mux.h>
#include <rl_tools/rl/environments/pendulum/operations_cpu.h>
#include <rl_tools/nn/optimizers/adam/instance/operations_generic.h>
#include <rl_tools/nn/operations_cpu_mux.h>
#include <rl_tools/nn/layers/sample_and_squash/operations_generic.h>
#include <rl_tools/nn/layers/standardize/operations_generic.h>
#include <rl_tools/nn/layers/td3_sampling/operations_generic.h>
#include <rl_tools/nn_models/mlp/operations_generic.h>
#include <rl_tools/nn_models/sequential/operations_generic.h>
#include <rl_tools/nn/optimizers/adam/operations_generic.h>
#ifdef OF_SAC
#include <rl_tools/rl/algorithms/sac/loop/core/config.h>
#include <rl_tools/rl/algorithms/sac/loop/core/operations_generic.h>
#else
#include <rl_tools/rl/algorithms/td3/loop/core/config.h>
#include <rl_tools/rl/algorithms/td3/loop/core/operations_generic.h>
#endif
#include <rl_tools/rl/loop/steps/evaluation/config.h>
#include <rl_tools/rl/loop/steps/evaluation/operations_generic.h>
// clang-format on

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>

namespace rlt = rl_tools;

using Device = rlt::devices::DEVICE_FACTORY<>;
using Index = Device::index_t;
using Random = Device::SPEC::RANDOM::ENGINE<>;
using Types = rlt::numeric_types::Policy<float>;
using Pendulum = rlt::rl::environments::Pendulum<rlt::rl::environments::pendulum::Specification<
    float, Index, rlt::rl::environments::pendulum::DefaultParameters<float>>>;
#ifdef OF_SAC
namespace algorithm = rlt::rl::algorithms::sac;
#else
namespace algorithm = rlt::rl::algorithms::td3;
#endif

constexpr Index kSteps = OF_STEPS, kHidden = OF_HIDDEN, kWarmUp = OF_WARM_UP, kEpisodes = 100;
constexpr Index kSeedOfEvaluation = 1000;

struct Adam : rlt::nn::optimizers::adam::DEFAULT_PARAMETERS_TENSORFLOW<Types> {
  static constexpr float ALPHA = OF_LEARNING_RATE;
};
struct Settings : algorithm::loop::core::DefaultParameters<Types, Index, Pendulum> {
#ifdef OF_SAC
  struct SAC_PARAMETERS : algorithm::DefaultParameters<Types, Index, Pendulum::ACTION_DIM> {
    static constexpr float GAMMA = OF_DISCOUNT;
    static constexpr Index ACTOR_BATCH_SIZE = OF_BATCH, CRITIC_BATCH_SIZE = OF_BATCH;
  };
  using ACTOR_OPTIMIZER_PARAMETERS = Adam;
  using CRITIC_OPTIMIZER_PARAMETERS = Adam;
  using ALPHA_OPTIMIZER_PARAMETERS = Adam;
#else
  struct TD3_PARAMETERS : algorithm::DefaultParameters<Types, Index> {
    static constexpr float GAMMA = OF_DISCOUNT;
    static constexpr Index ACTOR_BATCH_SIZE = OF_BATCH, CRITIC_BATCH_SIZE = OF_BATCH;
  };
  using OPTIMIZER_PARAMETERS = Adam;
  static constexpr float EXPLORATION_NOISE = OF_NOISE;
#endif
  static constexpr Index N_WARMUP_STEPS = kWarmUp, N_WARMUP_STEPS_CRITIC = kWarmUp,
                         N_WARMUP_STEPS_ACTOR = kWarmUp;
  static constexpr Index STEP_LIMIT = kSteps, REPLAY_BUFFER_CAP = kSteps;
  static constexpr Index ACTOR_HIDDEN_DIM = kHidden, CRITIC_HIDDEN_DIM = kHidden;
};
using Core = algorithm::loop::core::Config<Types, Index, Random, Pendulum, Settings>;
using Config = rlt::rl::loop::steps::evaluation::Config<
    Core, rlt::rl::loop::steps::evaluation::Parameters<Types, Index, Core, kEpisodes, kSteps>>;
using State = Config::State<Config>;

double mean_return(Device& device, State& state) {
  rlt::rl::utils::evaluation::Result<Config::EVALUATION_RESULT_SPEC> result;
  auto actor = rlt::get_actor(state);
  rlt::evaluate(device, state.env_eval, state.ui, actor, state.actor_deterministic_evaluation_state,
                state.actor_deterministic_evaluation_buffers, state.evaluation_buffer, result, state.rng_eval,
                state.evaluation_mode);
  return result.returns_mean;
}

int main(int count, char** arguments) {
  if (count != 4) {
    std::fprintf(stderr, "usage: %s SEED GOAL EVERY\n", arguments[0]);
    return 2;
  }
  const Index seed = std::strtoull(arguments[1], nullptr, 10),
              every = std::strtoull(arguments[3], nullptr, 10);
  const double goal = std::atof(arguments[2]);
  Device device;
  State state;
  rlt::malloc(device, state);
  rlt::init(device, state, seed);
  double wall = 0, processor = 0, wall_to_goal = -1, processor_to_goal = -1;
  Index steps_to_goal = 0;
  for (Index done = 0; done < kSteps; done += every) {
    const auto start = std::chrono::steady_clock::now();
    const std::clock_t start_of_processor = std::clock();
    for (Index i = 0; i < every && done + i < kSteps; ++i) {
      rlt::step(device, static_cast<State::NEXT&>(state));  // without RLtools' own evaluation
    }
    wall += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    processor += static_cast<double>(std::clock() - start_of_processor) / CLOCKS_PER_SEC;
    rlt::init(device, state.rng_eval, seed + kSeedOfEvaluation);  // the same starts in each
    const double value = mean_return(device, state);
    if (steps_to_goal > 0 || value < goal) continue;
    steps_to_goal = state.step;
    wall_to_goal = wall;
    processor_to_goal = processor;
  }
  double last = 0;
  rlt::init(device, state.rng_eval, seed + 2 * kSeedOfEvaluation);
  for (int i = 0; i < 3; ++i) last += mean_return(device, state) / 3;
  std::printf("{\"wall\": %.4f, \"processor\": %.4f, \"return\": %.1f, \"env_steps\": %zu", wall, processor,
              last, static_cast<std::size_t>(state.step));
  if (steps_to_goal > 0) {
    std::printf(", \"to_goal\": {\"wall\": %.4f, \"processor\": %.4f, \"env_steps\": %zu}", wall_to_goal,
                processor_to_goal, static_cast<std::size_t>(steps_to_goal));
  }
  std::printf("}\n");
}
