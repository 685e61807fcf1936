// bank.cpp: sorts, gathers, acts tile by tile, and scatters.
#include "src/policy/bank.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "src/config/heads.h"
#include "src/device/device.h"
#include "src/device/tensor_device.h"
#include "src/rollout/who_plays.h"
#include "wd/detail/blocks.h"
#include "wd/error.h"

namespace wd {
namespace {

constexpr std::int64_t kGpuTile = 128;  // rows at least

std::byte* bytes_of(const at::Tensor& tensor) { return static_cast<std::byte*>(tensor.data_ptr()); }

// Row t, or the only one.
std::byte* row_of(const at::Tensor& tensor, std::int64_t t) {
  return bytes_of(tensor) + t * tensor.stride(0) * tensor.element_size();
}

}  // namespace

bool Bank::can_hold(const Policy& policy) {
  const Policy::Impl& self = *policy.impl_;
  if (!self.device.is_cuda()) return true;
  return self.actor().latent_size() > 0 && self.log_std.numel() == 0 && self.layout.latent == 0 &&
         self.actor().several(2) != nullptr;
}

bool Bank::are_alike(const PolicySettings& one, const PolicySettings& other) {
  const auto of = [](const PolicySettings& policy) {
    ModelSettings model = policy.model;
    model.init_method = {};
    model.initial_log_std = 0.0;
    model.model_ckpt_filepath.clear();
    model.sequence_length = 0;
    model.critic_dims.clear();
    return model;
  };
  const AlgorithmTraits a = one.algorithm->traits(), b = other.algorithm->traits();
  return of(one) == of(other) && a.output == b.output && a.carries_noise == b.carries_noise &&
         a.mixer.reads_state() == b.mixer.reads_state();
}

Bank::Size Bank::size_of(std::int64_t rows, std::int64_t units, std::int64_t unit_rows, int sets, bool cuda) {
  std::int64_t tile = Blocks::of_inference(rows, false, unit_rows).block / unit_rows;
  if (cuda) tile = round_up(std::max(rows / (4 * sets), kGpuTile), unit_rows) / unit_rows;
  return {tile, units / tile + sets};
}

double Bank::bytes(const PolicyLayout& layout, const PolicySettings& lead, std::int64_t replicas, bool is_own,
                   int sets, Device device, Precision precision) {
  const AlgorithmTraits traits = lead.algorithm->traits();
  bool of_replicas = layout.as_table() || traits.mixer.kind != Mixer::kNone;
  for (const bool of_critic : {false, true})
    for (const InputPart& part : input_parts(layout, lead.model.read_by(of_critic)))
      of_replicas = of_replicas || part.is_shared();
  const auto networks = make_networks(layout, lead.model, traits.output, {}, precision, {}, traits.mixer);
  const std::unique_ptr<Network> actor = networks[0]();
  const Head& head = Head::of(layout.action_space, lead.model, traits.output);
  if (device.is_cuda() &&
      (actor->latent_size() == 0 || head.num_log_std(layout.action_space, lead.model) > 0 ||
       head.uses_latent || of_replicas || lead.model.layer_norm || lead.model.normalize_input))
    return 0.0;
  const std::int64_t A = layout.num_agents, unit_rows = of_replicas ? A : 1;
  const std::int64_t units =
      replicas * (of_replicas ? static_cast<std::int64_t>(layout.first_slot.size()) : A);
  const auto [tile, capacity] = size_of(replicas * A, units, unit_rows, sets, device.is_cuda());
  double unit = sizeof(std::int64_t), carried = 0.0;  // its number, and the rows that are gathered for it
  for (const BufferField& field : buffer_fields()) {
    const double bytes = field.bytes(layout);
    if (bytes == 0.0) continue;
    const bool is_carried = field.tensor == &PolicyBuffers::state || field.tensor == &PolicyBuffers::noise;
    const bool is_read = field.stream >= 0 ? layout.reads_stream(static_cast<std::size_t>(field.stream))
                                           : (field.phases & BufferField::kInference) != 0;
    if (is_read) unit += bytes / (of_replicas ? 1.0 : static_cast<double>(A)) * (is_carried ? 2.0 : 1.0);
    if (is_carried && !is_own) carried += bytes;
  }
  // Working memory: on a GPU of all tiles, with their weights; on a CPU of lanes, of which a policy that acts
  // alone has some as well.
  double bytes = unit * static_cast<double>(capacity * tile) + carried * static_cast<double>(replicas);
  if (device.is_cuda()) {
    const double weight = precision == kBf16 ? 6.0 : 4.0, number = precision == kBf16 ? 2.0 : 4.0;
    return bytes +
           static_cast<double>(capacity) * (weight * static_cast<double>(actor->num_parameters()) +
                                            number * static_cast<double>(actor->activation_size() * tile));
  }
  const Blocks alone = Blocks::of_inference(replicas * A, false, unit_rows);
  std::int64_t rows = std::min(capacity, kMaxLanes) * tile * unit_rows;
  if (is_own)
    rows =
        (std::min(capacity, kMaxLanes) - alone.lanes) * std::min(alone.max_rows, capacity * tile * unit_rows);
  for (const MakeNetwork& make : networks)
    bytes += static_cast<double>(rows * make()->activation_size()) * sizeof(float);
  return bytes;
}

Bank::Bank(const PolicyBuffers& buffers, Policy& lead, const PolicySettings& settings, bool is_own, int sets,
           int players)
    : lead_(*lead.impl_), settings_(settings), is_own_(is_own) {
  const std::int64_t E = buffers.reward.size(1), A = buffers.num_agents;
  const auto seats = static_cast<std::int64_t>(buffers.first_slot.size());
  tiles_.num_envs = static_cast<int>(E);
  tiles_.num_agents = static_cast<int>(A);
  tiles_.num_seats = static_cast<int>(seats);
  std::ranges::copy(buffers.first_slot, tiles_.first_slot);
  tiles_.first_slot[seats] = buffers.num_agents;
  tiles_.of_replicas = lead_.rows_per_unit > 1 || lead_.observed_per_unit > 1;
  const std::int64_t unit_rows = tiles_.unit_rows(), units = tiles_.of_replicas ? E * seats : E * A;
  const auto [tile, capacity] = size_of(E * A, units, unit_rows, sets, lead_.device.is_cuda());
  tiles_.tile = tile;

  const auto ints = [&](std::int64_t count, at::ScalarType type = at::kInt) {
    return memory_.emplace_back(at::zeros({count}, at::TensorOptions(lead_.place).dtype(type)));
  };
  const auto numbers = [&](std::int64_t count) { return ints(count).mutable_data_ptr<std::int32_t>(); };
  tiles_.before = numbers(tile_chunks(E) * sets);
  tiles_.total = numbers(sets);
  tiles_.first_tile = numbers(sets + 1);
  tiles_.set_of_tile = numbers(capacity);
  tiles_.units_of_tile = numbers(capacity);
  tiles_.num_tiles = capacity;
  tiles_.index = ints(capacity * tiles_.tile, at::kLong).mutable_data_ptr<std::int64_t>();
  set_of_player_ = at::full({players}, -1, at::TensorOptions(lead_.place).dtype(at::kInt));
  tiles_.set_of_player = set_of_player_.const_data_ptr<std::int32_t>();

  static_cast<PolicyLayout&>(staged_) = lead_.own;
  staged_.num_agents = buffers.num_agents;
  staged_.bounds = buffers.bounds;
  // A tensor for the gathered rows of one that is [.., E, agents or 1, ...].
  const auto stage = [&](const at::Tensor& from, std::int64_t steps) {
    std::vector<std::int64_t> shape = from.sizes().vec();
    shape[0] = steps;
    shape[1] = capacity * tiles_.tile;
    if (!tiles_.of_replicas) shape[2] = 1;
    return at::zeros(shape, from.options());
  };
  const auto read = [&](const at::Tensor& from, at::Tensor& to, bool by_step, std::int64_t steps) {
    if (!from.defined()) return;
    to = stage(from, steps);
    const std::int64_t all = from.stride(0) * from.element_size();
    inputs_.push_back({from, to, by_step, all / (tiles_.of_replicas ? E : E * A)});
  };
  read(buffers.observation, staged_.observation, true, 1);
  read(buffers.action_mask, staged_.action_mask, true, 1);
  read(buffers.restarted, staged_.restarted, true, 1);
  for (std::size_t k = 0; k < staged_.streams.size(); ++k)
    if (staged_.reads_stream(k)) read(buffers.stream_rows[k], staged_.stream_rows[k], true, 1);
  const auto carry = [&](std::int64_t size, const at::Tensor& shared, at::Tensor& own, at::Tensor& to) {
    if (size == 0) return;
    if (!is_own) own = at::zeros({1, E, A, size}, buffers.value.options());
    read(is_own ? shared : own, to, is_own, 2);
  };
  carry(staged_.state_size, buffers.state, state_, staged_.state);
  carry(staged_.carries_noise ? staged_.action_space.components() : 0, buffers.noise, noise_, staged_.noise);
  staged_.action = stage(buffers.action, 1);
  staged_.value = stage(buffers.value, 1);
  staged_.log_prob = stage(buffers.log_prob, 1);
  whole_ = lead_.step_pass(staged_, 0, 0, capacity * tiles_.tile * unit_rows, true);
  if (!lead_.device.is_cuda()) {  // however many tiles a step has, nothing is allocated later
    Blocks most = Blocks::of_size(capacity * tiles_.tile * unit_rows, tiles_.tile * unit_rows, false);
    if (is_own) most.max_rows = Blocks::of_inference(E * A, false, unit_rows).max_rows;  // for evaluate()
    lead_.inference->reserve(most);
    return;
  }
  const at::Tensor own = lead_.model->section(lead_.model->parameters(), 0);
  tiled_.emplace(lead_.actor().several(static_cast<int>(capacity)));
  tiled_->memory = tiled_->network->make_workspace(tiles_.tile * unit_rows, false);
  tiled_->parameters = at::zeros({capacity, own.numel()}, own.options());
  if (lead_.precision == kBf16) tiled_->shadow = at::zeros_like(tiled_->parameters, at::kBFloat16);
  tiled_->network->bind(tiled_->parameters.flatten(),
                        tiled_->shadow.defined() ? tiled_->shadow.flatten() : at::Tensor());
  tiled_->sources = ints(sets, at::kLong);
}

void Bank::add(Policy& policy, int player) {
  set_of_player_[player] = static_cast<int>(sets_.size());
  sets_.push_back(policy.impl_.get());
  tiles_.num_sets = static_cast<int>(sets_.size());
  if (!tiled_) return;
  const at::Tensor actor = sets_.back()->model->section(policy.parameters(), 0);
  tiled_->sources[tiles_.num_sets - 1] = reinterpret_cast<std::int64_t>(actor.data_ptr());
}

PolicyPass Bank::pass_of_tiles(Queue queue) {
  Tiled& all = *tiled_;
  fill_tiles(queue, {.num_tiles = all.parameters.size(0),
                     .floats = all.parameters.size(1),
                     .set_of_tile = tiles_.set_of_tile,
                     .units_of_tile = tiles_.units_of_tile,
                     .from = all.sources.const_data_ptr<std::int64_t>(),
                     .to = all.parameters.mutable_data_ptr<float>()});
  if (all.shadow.defined()) all.shadow.copy_(all.parameters);
  NetworkInput input;
  input.parts[0] = whole_.actor_input.parts[0].unflatten(0, {all.parameters.size(0), -1});
  all.network->forward(input, *all.memory);
  PolicyPass pass;
  pass.rows = staged_.value.numel();
  pass.computed.output = rows_of<const float>(all.memory->output.flatten(0, 1));
  return pass;
}

// The part of `whole_` that these units have.
PolicyPass Bank::pass_of(std::int64_t unit, std::int64_t units) const {
  const auto of_units = [&](const at::Tensor& all) {
    const std::int64_t rows = all.size(0) / staged_.value.size(1);
    return all.narrow(0, unit * rows, units * rows);
  };
  const auto input_of = [&](const NetworkInput& all, const std::vector<Policy::Impl::Read>& reads) {
    NetworkInput input;
    for (std::size_t k = 0; k < reads.size(); ++k)
      input.parts[k] = reads[k].field == nullptr ? all.parts[k] : of_units(all.parts[k]);
    if (!all.state.defined()) return input;
    input.state = of_units(all.state);
    input.restarted = of_units(all.restarted);
    input.next_state = of_units(all.next_state);
    return input;
  };
  PolicyPass pass;
  pass.rows = units * tiles_.unit_rows();
  pass.actor_input = input_of(whole_.actor_input, lead_.actor_reads);
  if (lead_.has_critic)
    pass.critic_input =
        lead_.reads_alike() ? pass.actor_input : input_of(whole_.critic_input, lead_.critic_reads);
  return pass;
}

void Bank::act(PolicyBuffers& buffers, int t, const Policy::ActOptions& options) {
  const Queue queue = current_queue(lead_.device);
  TilesArgs tiles = tiles_;
  tiles.who = who_plays(buffers, t);
  sort_into_tiles(queue, tiles);
  const std::int64_t unit_rows = tiles.unit_rows(), rows = tiles.tile * unit_rows;
  const std::int64_t A = tiles.num_agents, rows_of_all = tiles.num_envs * A;
  ScatterArgs back;
  back.tiles = tiles;
  const auto put = [&](const at::Tensor& from, std::int64_t row, const at::Tensor& to, std::int64_t step) {
    if (from.defined())
      back.add(row_of(from, row), row_of(to, step), to.stride(0) * to.element_size() / rows_of_all);
  };
  put(staged_.action, 0, buffers.action, t);
  put(staged_.state, 1, is_own_ ? buffers.state : state_, is_own_ ? t + 1 : 0);
  put(staged_.noise, 1, is_own_ ? buffers.noise : noise_, is_own_ ? t + 1 : 0);
  const int of_frozen = back.num_arrays;
  if (is_own_) {
    put(staged_.value, 0, buffers.value, t);
    put(staged_.log_prob, 0, buffers.log_prob, t);
  }
  Policy::ActOptions frozen = options;
  frozen.greedy = false;
  frozen.exploration = nullptr;
  const auto act_for = [&](const Policy::Impl& one, const PolicyPass& pass, std::int64_t begin, bool learns) {
    SampleArgs args = one.act_args(staged_, 0, pass, begin, learns ? options : frozen);
    args.index = tiles.index + begin / unit_rows;
    args.unit = static_cast<int>(unit_rows);
    sample(queue, args);
    ScatterArgs scattered = back;
    scattered.first = begin;
    scattered.rows = pass.rows;
    if (!learns) scattered.num_arrays = of_frozen;
    scatter_rows(queue, scattered);
  };
  const auto gather_units = [&](std::int64_t unit, std::int64_t units) {
    GatherArgs gathered;
    gathered.index = tiles.index + unit;
    gathered.rows = units;
    for (const Input& input : inputs_)
      gathered.add(row_of(input.from, input.by_step ? t : 0), bytes_of(input.to) + unit * input.unit_bytes,
                   input.unit_bytes);
    gather(queue, gathered);
  };
  if (tiled_) {
    gather_units(0, staged_.value.size(1));
    return act_for(lead_, pass_of_tiles(queue), 0, false);
  }
  lead_.inference->run(Blocks::of_size(tiles.first_tile[tiles.num_sets] * rows, rows, false),
                       [&](Lane& lane, std::int64_t begin, std::int64_t) {
                         const std::int64_t tile = begin / rows, unit = begin / unit_rows;
                         const std::int64_t units = tiles.units_of_tile[tile];
                         const int set = tiles.set_of_tile[tile];
                         const Policy::Impl& one = *sets_[static_cast<std::size_t>(set)];
                         gather_units(unit, units);
                         act_for(one, one.forward(lane, pass_of(unit, units), nullptr, 0, false, lead_),
                                 begin, is_own_ && set == 0);
                       });
}

}  // namespace wd
