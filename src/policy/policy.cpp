// policy.cpp: inference and gradients in blocks of rows, spread over lanes whose number and order do not depend on threads.
#include "wd/policy.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "kernels/loss.h"
#include "kernels/reduce.h"
#include "src/device.h"
#include "src/policy/mlp.h"
#include "src/policy/mlp_bf16.h"
#include "src/policy/mlp_gpu.h"
#include "src/policy/table_layer.h"
#include "wd/error.h"
#include "wd/heartbeat.h"
#include "wd/parallel.h"

namespace wd {

namespace {

constexpr std::int64_t kMaxLanes = 16;   // at most this many threads share a gradient
constexpr std::int64_t kMinBlock = 32;   // rows, CPU: fewer are not worth waking a thread for
constexpr std::int64_t kMaxBlock = 512;  // rows, CPU: activations of 256 floats stay in a core's cache
constexpr std::int64_t kTileRows = 12;   // two tiles of kernels/matmul.cpp

std::int64_t round_up(std::int64_t n, std::int64_t unit) { return (n + unit - 1) / unit * unit; }

// N rows in blocks; lane l works through its blocks in order.
struct Blocks {
  std::int64_t rows, block, count, lanes;
  std::int64_t most;  // rows of a block, whatever `rows` is

  // `unit` rows stay together.
  static Blocks of(std::int64_t rows, bool cuda, std::int64_t chunk_rows, std::int64_t unit) {
    const auto whole_units = [&](std::int64_t n) { return std::max(n / unit, std::int64_t{1}) * unit; };
    if (cuda) {
      const std::int64_t chunk = whole_units(chunk_rows);
      return {rows, chunk, round_up(rows, chunk) / chunk, 1, chunk};
    }
    // Equal blocks, as many for each lane and for each of 2 or 4 threads: nobody waits for another's remainder.
    const std::int64_t most = whole_units(std::min(kMaxBlock, chunk_rows)),
                       tile = unit > 1 ? unit : kTileRows;
    const std::int64_t least = round_up(rows, most) / most;
    const std::int64_t wanted = least > kMaxLanes       ? round_up(least, kMaxLanes)
                                : least > 2             ? round_up(least, 4)
                                : rows >= 2 * kMinBlock ? 2
                                                        : 1;
    const std::int64_t block = std::clamp(round_up((rows + wanted - 1) / wanted, tile), tile, most);
    const std::int64_t count = round_up(rows, block) / block;
    return {rows, block, count, std::min(count, kMaxLanes), most};
  }
  // f(lane, begin, end) for every block.
  template <typename F>
  void each(F f) const {
    const auto run = [&](std::int64_t lane) {
      for (std::int64_t b = lane * count / lanes; b < (lane + 1) * count / lanes; ++b) {
        f(lane, b * block, std::min(rows, (b + 1) * block));
      }
    };
    if (lanes == 1) return run(0);
    parallel_for(lanes, 1, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t lane = first; lane < last; ++lane) run(lane);
    });
  }
};

}  // namespace

struct Activations {
  MlpWorkspace actor, critic;

  Activations() = default;
  Activations(const MlpShape& actor_shape, const MlpShape& critic_shape, std::int64_t rows, at::Device place,
              bool with_gradients)
      : actor(actor_shape, rows, place, with_gradients) {
    if (critic_shape.outputs > 0) critic = MlpWorkspace(critic_shape, rows, place, with_gradients);
  }
  // Views of n rows, with the other memory of `lane`.
  Activations rows(std::int64_t first, std::int64_t n, const Activations& lane) const {
    Activations view;
    view.actor = actor.rows(first, n, lane.actor);
    if (critic.output.defined()) view.critic = critic.rows(first, n, lane.critic);
    return view;
  }
};

namespace {

// Memory of one lane.
struct Lane {
  Activations own;
  at::Tensor output_grad;   // [block, actor outputs]
  at::Tensor value_grad;    // [block, 1], with a separate value network
  at::Tensor log_std_grad;  // [block, components]
  at::Tensor row_sums;      // [kNumLossSums, block]
  at::Tensor partial;       // working memory of reductions
  at::Tensor totals;        // [kNumLossSums] float64
  at::Tensor gradients;     // [P]
  MlpGradients actor_grad, critic_grad;
  at::Tensor log_std_total;  // view of gradients
};

ActionLayout layout_of(const ActionSpace& space) {
  ActionLayout layout;
  if (space.heads.size() > kMaxHeads)
    throw UsageError(concat("an action has ", space.heads.size(), " heads; at most ", kMaxHeads));
  if (space.continuous > kMaxComponents)
    throw UsageError(concat("an action has ", space.continuous, " components; at most ", kMaxComponents,
                            ": give the rest to further agents"));
  layout.num_heads = static_cast<int>(space.heads.size());
  std::copy(space.heads.begin(), space.heads.end(), layout.head_size);
  layout.components = space.continuous;
  return layout;
}

}  // namespace

