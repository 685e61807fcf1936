// policy.cpp: parameters and inference, in blocks of rows distributed over lanes. Neither the number of lanes
// nor their order depends on threads.
#include "wd/policy.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "kernels/distribution.h"
#include "kernels/hidden_gradient.h"
#include "kernels/noise_gradient.h"
#include "kernels/sample.h"
#include "src/base/join.h"
#include "src/device/device.h"
#include "src/device/tensor_device.h"
#include "src/nets/mixer.h"
#include "src/nets/mlp.h"
#include "src/nets/usage.h"
#include "src/policy/impl.h"
#include "wd/detail/blocks.h"
#include "wd/error.h"

namespace wd {

namespace {

Activations make_activations(const Network& actor, const Network* critic, std::int64_t rows) {
  return {actor.make_workspace(rows, false),
          critic != nullptr ? critic->make_workspace(rows, false) : nullptr};
}

// The value of an action of choices, the sum over heads, [rows].
at::Tensor choices_value(const at::Tensor& values, const at::Tensor& action, const ActionLayout& layout) {
  at::Tensor sum = at::zeros({values.size(0)}, values.options());
  for (std::int64_t h = 0, first = 0; h < layout.num_heads; first += layout.head_size[h++]) {
    const at::Tensor choice = action.narrow(1, h, 1).to(at::kLong) + first;
    sum += values.gather(1, choice).squeeze(1);
  }
  return sum;
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

Blocks Policy::blocks(const Batch& batch) const {
  const Impl& self = *impl_;
  const std::int64_t rows = batch.mask.size(0);
  const Sequences& sequences = batch.sequences;
  WD_CHECK((sequences.length > 0) == (self.actor().state_size() > 0),
           "the policy's batches must be sequences exactly if its network has a state");
  const bool cuda = self.device.is_cuda();
  if (sequences.length == 0) return Blocks::of(rows, cuda, self.chunk_rows, self.rows_per_unit);
  return Blocks::of_size(rows, std::int64_t{sequences.length} * sequences.per_block * self.own.num_agents,
                         cuda);
}

PolicyPass Policy::Impl::forward(const Lane& lane, PolicyPass pass, const Activations* kept,
                                 std::int64_t first, bool computed, const Impl& memory) const {
  const bool criticizes = has_critic && !is_frozen;
  pass.actor = &lane.of(memory.actor());
  if (criticizes) pass.critic = &lane.of(*memory.critic());
  if (kept != nullptr) {
    pass.kept.actor = kept->actor->view(first, pass.rows, *pass.actor);
    pass.actor = pass.kept.actor.get();
    if (criticizes) pass.kept.critic = kept->critic->view(first, pass.rows, *pass.critic);
    if (criticizes) pass.critic = pass.kept.critic.get();
  }
  if (!computed) {
    actor().forward(pass.actor_input, *pass.actor);
    if (criticizes) critic()->forward(pass.critic_input, *pass.critic);
  }
  pass.computed.output = rows_of<const float>(pass.actor->output);
  if (head->has_state_value() && (criticizes || !has_critic))
    pass.computed.value =
        has_critic ? rows_of<const float>(pass.critic->output) : pass.computed.output.column(columns());
  if (layout.latent > 0) pass.latent = actor().latent(*pass.actor).narrow(0, 0, pass.rows).to(at::kFloat);
  pass.computed.latent = rows_of<const float>(pass.latent);
  return pass;
}

void Policy::Impl::make_networks(PolicyOutput output) {
  if (settings.normalize_input) observation_norm.emplace(own, settings, device);
  std::vector<MakeNetwork> networks =
      wd::make_networks(own, settings, output, device, precision, input_norm(), mixer);
  has_critic = networks.size() > 1 && !mixer.reads_state();
  model = std::make_unique<Model>(std::move(networks), head->num_log_std(own.action_space, settings), device,
                                  precision);
  log_std = model->numbers(model->parameters());
  if (head->uses_latent) {
    layout.latent = actor().latent_size();
    WD_CHECK(layout.latent > 0, "gSDE reads the last hidden layer, and this network tells none");
  }
  if (head->uses_latent && head->deviations == Head::kNumbers) {
    log_std = log_std.view({layout.components, layout.latent});
    noise_parts = at::empty({(device.is_cuda() ? HiddenGradientArgs::kMaxParts : 0) * log_std.numel()},
                            log_std.options());
  }
  layout.log_std = log_std.const_data_ptr<float>();
  inference = std::make_unique<Lanes>(std::vector<ModelUse>{{model.get(), ModelUse::kForward}}, 0,
                                      std::vector<RowMemory>{}, device);
  if (!own.as_table() && mixer.kind == Mixer::kNone) return;
  rows_per_unit = observed_per_unit = own.num_agents;
  if (own.as_table()) observed_per_unit = own.all_agents;
}

void Policy::Impl::make_critics(std::uint64_t seed) {
  if (critic_shape.count == 0) return;
  critics = std::make_unique<Model>(
      wd::make_critics(own, settings, critic_shape, device, precision, input_norm()), 0, device, precision);
  critics->join();
  critics->initialize(settings.init_method, 1.0, seed ^ 0xc417);
  critic_inference = std::make_unique<Lanes>(std::vector<ModelUse>{{critics.get(), ModelUse::kForward}}, 0,
                                             std::vector<RowMemory>{}, device);
}

void Policy::Impl::draw_parameters(std::uint64_t seed) {
  at::Tensor initial = at::zeros({model->parameters().numel()}, at::kFloat);
  const InitMethod method = settings.init_method;
  actor().initialize(model->section(initial, 0), method, head->gain, seed);
  if (head->deviations == Head::kOutputs && settings.initial_log_std != 0.0) {
    const Layer last = actor().output_layer(model->section(initial, 0));
    if (!last.weight.defined())
      throw UsageError(concat("policy '", own.name,
                              "': initial_log_std changes the output layer, which "
                              "model.type = ",
                              settings.network->name(),
                              " does not name: override output_layer() in the module, or set "
                              "initial_log_std: 0"));
    last.bias.narrow(0, layout.components, layout.deviations).add_(settings.initial_log_std);
  }
  if (has_critic) {
    critic()->initialize(model->section(initial, 1), method, 1.0, seed ^ 0x5eed);
  } else if (method == kOrthogonal && head->has_state_value()) {
    const Layer last = actor().output_layer(model->section(initial, 0));
    if (last.weight.defined()) last.weight[columns()].mul_(1.0 / head->gain);
  }
  // With orthogonal weights the values of teams diverge.
  if (mixing() != nullptr)
    mixing()->initialize(model->section(initial, 1), kTorchDefault, 1.0, seed ^ 0x3173);
  model->numbers(initial).fill_(settings.initial_log_std);
  model->parameters().copy_(initial);
}

Policy::Policy(const PolicyBuffers& buffers, const ModelSettings& model, int index, std::uint64_t seed,
               int chunk_rows, Device device, Precision precision, PolicyOutput output,
               const CriticShape& critics, const Mixer& mixer)
    : impl_(std::make_unique<Impl>()) {
  Impl& self = *impl_;
  Usage usage = usage_of(buffers, model, output);
  usage.uses.add(Use::kTf32, precision == kTf32);
  usage.uses.add(Use::kCpu, !device.is_cuda());
  require_compatible(buffers.name, usage);
  check_buffers(buffers, model, precision);
  num_threads();  // restricts torch to one thread in each of ours
  self.device = device;
  self.index = static_cast<std::uint32_t>(index);
  self.chunk_rows = chunk_rows;
  self.own = buffers;
  self.place = torch_device(device);
  self.actor_reads = self.reads_of(model.read_by(false));
  self.critic_reads = self.reads_of(model.read_by(true));
  self.settings = model;
  self.precision = precision;
  self.head = &Head::of(buffers.action_space, model, output);
  self.layout = self.head->layout(buffers.action_space);
  self.mixer = mixer;
  self.make_networks(output);
  const std::uint64_t own_seed = seed * 1000003 + static_cast<std::uint64_t>(index);
  self.draw_parameters(own_seed);
  self.critic_shape = critics;
  self.make_critics(own_seed);
  refresh_shadow();
}

Policy::Policy(const PolicyBuffers& buffers, const PolicySettings& settings, int index, std::uint64_t seed,
               int chunk_rows, Device device, Precision precision)
    : Policy(buffers, settings.model, index, seed, chunk_rows, device, precision,
             settings.algorithm->traits().output,
             {settings.algorithm->traits().critics, settings.model.quantiles},
             settings.algorithm->traits().mixer) {
  if (!settings.algorithm->traits().normalizes_value) return;
  normalize_values();
  impl_->value_norm->begin_anew();
}

Policy::Policy(const PolicyBuffers& buffers, const Config& config, int index, Device device)
    : Policy(buffers, config.policies.at(static_cast<std::size_t>(index)), index,
             static_cast<std::uint64_t>(config.trainer.seed), config.trainer.chunk_rows, device,
             config.trainer.precision) {}

Policy::~Policy() = default;
Policy::Policy(Policy&&) noexcept = default;

const std::string& Policy::name() const { return impl_->own.name; }
const ModelSettings& Policy::model_settings() const { return impl_->settings; }
Model& Policy::model() const { return *impl_->model; }
const ActionLayout& Policy::action_layout() const { return impl_->layout; }
const Head& Policy::head() const { return *impl_->head; }
const Network* Policy::mixer() const { return impl_->mixing(); }
TeamMixer Policy::team_mixer() const { return team_mixer_of(impl_->mixer, impl_->own.num_agents); }
std::size_t Policy::action_part() const { return impl_->action_part(); }
Device Policy::device() const { return impl_->device; }
Precision Policy::precision() const { return impl_->precision; }
bool Policy::has_critic() const { return impl_->has_critic; }
Model* Policy::critics() const { return impl_->critics.get(); }
const CriticShape& Policy::critic_shape() const { return impl_->critic_shape; }
at::Tensor Policy::parameters() const { return impl_->model->parameters(); }
at::Tensor Policy::gradients() const { return impl_->model->gradients(); }
at::Tensor Policy::shadow() const { return impl_->model->shadow(); }
void Policy::refresh_shadow() {
  impl_->model->refresh_shadow();
  if (impl_->critics) impl_->critics->refresh_shadow();
}
void Policy::shadow_is_written() { impl_->model->shadow_is_written(); }

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
  add("layers.", self.actor().hidden_parameters());
  add_head("policy_head", self.actor().head(), 0, self.columns());
  if (self.has_critic) add("value_layers.", self.critic()->hidden_parameters());
  if (self.head->has_state_value())
    add_head("value_head", self.value_network().head(), self.value_output(), 1);
  if (self.mixing() != nullptr) {
    const Layer& head = *self.mixing()->head();
    add("mixer.layers.", self.mixing()->hidden_parameters());
    add("mixer.head", {{".weight", head.weight}, {".bias", head.bias}});
  }
  if (self.log_std.numel() > 0) named.push_back({"log_std", self.log_std});
  return named;
}

std::vector<NamedTensor> Policy::statistics() const {
  std::vector<NamedTensor> all;
  if (impl_->observation_norm) all = impl_->observation_norm->statistics();
  return impl_->value_norm ? joined(std::move(all), impl_->value_norm->statistics()) : all;
}

const at::Tensor* Policy::count_observations(const PolicyBuffers& buffers, int steps) {
  if (!impl_->observation_norm) return nullptr;
  impl_->observation_norm->count(buffers, steps);
  return &impl_->observation_norm->moments();
}

void Policy::merge_observations() {
  if (impl_->observation_norm) impl_->observation_norm->merge();
}

std::vector<NamedTensor> Policy::saved() const {
  std::vector<NamedTensor> all = named_parameters();
  if (impl_->critics)
    for (const NamedTensor& part : impl_->critics->named_parameters())
      all.push_back({"critics." + part.name, part.tensor});
  return joined(std::move(all), statistics());
}

void Policy::normalize_values() {
  Impl& self = *impl_;
  if (self.value_norm) return self.value_norm->keep_values();
  if (!self.head->has_state_value())
    throw UsageError(concat("policy '", name(), "' computes no value that could be normalized"));
  const Layer head =
      self.value_network().output_layer(self.model->section(parameters(), self.has_critic ? 1 : 0));
  if (!head.weight.defined()) {
    self.value_norm.emplace(Layer{}, self.device);
    return;
  }
  const std::int64_t row = self.value_output();
  self.value_norm.emplace(Layer{head.weight[row], head.bias.narrow(0, row, 1), {}, {}, {}}, self.device);
}

at::Tensor Policy::value_norm() const { return impl_->value_norm ? impl_->value_norm->norm() : at::Tensor(); }

at::Tensor Policy::rollout_value_norm() const {
  return impl_->value_norm ? impl_->value_norm->rollout_norm() : at::Tensor();
}

void Policy::merge_value_moments(const at::Tensor& moments) {
  impl_->value_norm.value().merge(moments);
  refresh_shadow();
}

void Policy::keep_activations(PolicyBuffers& buffers) const {
  const Impl& self = *impl_;
  buffers.activations =
      std::make_shared<Activations>(make_activations(self.actor(), self.critic(), buffers.mask.numel()));
}

double Policy::activation_bytes(const PolicyBuffers& buffers) const {
  const Impl& self = *impl_;
  if (self.settings.network) return 0.0;
  double numbers = static_cast<double>(self.actor().activation_size());
  if (self.has_critic) numbers += static_cast<double>(self.critic()->activation_size());
  return static_cast<double>(buffers.mask.numel()) * numbers * (self.precision == kBf16 ? 2.0 : 4.0);
}

// The numbers of a row of features, padded to 16 bytes.
static std::int64_t padded_features(const Network& actor) {
  return round_up(actor.feature_size(),
                  static_cast<std::int64_t>(16 / at::elementSize(actor.feature_type())));
}

double Policy::feature_bytes(const PolicyBuffers& buffers) const {
  const Network& actor = impl_->actor();
  return static_cast<double>(buffers.mask.numel() * padded_features(actor)) *
         static_cast<double>(at::elementSize(actor.feature_type()));
}

void Policy::keep_features(PolicyBuffers& buffers) const {
  const Network& actor = impl_->actor();
  WD_CHECK(actor.feature_size() > 0, "the networks of policy '", name(), "' have no features to keep");
  std::vector<std::int64_t> shape = buffers.mask.sizes().vec();
  shape.push_back(padded_features(actor));
  buffers.features = at::zeros(shape, buffers.value.options().dtype(actor.feature_type()));
}

Sequences Policy::sequences(int rollout_steps) const {
  constexpr std::int64_t kMinRows = 16;  // per step: with fewer, matrix products are slow
  const Impl& self = *impl_;
  if (self.actor().state_size() == 0) return {};
  const int length = self.settings.sequence_length > 0 ? self.settings.sequence_length : rollout_steps;
  const std::int64_t rows = self.device.is_cuda() ? self.chunk_rows : std::min(kMaxBlock, self.chunk_rows);
  const std::int64_t per_step = std::max(rows / length, kMinRows);
  return {length, static_cast<int>(std::max(per_step / self.own.num_agents, std::int64_t{1}))};
}

void Policy::act(PolicyBuffers& buffers, int t, const ActOptions& options) {
  Impl& self = *impl_;
  const std::int64_t rows = buffers.value.stride(0);
  const Blocks blocks = Blocks::of_inference(rows, self.device.is_cuda(), self.rows_per_unit);
  const Queue queue = current_queue(self.device);
  const std::int64_t first = static_cast<std::int64_t>(t) * blocks.rows;
  buffers.unit = buffers.action_space.has_bounds() ? ActionUnit::kHalfWidths : ActionUnit::kEnvironment;
  self.inference->run(blocks, [&](Lane& lane, std::int64_t begin, std::int64_t end) {
    const PolicyPass pass = self.forward(lane, self.step_pass(buffers, t, begin, end, true),
                                         buffers.activations.get(), first + begin, false, self);
    sample(queue, self.act_args(buffers, t, pass, begin, options));
  });
}

SampleArgs Policy::Impl::act_args(const PolicyBuffers& buffers, int t, const PolicyPass& pass,
                                  std::int64_t begin, const ActOptions& options) const {
  const std::int64_t row = t * buffers.value.stride(0) + begin;
  SampleArgs args = sample_args(buffers, pass, row);
  args.first_row = begin;
  args.key = RandomKey::of(options.seed, RandomUse::kAction);
  args.noise_key = RandomKey::of(options.seed, RandomUse::kNoiseMatrix);
  args.noise_every = settings.noise_every;
  args.step = options.step;
  args.time = options.time;
  args.rollout_steps = options.rollout_steps;
  args.first_replica = options.first_replica;
  args.policy = index;
  args.greedy = options.greedy;
  args.exploration = options.exploration;
  args.action = static_cast<std::int32_t*>(buffers.action.data_ptr()) + row * layout.action_width();
  args.log_prob = buffers.log_prob.mutable_data_ptr<float>() + row;
  if (buffers.noise.defined()) {
    args.noise = buffers.noise[t].const_data_ptr<float>() + begin * layout.components;
    args.next_noise = buffers.noise[t + 1].mutable_data_ptr<float>() + begin * layout.components;
    args.restarted = buffers.restarted[t].const_data_ptr<std::uint8_t>() + begin;
  }
  return args;
}

void Policy::freeze() {
  impl_->is_frozen = true;
  impl_->model->freeze();
  if (impl_->critics) impl_->critics->freeze();
}

void Policy::evaluate(PolicyBuffers& buffers, int t) {
  Impl& self = *impl_;
  const Blocks blocks =
      Blocks::of_inference(buffers.value.stride(0), self.device.is_cuda(), self.rows_per_unit);
  if (self.critics) return self.criticize(buffers, t, blocks);
  const Queue queue = current_queue(self.device);
  const std::int64_t first = static_cast<std::int64_t>(t) * blocks.rows;
  self.inference->run(blocks, [&](Lane& lane, std::int64_t begin, std::int64_t end) {
    PolicyPass pass;
    if (self.has_critic) {  // nothing else is computed
      Network::Workspace& own = lane.of(*self.critic());
      self.critic()->forward(self.step_input(buffers, t, begin, end, true, false), own);
      pass.rows = end - begin;
      pass.computed.value = rows_of<const float>(own.output);
    } else {
      pass = self.forward(lane, self.step_pass(buffers, t, begin, end, false), nullptr, 0, false, self);
    }
    sample(queue, self.sample_args(buffers, pass, first + begin));
  });
}

SampleArgs Policy::Impl::sample_args(const PolicyBuffers& buffers, const PolicyPass& pass,
                                     std::int64_t row) const {
  SampleArgs args;
  args.rows = pass.rows;
  args.num_agents = buffers.num_agents;
  args.layout = layout;
  args.networks = pass.computed;
  args.value_norm = norm_of_value();
  if (buffers.action_mask.defined())
    args.action_mask = buffers.action_mask.const_data_ptr<std::uint8_t>() + row * columns();
  args.value = buffers.value.mutable_data_ptr<float>() + row;
  return args;
}

void Policy::Impl::criticize(const PolicyBuffers& buffers, int t, const Blocks& blocks) {
  const at::Tensor value = buffers.value[t].flatten(), action = buffers.action[t].flatten(0, 1);
  if (actor().state_size() > 0) return void(value.fill_(std::nan("")));  // the critics' states are not kept
  critic_inference->run(blocks, [&](Lane& lane, std::int64_t begin, std::int64_t end) {
    const std::int64_t n = end - begin;
    NetworkInput input = step_input(buffers, t, begin, end, true, false);
    if (layout.components > 0) input.parts[action_part()] = action.slice(0, begin, end);
    at::Tensor lowest;
    for (const auto& network : critics->networks()) {
      Network::Workspace& workspace = lane.of(*network);
      network->forward(input, workspace);
      const at::Tensor output = workspace.output.narrow(0, 0, n);
      const at::Tensor values = layout.components > 0 ? output.mean(1) : output;
      lowest = lowest.defined() ? at::minimum(lowest, values) : values;
    }
    if (layout.components == 0) lowest = choices_value(lowest, action.slice(0, begin, end), layout);
    value.slice(0, begin, end).copy_(lowest);
  });
}

void Policy::Impl::add_noise_gradient(const PolicyPass& pass, const at::Tensor& per_row,
                                      const at::Tensor& sum) const {
  noise_gradient(current_queue(device), {.rows = pass.rows,
                                         .components = layout.components,
                                         .size = layout.latent,
                                         .log_std = layout.log_std,
                                         .per_row = rows_of<const float>(per_row),
                                         .latent = pass.computed.latent,
                                         .parts = at_row<float>(noise_parts),
                                         .gradient = at_row<float>(sum)});
}

at::Tensor Policy::deviations(const PolicyBuffers& buffers, std::int64_t first, std::int64_t n) const {
  const Impl& self = *impl_;
  const std::int64_t C = self.layout.components;
  const at::Tensor output = buffers.activations->actor->output.narrow(0, first, n);
  if (self.head->deviations == Head::kNone) return at::zeros({n, C});
  if (self.head->deviations == Head::kOutputs)
    return output.narrow(1, C, C).clamp(kMinLogStd, kMaxLogStd).exp().to(at::kFloat).cpu();
  const at::Tensor deviation = self.log_std.exp();
  if (self.layout.latent == 0) return deviation.cpu().expand({n, self.layout.components});
  const at::Tensor z = self.actor().latent(*buffers.activations->actor).narrow(0, first, n).to(at::kFloat);
  return (z.square().mm(deviation.square().t()) + Gsde::kLeastVariance).sqrt().cpu();
}

PolicyPass Policy::forward(const Lane& lane, const Batch& batch, std::int64_t begin, std::int64_t end) const {
  return impl_->forward(lane, impl_->batch_pass(batch, begin, end), batch.activations, begin,
                        batch.activations != nullptr, *impl_);
}

void Policy::backward(const Lane& lane, const PolicyPass& pass, const at::Tensor& output_grad,
                      const at::Tensor& value_grad, const at::Tensor& log_std_grad) const {
  const Impl& self = *impl_;
  const std::int64_t n = pass.rows;
  self.actor().backward(pass.actor_input, output_grad.narrow(0, 0, n), *pass.actor,
                        lane.gradient(self.actor()));
  if (self.has_critic && value_grad.defined())
    self.critic()->backward(pass.critic_input, value_grad.narrow(0, 0, n), *pass.critic,
                            lane.gradient(*self.critic()));
  if (self.log_std.numel() == 0) return;
  const at::Tensor& sum = lane.numbers(*self.model);
  if (pass.latent.defined()) return self.add_noise_gradient(pass, log_std_grad, sum);
  if (self.device.is_cuda()) {
    HiddenGradientArgs args{.rows = n, .width = self.layout.components};
    args.grad.floats = log_std_grad.mutable_data_ptr<float>();
    args.grad.stride = log_std_grad.stride(0);
    args.bias_grad = sum.mutable_data_ptr<float>();
    args.biases = args.width;
    args.parts = at_row<float>(self.noise_parts);
    cuda::hidden_gradient(current_queue(self.device).stream, args);
  } else {
    add_columns(rows_of<const float>(log_std_grad), n, self.layout.components, sum.mutable_data_ptr<float>());
  }
}

}  // namespace wd
