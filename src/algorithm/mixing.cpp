// mixing.cpp: the arguments of the kernels of teams.
#include "src/algorithm/mixing.h"

#include <ATen/ATen.h>

#include "src/device/device.h"
#include "wd/policy.h"

namespace wd {

void describe_mixer(Fields& field, Mixer& mixer) {
  if (!mixer.reads_state()) return;
  field("mixer_dim", mixer.units, {1, 4096}, "units of the layer that mixes the values of a team's agents");
  field("hypernet_dims", mixer.hidden, {1, 65'536},
        "width of each hidden layer of the network that computes the weights of that layer from the state");
}

Mixing::Mixing(const Policy& policy, const Mixer& mixer)
    : policy_(policy), kind_(mixer.kind), mixer_(policy.team_mixer()) {}

std::vector<RowMemory> Mixing::with_memory(std::vector<RowMemory> memory) const {
  if (!is_on()) return memory;
  memory.push_back({"q", 1});
  if (mixer_.units > 0)
    memory.push_back(
        {.name = "mixer_grad", .columns = mixer_.outputs(), .as_output = true, .shared_by = mixer_.agents});
  return memory;
}

template <typename Args>
void Mixing::weigh(const Lane& lane, const Network* network, const NetworkInput& input, std::int64_t rows,
                   Args& args) const {
  args.teams = rows / mixer_.agents;
  args.mixer = mixer_;
  args.q = lane.rows("q").template mutable_data_ptr<float>();
  if (network == nullptr) return;
  Network::Workspace& workspace = lane.of(*network);
  network->forward(input, workspace);
  args.weights = workspace.output.template const_data_ptr<float>();
  args.weights_stride = workspace.output.stride(0);
}

void Mixing::target(Lane& lane, const Model& model, const Batch& rows, std::int64_t begin, std::int64_t end,
                    TeamTargetArgs args) const {
  const Network* const network = mixer_.units > 0 ? &model.network(1) : nullptr;
  weigh(lane, network, network != nullptr ? policy_.critic_input(rows, begin, end) : NetworkInput{},
        end - begin, args);
  team_target(current_queue(policy_.device()), args);
}

void Mixing::value(const Lane& lane, const NetworkInput& input, std::int64_t rows, TeamValueArgs args) const {
  weigh(lane, policy_.mixer(), input, rows, args);
  team_value(current_queue(policy_.device()), args);
}

void Mixing::learn(Lane& lane, const PolicyPass& pass, const Batch& batch, std::int64_t begin,
                   std::int64_t end, TeamLossArgs args) const {
  const Network* const network = policy_.mixer();
  const NetworkInput state = network != nullptr ? policy_.critic_input(batch, begin, end) : NetworkInput{};
  weigh(lane, network, state, end - begin, args);
  const at::Tensor& output_grad = lane.rows("output_grad");
  args.layout = policy_.action_layout();
  args.output = pass.output;
  args.output_stride = pass.output_stride;
  args.action = batch.action.const_data_ptr<std::int32_t>() + begin * args.layout.action_width();
  args.output_grad = output_grad.mutable_data_ptr<float>();
  args.grad_stride = output_grad.stride(0);
  args.row_sums = lane.row_sums().mutable_data_ptr<float>();
  if (network != nullptr) {
    const at::Tensor& grad = lane.rows("mixer_grad");
    args.weights_grad = grad.mutable_data_ptr<float>();
    args.weights_grad_stride = grad.stride(0);
  }
  team_loss(current_queue(policy_.device()), args);
  policy_.backward(lane, pass, output_grad, {}, {});
  if (network == nullptr) return;
  network->backward(state, lane.rows("mixer_grad").narrow(0, 0, args.teams), lane.of(*network),
                    lane.gradient(*network));
}

}  // namespace wd