// One network of a policy: parameters as views of what they lie in, and its passes on the device and in the precision of the run.
struct Network {
  MlpShape shape;  // no outputs: there is no such network
  std::vector<Layer> layers;
  std::vector<Layer> shadow;          // bf16: views of the shadow, on the CPU of the widened one
  std::unique_ptr<TableLayer> first;  // where it reads tables,
  Layer first_gradient;               // and where the gradient of that layer belongs
  CudaLinear* linear = nullptr;       // on the GPU

  bool exists() const { return shape.outputs > 0; }
  void forward(const at::Tensor& observation, MlpWorkspace& workspace) const {
    if (linear != nullptr)
      return forward_on_gpu(*linear, shape, layers, shadow, {observation, first.get()}, workspace);
    if (shape.precision == kBf16) return forward_bf16(shape, layers, shadow, observation, workspace);
    wd::forward(shape, layers, {observation, first.get()}, workspace);
  }
  void backward(const at::Tensor& observation, const at::Tensor& output_grad, MlpWorkspace& workspace,
                MlpGradients& gradients) const {
    const MlpInput input{observation, first.get()};
    if (linear != nullptr)
      return backward_on_gpu(*linear, shape, layers, shadow, input, output_grad, workspace, gradients);
    if (shape.precision == kBf16)
      return backward_bf16(shape, layers, shadow, output_grad, workspace, gradients);
    wd::backward(shape, layers, input, output_grad, workspace, gradients);
  }
  MlpGradients gradients_in(const at::Tensor& flat, std::int64_t offset) const {
    return {shape.bind(flat, offset), first ? first->make_gradient() : at::Tensor()};
  }
};

struct Policy::Impl {
  std::string name;
  Device device;
  at::Device place = at::kCPU;
  std::uint32_t index = 0;
  std::int64_t chunk_rows = 0;
  ActionLayout layout;
  Network actor, critic;                    // without a critic the value is the last column of the actor
  std::int64_t unit = 1, seen_by_unit = 1;  // rows that follow from one table, and its own rows
  std::int64_t critic_offset = 0, log_std_offset = 0;
  at::Tensor parameters, gradients, gradients_and_more, log_std, totals;
  at::Tensor shadow;                   // bf16: [P] bfloat16
  at::Tensor widened_shadow;           // bf16 on the CPU: [P] float32, the same numbers
  std::unique_ptr<CudaLinear> linear;  // on the GPU
  std::vector<Lane> inference, training;

  bool separate() const { return critic.exists(); }
  int columns() const { return layout.columns(); }

  std::vector<Lane>& lanes(std::vector<Lane>& all, const Blocks& blocks, bool with_gradients);
  void make_lane(Lane& lane, std::int64_t rows, bool with_gradients) const;
  void bind_network(Network& network, std::int64_t offset, const PolicyBuffers& buffers);
  void bind_shadow();
  Blocks blocks_of(std::int64_t rows, std::int64_t chunk_rows) const;
  // What rows [begin, end) are seen from.
  at::Tensor observed(const at::Tensor& observation, std::int64_t begin, std::int64_t end) const;
  void forward_block(Activations& nets, const at::Tensor& observation) const;
  LossArgs loss_args(Lane& lane, const Activations& nets, const Batch& batch, const LossSettings& settings,
                     std::int64_t begin, std::int64_t end) const;
  void accumulate_block(Lane& lane, const Batch& batch, const LossSettings& settings, std::int64_t begin,
                        std::int64_t end);
  void sum_lanes(std::vector<Lane>& lanes, std::int64_t count, at::Tensor& sum,
                 const std::function<const at::Tensor&(const Lane&)>& tensor);
  void reduce_lanes(std::vector<Lane>& lanes, std::int64_t count);
};

