// inputs.cpp: what networks read of a step of the rollout, or of a batch: parts, states, ids of agents.
#include <ATen/ATen.h>

#include <algorithm>

#include "src/policy/impl.h"

namespace wd {

at::Tensor Policy::Impl::observed(const at::Tensor& observation, std::int64_t begin, std::int64_t end) const {
  return observation.slice(0, begin / rows_per_unit * observed_per_unit,
                           end / rows_per_unit * observed_per_unit);
}

template <typename RowsOf>
NetworkInput Policy::Impl::parts_of(bool of_critic, std::int64_t begin, std::int64_t end,
                                    const RowsOf& rows_of) const {
  NetworkInput input;
  const std::vector<Read>& reads = of_critic ? critic_reads : actor_reads;
  for (std::size_t k = 0; k < reads.size(); ++k) {
    const auto& [field, rows_per_row] = reads[k];
    input.parts[k] = field == nullptr    ? agent_ids
                     : field->stream < 0 ? observed(rows_of(*field), begin, end)
                                         : rows_of(*field).slice(0, begin / rows_per_row, end / rows_per_row);
  }
  return input;
}

at::Tensor Policy::Impl::own_state(const at::Tensor& state, bool of_critic) const {
  const std::int64_t size = actor().state_size();
  return has_critic ? state.narrow(1, of_critic ? size : 0, size) : state;
}

NetworkInput Policy::Impl::step_input(const PolicyBuffers& buffers, int t, std::int64_t begin,
                                      std::int64_t end, bool of_critic, bool writes) const {
  NetworkInput input = parts_of(of_critic, begin, end, [&](const BufferField& field) {
    return field.stream < 0 ? buffers.observation_rows(t, t + 1) : field.of(buffers)[t].flatten(0, 1);
  });
  if (writes && buffers.features.defined())
    input.features =
        buffers.features[t].flatten(0, 1).slice(0, begin, end).narrow(1, 0, actor().feature_size());
  if (!buffers.state.defined()) return input;
  const auto state_in = [&](int step) {
    return own_state(buffers.state[step].flatten(0, 1).slice(0, begin, end), of_critic);
  };
  input.state = state_in(t);
  input.restarted = buffers.restarted[t].flatten().slice(0, begin, end);
  if (writes) input.next_state = state_in(t + 1);
  return input;
}

NetworkInput Policy::Impl::batch_input(const Batch& batch, std::int64_t begin, std::int64_t end,
                                       bool of_critic) const {
  NetworkInput input =
      parts_of(of_critic, begin, end, [&](const BufferField& field) { return field.in(batch); });
  input.knows_features = batch.features.defined();
  if (input.knows_features)
    input.features = batch.features.slice(0, begin, end).narrow(1, 0, actor().feature_size());
  if (batch.sequences.length == 0) return input;
  const std::int64_t length = batch.sequences.length;
  input.state = own_state(batch.state.narrow(0, begin / length, (end - begin) / length), of_critic);
  input.restarted = batch.restarted.slice(0, begin, end);
  return input;
}

// Where the parts of an input are. Units get the rows of all agents of a replica if some share a row.
std::vector<Policy::Impl::Read> Policy::Impl::reads_of(const std::vector<std::string>& names) {
  std::vector<Read> reads;
  for (const InputPart& part : input_parts(own, names)) {
    const auto field = std::ranges::find_if(
        buffer_fields(), [&](const BufferField& one) { return one.part_of(own) == part.name; });
    reads.push_back({part.per_slot ? nullptr : &*field, part.per_replica ? own.num_agents : 1});
    if (part.per_slot)
      agent_ids = at::eye(own.ids.count).index_select(0, at::tensor(own.ids.of_slot, at::kInt)).to(place);
    if (part.is_shared()) rows_per_unit = observed_per_unit = own.num_agents;
  }
  return reads;
}

PolicyPass Policy::Impl::step_pass(const PolicyBuffers& buffers, int t, std::int64_t begin, std::int64_t end,
                                   bool writes) const {
  PolicyPass pass;
  pass.rows = end - begin;
  pass.actor_input = step_input(buffers, t, begin, end, false, writes);
  if (has_critic)
    pass.critic_input = reads_alike() ? pass.actor_input : step_input(buffers, t, begin, end, true, writes);
  return pass;
}

PolicyPass Policy::Impl::batch_pass(const Batch& batch, std::int64_t begin, std::int64_t end) const {
  PolicyPass pass;
  pass.rows = end - begin;
  pass.actor_input = batch_input(batch, begin, end, false);
  if (has_critic) pass.critic_input = reads_alike() ? pass.actor_input : batch_input(batch, begin, end, true);
  return pass;
}

NetworkInput Policy::input(const Batch& batch, std::int64_t begin, std::int64_t end) const {
  return impl_->batch_input(batch, begin, end, false);
}
NetworkInput Policy::critic_input(const Batch& batch, std::int64_t begin, std::int64_t end) const {
  return impl_->batch_input(batch, begin, end, true);
}
NetworkInput Policy::mixer_input(const PolicyBuffers& buffers, std::int64_t begin, std::int64_t end) const {
  if (mixer() == nullptr) return {};
  return impl_->parts_of(true, begin, end,
                         [&](const BufferField& field) { return field.of(buffers).flatten(0, 2); });
}

}  // namespace wd
