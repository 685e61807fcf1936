// fields.cpp: the table of a rollout's buffers: which form each has for a policy.
#include <algorithm>
#include <optional>

#include "kernels/gather.h"
#include "wd/trajectory.h"

namespace wd {

namespace {

constexpr std::int64_t kRowAlignment = 16;  // bytes

// The row stride, in entries.
std::int64_t padded(int size, at::ScalarType type) {
  const std::int64_t unit = kRowAlignment / static_cast<std::int64_t>(at::elementSize(type));
  return (size + unit - 1) / unit * unit;
}

using Form = BufferField::Form;

using MaybeForm = std::optional<Form>;

MaybeForm observation_form(const PolicyLayout& policy) {
  const at::ScalarType type =
      policy.observation_type == ObservationType::kFloat32 ? at::kFloat : at::kBFloat16;
  return Form{{policy.as_table() ? policy.all_agents : policy.num_agents, padded(policy.row_size(), type)},
              type,
              policy.row_size()};
}
MaybeForm mask_form(const PolicyLayout& policy) {
  if (!policy.has_action_mask) return {};
  return Form{{policy.num_agents, policy.action_space.choices()}, at::kByte};
}
MaybeForm action_form(const PolicyLayout& policy) {
  return Form{{policy.num_agents, policy.action_space.width()},
              policy.action_space.is_continuous() ? at::kFloat : at::kInt};
}
MaybeForm number_form(const PolicyLayout& policy) { return Form{{policy.num_agents}, at::kFloat}; }
MaybeForm flag_form(const PolicyLayout& policy) { return Form{{policy.num_agents}, at::kByte}; }
MaybeForm state_form(const PolicyLayout& policy) {
  if (policy.state_size == 0) return {};
  return Form{{policy.num_agents, policy.state_size}, at::kFloat};
}
MaybeForm restarted_form(const PolicyLayout& policy) {
  const bool is_read = policy.state_size > 0 || policy.carries_noise || policy.opponents > 0;
  return is_read ? flag_form(policy) : MaybeForm();
}
MaybeForm noise_form(const PolicyLayout& policy) {
  if (!policy.carries_noise) return {};
  return Form{{policy.num_agents, policy.action_space.components()}, at::kFloat};
}
MaybeForm replica_flag_form(const PolicyLayout&) { return Form{{}, at::kByte}; }
MaybeForm opponent_form(const PolicyLayout& policy) {
  return policy.opponents > 0 ? Form{{}, at::kInt} : MaybeForm();
}
MaybeForm statistics_form(const PolicyLayout& policy) {
  if (policy.num_statistics == 0) return {};
  return Form{{policy.num_statistics}, at::kFloat};
}

// Allocated by Policy::keep_features().
MaybeForm no_form(const PolicyLayout&) { return {}; }

// The declaration of a field's stream; null if it has none, or the environment declares fewer.
const StreamSpec* declared(int stream, const PolicyLayout& policy) {
  const bool is = stream >= 0 && stream < static_cast<int>(policy.streams.size());
  return is ? &policy.streams[static_cast<std::size_t>(stream)] : nullptr;
}
template <int k>
MaybeForm stream_form(const PolicyLayout& policy) {
  const StreamSpec* const stream = declared(k, policy);
  if (stream == nullptr) return {};
  return Form{{stream->of == StreamSpec::kAgent ? policy.num_agents : 1, stream->size()},
              stream->type == StreamSpec::kFloat32 ? at::kFloat : at::kByte};
}

constexpr BufferField::Owner kPolicy = BufferField::kPolicy, kCommon = BufferField::kCommon;
constexpr unsigned kEnvironment = BufferField::kEnvironment, kInference = BufferField::kInference,
                   kReturns = BufferField::kReturns, kLoss = BufferField::kLoss;
using P = PolicyBuffers;
using B = Transitions;

template <int k>
constexpr BufferField of_stream() {
  return {"a stream", kPolicy, nullptr,      nullptr, stream_form<k>, true,
          true,       false,   kEnvironment, true,    true,           k};
}

constexpr BufferField kFields[] = {
    // name, owner, tensor, in a batch, form, T + 1 rows, carried over, per sequence, phases, replayed,
    // recorded
    {"observation", kPolicy, &P::observation, &B::observation, observation_form, true, true, false,
     kEnvironment | kInference | kLoss, true, true},
    {"active", kPolicy, &P::active, nullptr, flag_form, true, true, false, kEnvironment | kReturns, false,
     true},
    {"action_mask", kPolicy, &P::action_mask, &B::action_mask, mask_form, true, true, false,
     kEnvironment | kInference | kLoss, true, true},
    {"state", kPolicy, &P::state, &B::state, state_form, true, true, true, kInference | kLoss, true, false},
    {"restarted", kPolicy, &P::restarted, &B::restarted, restarted_form, true, true, false,
     kEnvironment | kInference | kLoss, true, false},
    {"noise", kPolicy, &P::noise, nullptr, noise_form, true, true, false, kInference, false, false},
    {"value", kPolicy, &P::value, &B::value, number_form, true, false, false, kInference | kReturns | kLoss,
     false, false},
    {"action", kPolicy, &P::action, &B::action, action_form, false, false, false,
     kEnvironment | kInference | kLoss, true, true},
    {"log_prob", kPolicy, &P::log_prob, &B::log_prob, number_form, false, false, false, kInference | kLoss,
     false, false},
    {"reward", kPolicy, &P::reward, nullptr, number_form, false, false, false, kEnvironment | kReturns, true,
     true},
    {"agent_terminated", kPolicy, &P::agent_terminated, nullptr, flag_form, false, false, false,
     kEnvironment | kReturns, false, true},
    {"advantage", kPolicy, &P::advantage, &B::advantage, number_form, false, false, false, kReturns | kLoss,
     false, false},
    {"target", kPolicy, &P::target, &B::target, number_form, false, false, false, kReturns | kLoss, false,
     false},
    {"mask", kPolicy, &P::mask, &B::mask, flag_form, false, false, false, kReturns | kLoss, false, false},
    {"features", kPolicy, &P::features, &B::features, no_form, false, false, false, kInference | kLoss, false,
     false},
    {"terminated", kCommon, &P::terminated, nullptr, replica_flag_form, false, false, false,
     kEnvironment | kReturns, false, true},
    {"truncated", kCommon, &P::truncated, nullptr, replica_flag_form, false, false, false,
     kEnvironment | kReturns, false, true},
    {"reset_step", kCommon, &P::reset_step, nullptr, replica_flag_form, false, false, false,
     kEnvironment | kReturns, false, true},
    {"opponent", kPolicy, &P::opponent, nullptr, opponent_form, true, true, false, 0, false, false},
    // no phase: most rows are not written
    {"statistics", kCommon, &P::statistics, nullptr, statistics_form, false, false, false, 0, false, false},
    of_stream<0>(),
    of_stream<1>(),
    of_stream<2>(),
    of_stream<3>()};
static_assert(kMaxStreams == 4);

// Gathering copies at most all fields of a batch at once.
static_assert(std::ranges::count_if(kFields,
                                    [](const BufferField& field) {
                                      return field.row != nullptr || field.stream >= 0;
                                    }) == kMaxGathered,
              "set kMaxGathered in kernels/gather.h to the number of fields that batches have");

}  // namespace

std::span<const BufferField> buffer_fields() { return kFields; }

std::string BufferField::name_of(const PolicyLayout& policy) const {
  const StreamSpec* const own = declared(stream, policy);
  return own == nullptr ? name : own->name;
}

const at::Tensor& BufferField::of(const PolicyBuffers& buffers) const {
  return stream < 0 ? buffers.*tensor : buffers.stream_rows[static_cast<std::size_t>(stream)];
}

at::Tensor& BufferField::of(PolicyBuffers& buffers) const {
  return stream < 0 ? buffers.*tensor : buffers.stream_rows[static_cast<std::size_t>(stream)];
}

at::Tensor& BufferField::in(Transitions& batch) const {
  return stream < 0 ? batch.*row : batch.stream_rows[static_cast<std::size_t>(stream)];
}

const at::Tensor& BufferField::in(const Transitions& batch) const {
  return stream < 0 ? batch.*row : batch.stream_rows[static_cast<std::size_t>(stream)];
}

std::string BufferField::part_of(const PolicyLayout& policy) const {
  const bool is = stream < 0 ? tensor == &PolicyBuffers::observation : declared(stream, policy) != nullptr;
  return is ? name_of(policy) : "";
}

bool BufferField::in_batch(const PolicyLayout& policy) const {
  if (stream < 0) return row != nullptr;
  return declared(stream, policy) != nullptr && policy.reads_stream(static_cast<std::size_t>(stream));
}

bool BufferField::is_replayed(const PolicyLayout& policy) const {
  if (tensor == &PolicyBuffers::restarted) return replayed && policy.state_size > 0;
  return replayed && (stream < 0 || in_batch(policy));
}

double BufferField::bytes(const PolicyLayout& policy) const {
  const MaybeForm of_step = form(policy);
  if (!of_step) return 0.0;
  double bytes = static_cast<double>(at::elementSize(of_step->type));
  for (const std::int64_t n : of_step->shape) bytes *= static_cast<double>(n);
  return bytes;
}

bool is_shared(const BufferField& field, const PolicyLayout& policy) {
  const bool is_table = policy.as_table() && field.tensor == &PolicyBuffers::observation;
  const StreamSpec* const stream = declared(field.stream, policy);
  return field.owner == BufferField::kCommon || is_table ||
         (stream != nullptr && stream->of == StreamSpec::kReplica);
}

}  // namespace wd
