// policy.cpp: parameters and inference, in blocks of rows distributed over lanes. Neither the number of lanes
// nor their order depends on threads.
#include "wd/policy.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "kernels/loss.h"
#include "kernels/reduce.h"
#include "src/device/device.h"
#include "src/policy/impl.h"
#include "wd/error.h"

namespace wd {

namespace {

ActionLayout layout_of(const ActionSpace& space, const ModelSettings& model) {
  ActionLayout layout;
  if (space.heads.size() > kMaxHeads)
    throw UsageError(concat("an action has ", space.heads.size(), " heads; at most ", kMaxHeads));
  if (space.components() > kMaxComponents)
    throw UsageError(concat("an action has ", space.components(), " components; at most ", kMaxComponents,
                            ": give the rest to further agents"));
  layout.num_heads = static_cast<int>(space.heads.size());
  std::copy(space.heads.begin(), space.heads.end(), layout.head_size);
  layout.components = space.components();
  if (space.is_continuous())
    layout.distribution = model.distribution == kSquashedGaussianActions ? Distribution::kSquashedGaussian
                                                                         : Distribution::kGaussian;
  return layout;
}

Activations make_activations(const Network& actor, const Network* critic, std::int64_t rows,
                             bool with_gradients) {
  return {actor.make_workspace(rows, with_gradients),
          critic != nullptr ? critic->make_workspace(rows, with_gradients) : nullptr};
}

// Buffers and policy are made one after the other, each with its own arguments, which must fit.
void check_buffers(const PolicyBuffers& buffers, const ModelSettings& model, Precision precision) {
  constexpr const char* kRemedy = "; make both from the same settings: Trajectory(spec, config, ...)";
  const at::ScalarType stored = precision == kBf16 && !buffers.as_table() ? at::kBFloat16 : at::kFloat;
  if (buffers.observation.scalar_type() != stored)
    throw UsageError(concat("policy '", buffers.name, "' would compute from ", stored,
                            ", but the trajectory stores observations as ", buffers.observation.scalar_type(),
                            kRemedy));
  if (buffers.state_size != model.state_size())
    throw UsageError(concat("policy '", buffers.name, "' has a network with a state of ", model.state_size(),
                            " numbers, but the trajectory has room for ", buffers.state_size, kRemedy));
}

}  // namespace

void Policy::Impl::make_lane(Lane& lane, std::int64_t rows, bool with_gradients, bool first) const {
  const auto floats = at::TensorOptions().dtype(at::kFloat).device(place);
  lane.own = make_activations(*actor, critic.get(), rows, with_gradients);
  if (!with_gradients) return;
  lane.output_grad = make_output(rows, actor->outputs(), floats);
  lane.value_grad = at::empty({rows, 1}, floats);
  lane.log_std_grad = at::empty({rows, layout.components}, floats);
  if (device.is_cuda()) lane.ones = at::ones({rows}, floats);
  lane.row_sums = at::empty({kNumLossSums, rows}, floats);
  lane.partial = at::empty({kNumLossSums * num_chunks(rows)}, floats.dtype(at::kDouble));
  lane.totals = first ? totals : at::zeros_like(totals);
  lane.gradients = first ? gradients : at::zeros_like(parameters);
  lane.actor_grad = actor->make_gradient(lane.gradients.narrow(0, 0, critic_offset));
  if (critic)
    lane.critic_grad =
        critic->make_gradient(lane.gradients.narrow(0, critic_offset, log_std_offset - critic_offset));
  lane.log_std_total = lane.gradients.narrow(0, log_std_offset, layout.components);
}

// Returns lanes for these blocks; allocates if more or larger ones are needed than ever before. More rows
// never mean fewer lanes, so the first lane is as large as any.
std::vector<Lane>& Policy::Impl::lanes(std::vector<Lane>& all, const Blocks& blocks, bool with_gradients) {
  if (!all.empty() && all[0].own.actor->output.size(0) < std::min(blocks.max_rows, blocks.rows)) all.clear();
  while (static_cast<std::int64_t>(all.size()) < blocks.lanes) {
    const bool first = all.empty();
    make_lane(all.emplace_back(), std::min(blocks.max_rows, blocks.rows), with_gradients, first);
  }
  return all;
}

Blocks Policy::Impl::blocks_of(const Batch& batch) const {
  const std::int64_t rows = batch.mask.size(0);
  const Sequences& sequences = batch.sequences;
  WD_CHECK((sequences.length > 0) == (actor->state_size() > 0),
           "the policy's batches must be sequences exactly if its network has a state");
  if (sequences.length == 0) return Blocks::of(rows, device.is_cuda(), chunk_rows, rows_per_unit);
  return Blocks::of_size(rows, std::int64_t{sequences.length} * sequences.per_block * num_agents,
                         device.is_cuda());
}

at::Tensor Policy::Impl::observed(const at::Tensor& observation, std::int64_t begin, std::int64_t end) const {
  return observation.slice(0, begin / rows_per_unit * observed_per_unit,
                           end / rows_per_unit * observed_per_unit);
}

NetworkInput Policy::Impl::part(const NetworkInput& input, bool of_critic) const {
  if (!critic || !input.state.defined()) return input;
  const std::int64_t size = actor->state_size();
  const auto half = [&](const at::Tensor& state) {
    return state.defined() ? state.narrow(1, of_critic ? size : 0, size) : state;
  };
  return {input.observation, half(input.state), input.restarted, half(input.next_state)};
}

void Policy::Impl::forward_block(Activations& nets, const NetworkInput& input) const {
  actor->forward(part(input, false), *nets.actor);
  if (critic) critic->forward(part(input, true), *nets.critic);
}

NetworkInput Policy::Impl::step_input(const PolicyBuffers& buffers, int t, std::int64_t begin,
                                      std::int64_t end, bool writes) const {
  NetworkInput input{observed(buffers.observation_rows(t, t + 1), begin, end), {}, {}};
  if (!buffers.state.defined()) return input;
  input.state = buffers.state[t].flatten(0, 1).slice(0, begin, end);
  input.restarted = buffers.restarted[t].flatten().slice(0, begin, end);
  if (writes) input.next_state = buffers.state[t + 1].flatten(0, 1).slice(0, begin, end);
  return input;
}

NetworkInput Policy::Impl::batch_input(const Batch& batch, std::int64_t begin, std::int64_t end) const {
  NetworkInput input{observed(batch.observation, begin, end), {}, {}};
  if (batch.sequences.length == 0) return input;
  const std::int64_t length = batch.sequences.length;
  input.state = batch.state.narrow(0, begin / length, (end - begin) / length);
  input.restarted = batch.restarted.slice(0, begin, end);
  return input;
}

void Policy::Impl::make_networks(const PolicyBuffers& buffers, const ModelSettings& model,
                                 Precision precision) {
  ActorCritic nets = wd::make_networks(buffers, model, device, precision);
  actor = std::move(nets.actor);
  critic = std::move(nets.critic);
  critic_offset = actor->num_parameters();
  log_std_offset = critic_offset + (critic ? critic->num_parameters() : 0);
  if (!buffers.as_table()) return;
  rows_per_unit = buffers.num_agents;
  observed_per_unit = buffers.all_agents;
}

at::Tensor Policy::Impl::first_parameters(const ModelSettings& model, std::uint64_t seed) const {
  at::Tensor initial = at::zeros({log_std_offset + (layout.components + 3) / 4 * 4}, at::kFloat);
  const InitMethod method = model.init_method;
  // Heads of the policy start near 0, so that all actions are about equally probable; the value head starts
  // with gain 1.
  constexpr double kPolicyGain = 0.01;
  actor->initialize(initial.narrow(0, 0, critic_offset), method, kPolicyGain, seed);
  if (critic) {
    critic->initialize(initial.narrow(0, critic_offset, log_std_offset - critic_offset), method, 1.0,
                       seed ^ 0x5eed);
  } else if (method == kOrthogonal) {
    actor->scale_output(initial.narrow(0, 0, critic_offset), columns(), 1.0 / kPolicyGain);
  }
  initial.narrow(0, log_std_offset, layout.components).fill_(model.initial_log_std);
  return initial;
}

void Policy::Impl::bind(const at::Tensor& initial, Precision precision) {
  parameters = initial.to(place);
  all_reduce_buffer = at::zeros({parameters.numel() + kNumLossSums + 1}, parameters.options());
  gradients = all_reduce_buffer.narrow(0, 0, parameters.numel());
  totals = at::zeros({kNumLossSums}, at::TensorOptions().dtype(at::kDouble).device(place));
  if (precision == kBf16) shadow = at::zeros(parameters.sizes(), parameters.options().dtype(at::kBFloat16));
  const auto part = [&](const at::Tensor& all, std::int64_t begin, std::int64_t end) {
    return all.defined() ? all.narrow(0, begin, end - begin) : at::Tensor();
  };
  actor->bind(part(parameters, 0, critic_offset), part(shadow, 0, critic_offset));
  if (critic)
    critic->bind(part(parameters, critic_offset, log_std_offset),
                 part(shadow, critic_offset, log_std_offset));
  log_std = parameters.narrow(0, log_std_offset, layout.components);
  layout.log_std = log_std.const_data_ptr<float>();
}

Policy::Policy(const PolicyBuffers& buffers, const ModelSettings& model, int index, std::uint64_t seed,
               int chunk_rows, Device device, Precision precision)
    : impl_(std::make_unique<Impl>()) {
  Impl& self = *impl_;
  if (precision == kTf32 && !device.is_cuda())
    throw UsageError("trainer.precision = tf32: needs a GPU; a CPU computes in fp32 or bf16");
  check_buffers(buffers, model, precision);
  num_threads();  // sets up the pool, and restricts torch to one thread in each of ours
  self.name = buffers.name;
  self.device = device;
  self.place = buffers.observation.device();
  self.index = static_cast<std::uint32_t>(index);
  self.chunk_rows = chunk_rows;
  self.num_agents = buffers.num_agents;
  self.sequence_length = model.sequence_length;
  self.layout = layout_of(buffers.action_space, model);
  self.make_networks(buffers, model, precision);
  self.bind(self.first_parameters(model, seed * 1000003 + static_cast<std::uint64_t>(index)), precision);
  refresh_shadow();
}

Policy::Policy(const PolicyBuffers& buffers, const Config& config, int index, Device device)
    : Policy(buffers, config.policies.at(static_cast<std::size_t>(index)).model, index,
             static_cast<std::uint64_t>(config.trainer.seed), config.trainer.chunk_rows, device,
             config.trainer.precision) {}

Policy::~Policy() = default;
Policy::Policy(Policy&&) noexcept = default;

const std::string& Policy::name() const { return impl_->name; }
at::Tensor Policy::parameters() const { return impl_->parameters; }
at::Tensor Policy::gradients() const { return impl_->gradients; }
at::Tensor Policy::shadow() const { return impl_->shadow; }
at::Tensor Policy::all_reduce_buffer() const { return impl_->all_reduce_buffer; }

void Policy::refresh_shadow() {
  if (impl_->shadow.defined()) impl_->shadow.copy_(impl_->parameters);
  shadow_is_written();
}

void Policy::shadow_is_written() {
  impl_->actor->parameters_changed();
  if (impl_->critic) impl_->critic->parameters_changed();
}

std::vector<NamedTensor> Policy::named_parameters() const {
  const Impl& self = *impl_;
  std::vector<NamedTensor> named;
  const auto add = [&](const std::string& prefix, const std::vector<NamedTensor>& tensors) {
    for (const NamedTensor& tensor : tensors) named.push_back({prefix + tensor.name, tensor.tensor});
  };
  const auto add_head = [&](const std::string& name, const Layer* head, std::int64_t first,
                            std::int64_t rows) {
    if (head == nullptr) return;
    add(name,
        {{".weight", head->weight.narrow(0, first, rows)}, {".bias", head->bias.narrow(0, first, rows)}});
  };
  add("layers.", self.actor->hidden_parameters());
  add_head("policy_head", self.actor->head(), 0, self.columns());
  if (self.critic) add("value_layers.", self.critic->hidden_parameters());
  add_head("value_head", (self.critic ? self.critic : self.actor)->head(), self.critic ? 0 : self.columns(),
           1);
  if (self.layout.components > 0) named.push_back({"log_std", self.log_std});
  return named;
}

void Policy::keep_activations(PolicyBuffers& buffers) const {
  const Impl& self = *impl_;
  buffers.activations = std::make_shared<Activations>(
      make_activations(*self.actor, self.critic.get(), buffers.mask.numel(), false));
}

Sequences Policy::sequences(int rollout_steps) const {
  constexpr std::int64_t kMinRows = 16;  // per step: with fewer, matrix products are slow
  const Impl& self = *impl_;
  if (self.actor->state_size() == 0) return {};
  const int length = self.sequence_length > 0 ? self.sequence_length : rollout_steps;
  const std::int64_t rows = self.device.is_cuda() ? self.chunk_rows : std::min(kMaxBlock, self.chunk_rows);
  const std::int64_t per_step = std::max(rows / length, kMinRows);
  return {length, static_cast<int>(std::max(per_step / self.num_agents, std::int64_t{1}))};
}

void Policy::act(PolicyBuffers& buffers, int t, const ActOptions& options) {
  Impl& self = *impl_;
  const std::int64_t rows = buffers.value.stride(0);
  const Blocks blocks = Blocks::of_inference(rows, self.device.is_cuda(), self.rows_per_unit);
  auto& lanes = self.lanes(self.inference, blocks, false);
  const Queue queue = current_queue(self.device);
  const std::int64_t first = static_cast<std::int64_t>(t) * blocks.rows;
  buffers.in_half_widths = buffers.action_space.has_bounds();
  blocks.each([&](std::int64_t l, std::int64_t begin, std::int64_t end) {
    Activations& own = lanes[static_cast<std::size_t>(l)].own;
    Activations kept;
    if (buffers.activations) kept = buffers.activations->view(first + begin, end - begin, own);
    Activations& nets = buffers.activations ? kept : own;
    self.forward_block(nets, self.step_input(buffers, t, begin, end, true));
    SampleArgs args;
    args.rows = end - begin;
    args.first_row = begin;
    args.num_agents = buffers.num_agents;
    args.layout = self.layout;
    args.output = nets.actor->output.const_data_ptr<float>();
    args.output_stride = static_cast<int>(nets.actor->output.stride(0));
    args.value_in = self.critic ? nets.critic->output.const_data_ptr<float>() : args.output + self.columns();
    args.value_stride = self.critic ? 1 : args.output_stride;
    if (buffers.action_mask.defined()) {
      args.action_mask =
          buffers.action_mask.const_data_ptr<std::uint8_t>() + (first + begin) * self.columns();
    }
    args.key = RandomKey::of(options.seed, Stream::kAction);
    args.step = options.step;
    args.time = options.time;
    args.rollout_steps = options.rollout_steps;
    args.first_replica = options.first_replica;
    args.policy = self.index;
    args.greedy = options.greedy;
    args.action =
        static_cast<std::int32_t*>(buffers.action.data_ptr()) + (first + begin) * self.layout.action_width();
    args.log_prob = buffers.log_prob.mutable_data_ptr<float>() + first + begin;
    args.value = buffers.value.mutable_data_ptr<float>() + first + begin;
    sample(queue, args);
  });
}

void Policy::evaluate(PolicyBuffers& buffers, int t) {
  Impl& self = *impl_;
  const at::Tensor value = buffers.value[t].flatten();
  const Blocks blocks = Blocks::of_inference(value.size(0), self.device.is_cuda(), self.rows_per_unit);
  auto& lanes = self.lanes(self.inference, blocks, false);
  blocks.each([&](std::int64_t l, std::int64_t begin, std::int64_t end) {
    Activations& nets = lanes[static_cast<std::size_t>(l)].own;
    const NetworkInput seen = self.step_input(buffers, t, begin, end, false);
    if (self.critic) {
      self.critic->forward(self.part(seen, true), *nets.critic);
    } else {
      self.actor->forward(seen, *nets.actor);
    }
    const at::Tensor& output = self.critic ? nets.critic->output : nets.actor->output;
    value.slice(0, begin, end)
        .copy_(output.narrow(0, 0, end - begin).select(1, self.critic ? 0 : self.columns()));
  });
}

}  // namespace wd