void Policy::Impl::make_lane(Lane& lane, std::int64_t rows, bool with_gradients) const {
  const auto floats = at::TensorOptions().dtype(at::kFloat).device(place);
  lane.own = Activations(actor.shape, critic.shape, rows, place, with_gradients);
  if (!with_gradients) return;
  lane.output_grad = at::empty({rows, actor.shape.outputs}, floats);
  lane.value_grad = at::empty({rows, 1}, floats);
  lane.log_std_grad = at::empty({rows, layout.components}, floats);
  lane.row_sums = at::empty({kNumLossSums, rows}, floats);
  lane.partial = at::empty({kNumLossSums * num_chunks(rows)}, floats.dtype(at::kDouble));
  lane.totals = at::zeros({kNumLossSums}, floats.dtype(at::kDouble));
  lane.gradients = at::zeros_like(parameters);
  lane.actor_grad = actor.gradients_in(lane.gradients, 0);
  if (separate()) lane.critic_grad = critic.gradients_in(lane.gradients, critic_offset);
  lane.log_std_total = lane.gradients.narrow(0, log_std_offset, layout.components);
}

// Lanes for these blocks; allocates where more or larger ones are needed than ever before. More rows never make fewer lanes, so that
// the first is as large as any.
std::vector<Lane>& Policy::Impl::lanes(std::vector<Lane>& all, const Blocks& blocks, bool with_gradients) {
  if (!all.empty() && all[0].own.actor.output.size(0) < std::min(blocks.most, blocks.rows)) all.clear();
  while (static_cast<std::int64_t>(all.size()) < blocks.lanes) {
    make_lane(all.emplace_back(), std::min(blocks.most, blocks.rows), with_gradients);
  }
  return all;
}

void Policy::Impl::bind_network(Network& network, std::int64_t offset, const PolicyBuffers& buffers) {
  network.layers = network.shape.bind(parameters, offset);
  network.linear = linear.get();
  if (!buffers.as_table()) return;
  network.first = std::make_unique<TableLayer>(buffers, network.layers[0], device);
  network.first_gradient = network.shape.bind(gradients, offset)[0];
}

void Policy::Impl::bind_shadow() {
  shadow = at::zeros(parameters.sizes(), parameters.options().dtype(at::kBFloat16));
  if (!device.is_cuda()) widened_shadow = at::zeros_like(parameters);
  const at::Tensor& read = device.is_cuda() ? shadow : widened_shadow;
  actor.shadow = actor.shape.bind(read, 0);
  if (separate()) critic.shadow = critic.shape.bind(read, critic_offset);
}

Blocks Policy::Impl::blocks_of(std::int64_t rows, std::int64_t chunk_rows) const {
  return Blocks::of(rows, device.is_cuda(), chunk_rows, unit);
}

at::Tensor Policy::Impl::observed(const at::Tensor& observation, std::int64_t begin, std::int64_t end) const {
  return observation.slice(0, begin / unit * seen_by_unit, end / unit * seen_by_unit);
}

void Policy::Impl::forward_block(Activations& nets, const at::Tensor& observation) const {
  actor.forward(observation, nets.actor);
  if (separate()) critic.forward(observation, nets.critic);
}

