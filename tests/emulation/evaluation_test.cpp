// evaluation_test.cpp: evaluations on another device than that of training: the emulated GPU and the CPU.
#include <gmock/gmock.h>

#include <filesystem>

#include "src/autoscale/memory_needed.h"
#include "src/evaluation/training_evaluator.h"
#include "tests/emulation/device/torch_backend.h"
#include "tests/support.h"
#include "tests/trainer/graph_cases.h"
#include "tests/trainer/held_bytes.h"
#include "wd/safetensors.h"
#include "wd/weights.h"

namespace wd {
namespace {

using testing::AllOf, testing::HasSubstr, testing::Not;

constexpr Device kCpu;

// Everything that acting needs: normalized inputs and values, an average of the weights, and several roles.
Experiment experiment(const std::string& device, std::vector<std::string> more = {}) {
  std::vector<std::string> settings = {
      "trainer.num_envs=4",
      "trainer.train_batch_size=32",
      "env.episode_length=20",
      "env.tagging_distance=0.15",
      "eval.every=1",
      "eval.episodes=20",
      "eval.device=" + device,
      "policy={tagger: {algorithm: PPO, lr: 0.02, average: 0.5, model: {fc_dims: [16], normalize_input: true}}, "
      "runner: {algorithm: PPO, lr: 0.02, normalize_value: true, model: {fc_dims: [16]}}}"};
  settings.insert(settings.end(), more.begin(), more.end());
  return make_setup("tag_continuous", settings);
}

std::vector<NamedTensor> weights_of_name(Trainer& trainer, const std::string& name) {
  for (std::size_t p = 0; p < trainer.policies().size(); ++p) {
    if (trainer.policies()[p].name() == name) return trainer.policies()[p].saved();
    if (average_name(trainer.policies()[p].name()) == name) return trainer.average(p);
  }
  throw std::logic_error(name);
}

// What files hold of the weights.
std::filesystem::path save_weights(Trainer& trainer) {
  static const OwnFolder own;
  std::filesystem::create_directories(own.path / "weights");
  for (const Policy& policy : trainer.policies())
    for (const std::string& name : {policy.name(), average_name(policy.name())})
      if (const auto saved = host_copies(weights_of_name(trainer, name)); !saved.empty())
        write_safetensors(own.path / "weights" / (name + ".safetensors"), views_of(saved));
  return own.path;
}

double value_of(const Evaluation& evaluation, const std::string& name) {
  for (const auto& [each, value] : evaluation.values)
    if (each == name) return value;
  throw std::logic_error(name);
}

struct Places {
  const char* name;
  Device training;
  const char* setting;
  Device evaluation;
};

class EvaluationElsewhere : public testing::TestWithParam<Places> {};

// Also after later updates, whose weights and statistics are others.
TEST_P(EvaluationElsewhere, PlaysWithTheWeightsOfNow) {
  const Experiment setup = experiment(GetParam().setting);
  const Device device = evaluation_device(setup.config, *setup.environment, GetParam().training, 0);
  ASSERT_EQ(to_string(device), to_string(GetParam().evaluation));
  Trainer trainer(setup.config, *setup.environment, GetParam().training);
  TrainingEvaluator evaluator(
      setup.config, *setup.environment,
      [&](const std::string& name) { return weights_of_name(trainer, name); }, device);
  double before = 0.0;
  for (int i = 0; i < 3; ++i) {
    trainer.iterate();
    trainer.check();
    Evaluator alone(setup.config, *setup.environment, wd::weights_of(save_weights(trainer)), device);
    const Evaluation found = evaluator.evaluate();
    for (const bool average : {false, true}) {
      SCOPED_TRACE(concat("iteration ", i, average ? ", average" : ""));
      Match match = evaluator.match();
      match.players[0].average = average;  // of the tagger
      const std::vector<Episode> expected = alone.play(match);
      for (std::size_t s = 0; s < alone.sides().size(); ++s)
        EXPECT_EQ(
            value_of(found, concat("eval/", alone.sides()[s].name, average ? "_average" : "", "/return")),
            interval_of(expected, [&](const Episode& e) { return e.returns[s]; }).mean);
    }
    EXPECT_NE(value_of(found, "eval/tagger/return"), before);
    before = value_of(found, "eval/tagger/return");
  }
}

// With all that the evaluation has made when it asks for the last policy's weights.
TEST_P(EvaluationElsewhere, TakesMemoryWhereItPlaysAndNowhereElse) {
  const Experiment setup = experiment(GetParam().setting, {"eval.episodes=200"});
  const double states = 200.0 * setup.environment->layout().block_bytes,
               needed = scaling::evaluation_bytes(setup.config, *setup.environment);
  Trainer trainer(setup.config, *setup.environment, GetParam().training);
  const CountingMemory host;
  const auto held_before = static_cast<double>(emulation::held);
  double on_host = 0.0, on_gpu = 0.0;
  Evaluator evaluator(
      setup.config, *setup.environment,
      [&](Policy&, const std::string&) {
        on_host = host.held();
        on_gpu = static_cast<double>(emulation::held) - held_before;
      },
      evaluation_device(setup.config, *setup.environment, GetParam().training, 0));
  Match match;
  match.players.resize(evaluator.sides().size());
  match.episodes = 200;
  evaluator.play(match);
  const bool gpu = GetParam().evaluation.is_cuda();
  EXPECT_GE(gpu ? on_gpu : on_host, needed);
  EXPECT_LE(gpu ? on_gpu : on_host, 1.5 * needed);
  EXPECT_LT(gpu ? on_host : on_gpu, 0.1 * states);
}

INSTANTIATE_TEST_SUITE_P(, EvaluationElsewhere,
                         testing::Values(Places{"cpu_cpu", kCpu, "same", kCpu},
                                         Places{"gpu_gpu", kGpu, "same", kGpu},
                                         Places{"gpu_cpu", kGpu, "cpu", kCpu},
                                         Places{"cpu_gpu", kCpu, "cuda", kGpu}),
                         [](const auto& info) { return info.param.name; });

TEST(EvaluationMemory, IsCountedWhereItIs) {
  const Experiment setup = experiment("cpu");
  const auto line = [&](Device training, std::optional<Device> evaluation) {
    return scaling::memory_line({setup.config, *setup.environment, training, 1, 1, evaluation});
  };
  EXPECT_THAT(line(kCpu, kCpu), AllOf(HasSubstr(" evaluations "), Not(HasSubstr("; evaluations "))));
  EXPECT_THAT(line(kGpu, kGpu), AllOf(HasSubstr(" evaluations "), Not(HasSubstr("; evaluations "))));
  EXPECT_THAT(line(kGpu, kCpu), HasSubstr("; evaluations on the CPU: at least "));
  EXPECT_THAT(line(kCpu, kGpu), HasSubstr("; evaluations on the GPU: at least "));
  EXPECT_THAT(line(kCpu, std::nullopt), Not(HasSubstr("evaluations")));
}

TEST(EvaluationMemory, OfTheHostIsCheckedAlsoIfTrainingIsOnAGpu) {
  const Experiment setup = experiment("cpu", {"env.num_runners=1000"});
  scaling::Job job{setup.config, *setup.environment, kGpu, 1'000'000, 1'000'000, kCpu};
  EXPECT_THAT(usage_error_of([&] { scaling::check_memory(job); }),
              HasSubstr("evaluations on the CPU need at least "));
  job.evaluation = kGpu;
  scaling::check_memory(job);
}

}  // namespace
}  // namespace wd
