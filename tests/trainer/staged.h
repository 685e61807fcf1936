// staged.h: an algorithm that fills a memory before it learns, as replay memories do: two stages, state of
// replicas, iterations that cannot be undone, no values.
#pragma once

#include <ATen/ATen.h>

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/support.h"
#include "wd/checkpoint.h"
#include "wd/coefficients.h"
#include "wd/policy_gradient.h"
#include "wd/rollout_algorithm.h"

namespace wd {

struct StagedSettings final : AlgorithmSettings {
  Schedule lr = 1e-2;
  int fill = 3;  // iterations
  bool undo = false;

  const char* name() const override { return "STAGED"; }
  std::unique_ptr<AlgorithmSettings> copy() const override { return std::make_unique<StagedSettings>(*this); }
  void describe(Fields& field) override {
    field("lr", lr, {0, 10}, "learning rate");
    field("fill", fill, {0, 100}, "iterations before learning begins");
    field("undo", undo, "whether iterations can be undone");
  }
  Schedule& learning_rate() override { return lr; }
  std::int64_t wanted_rollout(std::int64_t) const override { return 1; }
  double bytes(const WorkerShape& shape) const override {
    return sizeof(float) * shape.replicas * shape.layout.num_agents;
  }
  std::unique_ptr<Algorithm> make(const AlgorithmContext& context) const override;
};

class Staged final : public RolloutAlgorithm {
 public:
  Staged(const AlgorithmContext& context, const StagedSettings& settings)
      : RolloutAlgorithm(context, settings, PolicyGradient::sums(), 1e-8),
        settings_(settings),
        gradient_(policy_),
        lr_(std::array{&std::as_const(settings.lr)}, device_),
        memory_(at::zeros_like(buffers_.reward[0])) {}

  int stage(std::int64_t iteration) const override { return iteration < settings_.fill ? 0 : 1; }
  void enter(int stage) override { learns_ = stage == 1; }
  bool can_be_undone() const override { return settings_.undo; }
  bool wants_values() const override { return false; }

  void begin_prepare() override {
    for (int t = 0; t < trajectory_.steps(); ++t) memory_.add_(buffers_.reward[t]);
    if (!learns_) return;
    buffers_.advantage.copy_(buffers_.reward);
    buffers_.advantage.add_(memory_);
  }
  void begin_update(const TrainingClock& clock) override {
    lr_.update(clock);
    if (learns_) start_epochs(lr_.value(0), nullptr, nullptr);
  }
  std::vector<NamedTensor> state() const override {
    std::vector<NamedTensor> all = RolloutAlgorithm::state();
    all.push_back({"memory", memory_, true});
    return all;
  }
  std::vector<std::pair<std::string, double>> metrics() const override { return optimizer_metrics(); }

 private:
  at::Tensor accumulate(const Batch& batch, const std::function<bool()>& should_stop) override {
    return gradient_.accumulate(batch, {.with_value = false}, should_stop);
  }

  const StagedSettings& settings_;
  PolicyGradient gradient_;
  Coefficients lr_;
  at::Tensor memory_;  // [E, A]
  bool learns_ = false;
};

inline std::unique_ptr<Algorithm> StagedSettings::make(const AlgorithmContext& context) const {
  return std::make_unique<Staged>(context, *this);
}

inline const bool staged_is_registered = (register_algorithm(std::make_unique<StagedSettings>()), true);

// tag_gridworld, whose taggers learn with STAGED and these settings.
inline Experiment staged_setup(const std::string& settings = "", const std::vector<std::string>& more = {}) {
  std::vector<std::string> all = {
      "trainer.num_envs=6", "trainer.train_batch_size=60",
      "policy={tagger: {algorithm: STAGED" + settings + "}, runner: {algorithm: A2C}}"};
  all.insert(all.end(), more.begin(), more.end());
  return make_setup("tag_gridworld", all);
}

inline at::Tensor staged_memory(const Snapshot& snapshot) {
  for (const NamedTensor& named : snapshot.files.at("optimizer/tagger"))
    if (named.name == "memory") return named.tensor;
  return {};
}

}  // namespace wd