Policy::Policy(const PolicyBuffers& buffers, const ModelSettings& model, int index, std::uint64_t seed,
               int chunk_rows, Device device, Precision precision)
    : impl_(std::make_unique<Impl>()) {
  Impl& self = *impl_;
  if (precision == kTf32 && !device.is_cuda())
    throw UsageError("trainer.precision = tf32: needs a GPU; a CPU computes in fp32 or bf16");
  const at::ScalarType stored = precision == kBf16 ? at::kBFloat16 : at::kFloat;
  WD_CHECK(buffers.observation.scalar_type() == stored, "policy '", buffers.name, "' would compute from ",
           stored, ", but observations are stored as ", buffers.observation.scalar_type());
  num_threads();  // sets up the pool, and leaves torch with one thread in each of ours
  self.name = buffers.name;
  self.device = device;
  self.place = buffers.observation.device();
  self.index = static_cast<std::uint32_t>(index);
  self.chunk_rows = chunk_rows;
  self.layout = layout_of(buffers.action_space);
  const auto activation = static_cast<Activation>(model.activation);
  self.actor.shape = {buffers.observation_size, model.fc_dims,
                      self.columns() + (model.separate_value ? 0 : 1), activation, precision};
  self.critic.shape = {buffers.observation_size, model.fc_dims, model.separate_value ? 1 : 0, activation,
                       precision};
  self.critic_offset = self.actor.shape.num_parameters();
  self.log_std_offset = self.critic_offset + (self.separate() ? self.critic.shape.num_parameters() : 0);
  at::Tensor initial = at::zeros({self.log_std_offset + (self.layout.components + 3) / 4 * 4}, at::kFloat);

  const auto method = static_cast<InitMethod>(model.init_method);
  const std::uint64_t own_seed = seed * 1000003 + static_cast<std::uint64_t>(index);
  auto layers = self.actor.shape.bind(initial, 0);
  initialize(self.actor.shape, layers, method, 0.01, own_seed);
  if (self.separate()) {
    auto critic_layers = self.critic.shape.bind(initial, self.critic_offset);
    initialize(self.critic.shape, critic_layers, method, 1.0, own_seed ^ 0x5eed);
  } else if (method == kOrthogonal) {
    layers.back().weight[self.columns()].mul_(100.0);  // the value's row has gain 1
  }
  initial.narrow(0, self.log_std_offset, self.layout.components).fill_(model.initial_log_std);

  self.parameters = initial.to(self.place);
  if (device.is_cuda()) self.linear = std::make_unique<CudaLinear>(self.place, precision == kTf32);
  self.gradients_and_more =
      at::zeros({self.parameters.numel() + kNumLossSums + 1}, self.parameters.options());
  self.gradients = self.gradients_and_more.narrow(0, 0, self.parameters.numel());
  self.totals = at::zeros({kNumLossSums}, at::TensorOptions().dtype(at::kDouble).device(self.place));
  self.bind_network(self.actor, 0, buffers);
  if (self.separate()) self.bind_network(self.critic, self.critic_offset, buffers);
  if (buffers.as_table()) {
    self.unit = buffers.num_agents;
    self.seen_by_unit = buffers.observation.size(2);
  }
  self.log_std = self.parameters.narrow(0, self.log_std_offset, self.layout.components);
  self.layout.log_std = self.log_std.const_data_ptr<float>();
  if (precision == kBf16) self.bind_shadow();
  refresh_shadow();
}

Policy::~Policy() = default;
Policy::Policy(Policy&&) noexcept = default;

const std::string& Policy::name() const { return impl_->name; }
at::Tensor Policy::parameters() const { return impl_->parameters; }
at::Tensor Policy::gradients() const { return impl_->gradients; }
at::Tensor Policy::shadow() const { return impl_->shadow; }

void Policy::refresh_shadow() {
  if (impl_->shadow.defined()) impl_->shadow.copy_(impl_->parameters);
  shadow_is_written();
}

void Policy::shadow_is_written() {
  const Impl& self = *impl_;
  for (const Network* network : {&self.actor, &self.critic})
    if (network->first) network->first->refresh();
  if (self.widened_shadow.defined())
    widen(static_cast<const std::uint16_t*>(self.shadow.const_data_ptr()),
          self.widened_shadow.mutable_data_ptr<float>(), self.shadow.numel());
}

at::Tensor Policy::gradients_and_more() const { return impl_->gradients_and_more; }

std::vector<NamedTensor> Policy::named_parameters() const {
  const Impl& self = *impl_;
  std::vector<NamedTensor> named;
  const auto add_hidden = [&](const std::string& prefix, const std::vector<Layer>& layers) {
    for (std::size_t l = 0; l + 1 < layers.size(); ++l) {
      named.push_back({concat(prefix, l, ".weight"), layers[l].weight});
      named.push_back({concat(prefix, l, ".bias"), layers[l].bias});
    }
  };
  const std::int64_t columns = self.columns();
  const Layer& head = self.actor.layers.back();
  add_hidden("layers.", self.actor.layers);
  named.push_back({"policy_head.weight", head.weight.narrow(0, 0, columns)});
  named.push_back({"policy_head.bias", head.bias.narrow(0, 0, columns)});
  if (self.separate()) add_hidden("value_layers.", self.critic.layers);
  const Layer& value = self.separate() ? self.critic.layers.back() : head;
  named.push_back({"value_head.weight", value.weight.narrow(0, self.separate() ? 0 : columns, 1)});
  named.push_back({"value_head.bias", value.bias.narrow(0, self.separate() ? 0 : columns, 1)});
  if (self.layout.components > 0) named.push_back({"log_std", self.log_std});
  return named;
}

void Policy::keep_activations(PolicyBuffers& buffers) const {
  const Impl& self = *impl_;
  buffers.activations = std::make_shared<Activations>(self.actor.shape, self.critic.shape,
                                                      buffers.mask.numel(), self.place, false);
}

