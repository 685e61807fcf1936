// mixer.cpp: a perceptron with a row for each replica.
#include "src/nets/mixer.h"

#include "src/nets/wrapping.h"
#include "wd/error.h"

namespace wd {
namespace {

class PerReplicaNetwork final : public WrappingNetwork {
 public:
  PerReplicaNetwork(std::unique_ptr<Network> inner, std::int64_t agents)
      : WrappingNetwork(std::move(inner)), agents_(agents) {}

  Layer output_layer(const at::Tensor& flat) const override { return inner_->output_layer(flat); }
  const Layer* head() const override { return inner_->head(); }
  std::unique_ptr<Workspace> make_workspace(std::int64_t rows, bool with_gradients) const override {
    return inner_->make_workspace((rows + agents_ - 1) / agents_, with_gradients);
  }
  void forward(const NetworkInput& input, Workspace& workspace) const override {
    inner_->forward(input, workspace);
  }
  void backward(const NetworkInput& input, const at::Tensor& output_grad, Workspace& workspace,
                Gradient* gradient, std::span<const at::Tensor> part_grads) const override {
    inner_->backward(input, output_grad, workspace, gradient, part_grads);
  }
  bool overwrites() const override { return inner_->overwrites(); }
  double forward_flop() const override { return inner_->forward_flop() / static_cast<double>(agents_); }
  double backward_flop() const override { return inner_->backward_flop() / static_cast<double>(agents_); }
  std::int64_t activation_size() const override { return 0; }  // rollouts keep none

 private:
  std::int64_t agents_;
};

}  // namespace

TeamMixer team_mixer_of(const Mixer& mixer, int agents) {
  return {.agents = agents, .units = mixer.reads_state() ? mixer.units : 0};
}

MakeNetwork mixer_maker(const PolicyLayout& layout, const ModelSettings& model, const Mixer& mixer,
                        Device device, Precision precision) {
  std::vector<InputPart> parts = input_parts(layout, model.read_by(true));
  for (InputPart& part : parts) {
    if (!std::exchange(part.per_replica, false))
      throw UsageError(concat("policy '", layout.name, "': model.critic_reads names '", part.name,
                              "', and the mixer of a team reads streams of replicas only"));
  }
  ModelSettings own;
  own.fc_dims = mixer.hidden;
  own.activation = kRelu;
  const MakeNetwork inner =
      network_maker(layout, own, parts, team_mixer_of(mixer, layout.num_agents).outputs(), device, precision);
  return [inner, agents = layout.num_agents] { return std::make_unique<PerReplicaNetwork>(inner(), agents); };
}

}  // namespace wd
