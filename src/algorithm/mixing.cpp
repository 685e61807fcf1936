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

Teams Mixing::weigh(const Lane& lane, const Network* network, const NetworkInput& input,
                    std::int64_t rows) const {
  Teams teams{.count = rows / mixer_.agents, .mixer = mixer_, .q = at_row<float>(lane.rows("q"))};
  if (network == nullptr) return teams;
  network->forward(input, lane.of(*network));
  teams.weights = rows_of<const float>(lane.of(*network).output);
  return teams;
}

void Mixing::target(Lane& lane, const Model& model, const Batch& rows, std::int64_t begin, std::int64_t end,
                    const NextValues& next) const {
  const Network* const network = mixer_.units > 0 ? &model.network(1) : nullptr;
  const NetworkInput state = network != nullptr ? policy_.critic_input(rows, begin, end) : NetworkInput{};
  team_target(current_queue(policy_.device()), {weigh(lane, network, state, end - begin), next});
}

void Mixing::value(const Lane& lane, const NetworkInput& input, std::int64_t rows, TeamValueArgs args) const {
  args.teams = weigh(lane, policy_.mixer(), input, rows);
  team_value(current_queue(policy_.device()), args);
}

void Mixing::learn(Lane& lane, const PolicyPass& pass, const Batch& batch, std::int64_t begin,
                   std::int64_t end, const ValueLoss& loss) const {
  const Network* const network = policy_.mixer();
  const NetworkInput state = network != nullptr ? policy_.critic_input(batch, begin, end) : NetworkInput{};
  TeamLossArgs args{weigh(lane, network, state, end - begin), loss};
  if (network != nullptr) args.weights_grad = rows_of<float>(lane.rows("mixer_grad"));
  team_loss(current_queue(policy_.device()), args);
  policy_.backward(lane, pass, lane.rows("output_grad"), {}, {});
  if (network == nullptr) return;
  network->backward(state, lane.rows("mixer_grad").narrow(0, 0, args.teams.count), lane.of(*network),
                    lane.gradient(*network));
}

}  // namespace wd