void Policy::act(PolicyBuffers& buffers, int t, const ActOptions& options) {
  Impl& self = *impl_;
  const at::Tensor observation = buffers.observation_rows(t, t + 1);
  const std::int64_t rows = buffers.value.stride(0);
  const Blocks blocks = self.blocks_of(rows, self.device.is_cuda() ? rows : kMaxBlock);
  auto& lanes = self.lanes(self.inference, blocks, false);
  const Queue queue = current_queue(self.device);
  const std::int64_t first = static_cast<std::int64_t>(t) * blocks.rows;
  buffers.in_half_widths = buffers.action_space.is_bounded();
  blocks.each([&](std::int64_t l, std::int64_t begin, std::int64_t end) {
    Activations& own = lanes[static_cast<std::size_t>(l)].own;
    Activations kept;
    if (buffers.activations) kept = buffers.activations->rows(first + begin, end - begin, own);
    Activations& nets = buffers.activations ? kept : own;
    self.forward_block(nets, self.observed(observation, begin, end));
    SampleArgs args;
    args.rows = end - begin;
    args.first_row = begin;
    args.num_agents = buffers.num_agents;
    args.layout = self.layout;
    args.output = nets.actor.output.const_data_ptr<float>();
    args.output_stride = self.actor.shape.outputs;
    args.value_in =
        self.separate() ? nets.critic.output.const_data_ptr<float>() : args.output + self.columns();
    args.value_stride = self.separate() ? 1 : self.actor.shape.outputs;
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
  const at::Tensor observation = buffers.observation_rows(t, t + 1);
  const at::Tensor value = buffers.value[t].flatten();
  const Blocks blocks = self.blocks_of(value.size(0), self.device.is_cuda() ? value.size(0) : kMaxBlock);
  auto& lanes = self.lanes(self.inference, blocks, false);
  blocks.each([&](std::int64_t l, std::int64_t begin, std::int64_t end) {
    Activations& nets = lanes[static_cast<std::size_t>(l)].own;
    const at::Tensor seen = self.observed(observation, begin, end);
    if (self.separate()) {
      self.critic.forward(seen, nets.critic);
    } else {
      self.actor.forward(seen, nets.actor);
    }
    const at::Tensor& output = self.separate() ? nets.critic.output : nets.actor.output;
    value.slice(0, begin, end)
        .copy_(output.narrow(0, 0, end - begin).select(1, self.separate() ? 0 : self.columns()));
  });
}

LossArgs Policy::Impl::loss_args(Lane& lane, const Activations& nets, const Batch& batch,
                                 const LossSettings& settings, std::int64_t begin, std::int64_t end) const {
  LossArgs args;
  args.rows = end - begin;
  args.layout = layout;
  args.ppo = settings.ppo;
  args.with_value = settings.with_value;
  args.fixed = {settings.clip, settings.value_clip, settings.value_coeff, settings.entropy_coeff};
  if (settings.scheduled.defined())
    args.scheduled = reinterpret_cast<const LossCoefficients*>(settings.scheduled.const_data_ptr<float>());
  args.output = nets.actor.output.const_data_ptr<float>();
  args.output_stride = actor.shape.outputs;
  args.value = separate() ? nets.critic.output.const_data_ptr<float>() : args.output + columns();
  args.value_stride = separate() ? 1 : actor.shape.outputs;
  args.action =
      static_cast<const std::int32_t*>(batch.action.const_data_ptr()) + begin * layout.action_width();
  if (batch.action_mask.defined())
    args.action_mask = batch.action_mask.const_data_ptr<std::uint8_t>() + begin * columns();
  args.old_log_prob = batch.log_prob.const_data_ptr<float>() + begin;
  args.old_value = batch.value.const_data_ptr<float>() + begin;
  args.advantage = batch.advantage.const_data_ptr<float>() + begin;
  if (settings.advantage_norm.defined())
    args.advantage_norm = settings.advantage_norm.const_data_ptr<float>();
  args.target = batch.target.const_data_ptr<float>() + begin;
  args.mask = batch.mask.const_data_ptr<std::uint8_t>() + begin;
  args.output_grad = lane.output_grad.mutable_data_ptr<float>();
  args.grad_stride = actor.shape.outputs;
  args.value_grad = separate() ? lane.value_grad.mutable_data_ptr<float>() : args.output_grad + columns();
  args.value_grad_stride = separate() ? 1 : actor.shape.outputs;
  args.log_std_grad = lane.log_std_grad.mutable_data_ptr<float>();
  args.row_sums = lane.row_sums.mutable_data_ptr<float>();
  return args;
}

void Policy::Impl::accumulate_block(Lane& lane, const Batch& batch, const LossSettings& settings,
                                    std::int64_t begin, std::int64_t end) {
  const std::int64_t n = end - begin;
  const at::Tensor observation = observed(batch.observation, begin, end);
  const Queue queue = current_queue(device);
  Activations kept;
  if (batch.activations != nullptr) {
    kept = batch.activations->rows(begin, n, lane.own);
  } else {
    forward_block(lane.own, observation);
  }
  Activations& nets = batch.activations != nullptr ? kept : lane.own;
  loss(queue, loss_args(lane, nets, batch, settings, begin, end));
  add_row_sums(queue, lane.row_sums.const_data_ptr<float>(), kNumLossSums, n,
               lane.partial.mutable_data_ptr<double>(), lane.totals.mutable_data_ptr<double>());
  actor.backward(observation, lane.output_grad.narrow(0, 0, n), nets.actor, lane.actor_grad);
  if (separate())
    critic.backward(observation, lane.value_grad.narrow(0, 0, n), nets.critic, lane.critic_grad);
  if (layout.components > 0) add_columns(lane.log_std_grad.narrow(0, 0, n), nets.actor, lane.log_std_total);
}

// sum of `tensor` of so many lanes, in their order; the first lane's may be it already.
void Policy::Impl::sum_lanes(std::vector<Lane>& lanes, std::int64_t count, at::Tensor& sum,
                             const std::function<const at::Tensor&(const Lane&)>& tensor) {
  if (device.is_cuda()) {  // there is one lane
    if (!sum.is_same(tensor(lanes[0]))) sum.copy_(tensor(lanes[0]));
    return;
  }
  auto* const to = sum.mutable_data_ptr<float>();
  parallel_for(sum.numel(), 32768, [&](std::int64_t begin, std::int64_t end) {
    const auto* const first = tensor(lanes[0]).const_data_ptr<float>();
    if (first != to) std::copy_n(first + begin, end - begin, to + begin);
    for (std::int64_t l = 1; l < count; ++l) {
      const auto* const lane = tensor(lanes[static_cast<std::size_t>(l)]).const_data_ptr<float>();
      for (std::int64_t i = begin; i < end; ++i) to[i] += lane[i];
    }
  });
}

// gradients and totals = the lanes' in their order.
void Policy::Impl::reduce_lanes(std::vector<Lane>& lanes, std::int64_t count) {
  sum_lanes(lanes, count, gradients, [](const Lane& lane) -> const at::Tensor& { return lane.gradients; });
  for (const auto& [network, gradient] :
       {std::pair(&actor, &Lane::actor_grad), {&critic, &Lane::critic_grad}}) {
    if (!network->first) continue;
    at::Tensor& sum = (lanes[0].*gradient).first;
    sum_lanes(lanes, count, sum,
              [&](const Lane& lane) -> const at::Tensor& { return (lane.*gradient).first; });
    network->first->write_gradient(sum, network->first_gradient);
  }
  if (device.is_cuda()) {
    totals.copy_(lanes[0].totals);
    return;
  }
  auto* const total = totals.mutable_data_ptr<double>();
  std::fill_n(total, static_cast<int>(kNumLossSums), 0.0);
  for (std::int64_t l = 0; l < count; ++l)
    for (int k = 0; k < kNumLossSums; ++k)
      total[k] += lanes[static_cast<std::size_t>(l)].totals.const_data_ptr<double>()[k];
}

at::Tensor Policy::accumulate(const Batch& batch, const LossSettings& settings,
                              const std::function<bool()>& give_up) {
  Impl& self = *impl_;
  if (batch.mask.size(0) == 0) {
    self.gradients.zero_();
    return self.totals.zero_();
  }
  const Blocks blocks = self.blocks_of(batch.mask.size(0), self.chunk_rows);
  auto& lanes = self.lanes(self.training, blocks, true);
  for (std::int64_t l = 0; l < blocks.lanes; ++l) {
    Lane& lane = lanes[static_cast<std::size_t>(l)];
    lane.gradients.zero_();
    lane.totals.zero_();
    for (MlpGradients* network : {&lane.actor_grad, &lane.critic_grad})
      if (network->first.defined()) network->first.zero_();
  }
  blocks.each([&](std::int64_t l, std::int64_t begin, std::int64_t end) {
    if (give_up && give_up()) return;
    heartbeat::beat();
    self.accumulate_block(lanes[static_cast<std::size_t>(l)], batch, settings, begin, end);
  });
  self.reduce_lanes(lanes, blocks.lanes);
  return self.totals;
}

}  // namespace wd
