// opponents.cpp: frozen policies act on the same observations as the policy whose place they take.
#include "src/game/opponents.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "kernels/opponents.h"
#include "src/base/join.h"
#include "src/device/device.h"
#include "src/device/tensor_device.h"
#include "wd/error.h"

namespace wd {
namespace {

// Buffers of one step, in which the frozen policy reads row t of those of the policy whose place it takes.
PolicyBuffers row_of(const PolicyBuffers& from, const PolicyBuffers& own, int t) {
  PolicyBuffers row = own;
  const auto at = [&](const at::Tensor& tensor) {
    return tensor.defined() ? tensor.narrow(0, t, 1) : at::Tensor();
  };
  row.observation = at(from.observation);
  row.action_mask = at(from.action_mask);
  row.restarted = at(from.restarted);
  for (std::size_t k = 0; k < from.stream_rows.size(); ++k) row.stream_rows[k] = at(from.stream_rows[k]);
  return row;
}

// What a frozen policy writes: the actions of one step, and the state before and after it.
PolicyBuffers own_buffers(const PolicyBuffers& from, const PolicySettings& settings) {
  PolicyBuffers own;
  static_cast<PolicyLayout&>(own) = from;
  own.bounds = from.bounds;
  own.opponents = 0;
  own.state_size = settings.model.state_size();
  own.carries_noise = settings.algorithm->traits().carries_noise;
  for (std::size_t k = 0; k < own.streams.size(); ++k)
    own.reads[k] = contains(settings.model.all_reads(), own.streams[k].name);
  const std::int64_t E = from.reward.size(1), A = from.num_agents;
  const auto floats = from.reward.options();
  own.action = at::zeros({1, E, A, from.action.size(3)}, from.action.options());
  own.value = at::zeros({1, E, A}, floats);
  own.log_prob = at::zeros({1, E, A}, floats);
  own.mask = at::zeros({1, E, A}, from.mask.options());
  if (own.state_size > 0) own.state = at::zeros({2, E, A, own.state_size}, floats);
  if (own.carries_noise) own.noise = at::zeros({2, E, A, own.action_space.components()}, floats);
  return own;
}

bool remembers(const PolicySettings& settings) {
  return settings.model.state_size() > 0 || settings.algorithm->traits().carries_noise;
}

}  // namespace

bool OpponentList::is_as_before() const {
  for (std::size_t k = 0; k < before.size(); ++k)
    if (before[k] != static_cast<int>(k) + 1) return false;
  return kept == static_cast<int>(before.size());
}

OpponentList find_opponents(const Config& config, const Spec& spec, const PolicySettings& policy) {
  OpponentList list;
  list.shares.push_back(0);
  if (policy.roles.size() > 1)
    throw UsageError(
        concat("policy '", policy.name, "' acts for ", join(policy.roles, " and "),
               ", so an opponent would play all of these and nobody would learn: give each role a "
               "policy of its own (policy: {",
               policy.roles[0], ": {...}, ", policy.roles[1], ": {...}}), and opponents to one of them"));
  const Role& role = *std::ranges::find(spec.roles, policy.roles.front(), &Role::name);
  const std::vector<FrozenPolicy> kept = kept_opponents(config, spec, role, policy.name);
  list.kept = static_cast<int>(kept.size());
  bool says_self = false;
  for (const std::string& name : policy.opponents) {
    if (name == kSelf) {
      says_self = true;
      ++list.shares[0];
      continue;
    }
    const auto known = std::ranges::find(list.frozen, name, &FrozenPolicy::path);
    if (known != list.frozen.end()) {
      ++list.shares[1 + static_cast<std::size_t>(known - list.frozen.begin())];
      continue;
    }
    const auto known_before = std::ranges::find(kept, name, &FrozenPolicy::path);
    const bool is_kept = known_before != kept.end();
    list.before.push_back(is_kept ? 1 + static_cast<int>(known_before - kept.begin()) : 0);
    list.frozen.push_back(is_kept ? *known_before : find_frozen(name, config.name, spec, role, policy.name));
    list.shares.push_back(1);
  }
  if (list.kept > 0 && !list.is_as_before())
    for (const std::vector<FrozenPolicy>* const all : {&std::as_const(kept), &std::as_const(list.frozen)})
      for (const FrozenPolicy& frozen : *all)
        if (remembers(frozen.settings))
          throw UsageError(concat(frozen.path,
                                  ": remembers what it saw in episodes under way, so a run with it "
                                  "cannot go on with another list: begin a new run with its weights "
                                  "(--warm_start)"));
  if (!says_self && policy.to_train) list.shares[0] = 1;
  if (list.frozen.size() > kMaxOpponents)
    throw UsageError(
        concat(list.frozen.size(), " different opponents, and ", kMaxOpponents, " are the most"));
  return list;
}

struct OpponentsPlayer::Frozen {
  FrozenPolicy origin;
  PolicyBuffers own;
  Policy policy;
  std::vector<PolicyBuffers> rows;  // by step

  Frozen(const FrozenPolicy& frozen, const PolicyBuffers& from, int index, const Config& config,
         Device device)
      : origin(frozen),
        own(own_buffers(from, frozen.settings)),
        policy(frozen.make(row_of(from, own, 0), index, config.trainer.chunk_rows, device,
                           config.trainer.precision)) {
    for (int t = 0; t < from.reward.size(0); ++t) rows.push_back(row_of(from, own, t));
  }
};

OpponentsPlayer::OpponentsPlayer(std::unique_ptr<Player> own, const OpponentList& list,
                                 const Replicas& replicas, const PolicyBuffers& buffers, int index,
                                 const Config& config)
    : replicas_(replicas),
      own_(std::move(own)),
      index_(static_cast<std::uint32_t>(index)),
      own_plays_(list.shares[0] > 0),
      name_(buffers.name),
      opponent_(buffers.opponent) {
  for (const FrozenPolicy& frozen : list.frozen)  // one player acts in an episode, so draws may be the same
    frozen_.push_back(std::make_unique<Frozen>(frozen, buffers, index, config, replicas.device()));
  float all = 0.0f, sum = 0.0f;
  for (const int share : list.shares) all += static_cast<float>(share);
  std::vector<float> upto;
  for (const int share : list.shares) upto.push_back((sum += static_cast<float>(share)) / all);
  upto_ = at::tensor(upto).to(torch_device(replicas.device()));
  if (list.kept == 0) return;
  now_called_ = at::full({1 + list.kept}, own_plays_ ? 0 : 1, at::kByte);
  for (std::size_t k = 0; k < list.before.size(); ++k)
    if (list.before[k] > 0) now_called_[list.before[k]] = static_cast<int>(k) + 1;
}

OpponentsPlayer::~OpponentsPlayer() = default;

void OpponentsPlayer::act(PolicyBuffers& buffers, int t, const Draw& draw) {
  const Queue queue = current_queue(replicas_.device());
  DrawOpponentsArgs drawn;
  drawn.num_envs = replicas_.num_envs();
  drawn.first_replica = draw.first_replica;
  drawn.blocks = static_cast<const std::byte*>(replicas_.blocks().const_data_ptr());
  drawn.block_bytes = replicas_.layout().block_bytes;
  drawn.num_players = static_cast<int>(upto_.numel());
  drawn.upto = upto_.const_data_ptr<float>();
  drawn.key = RandomKey::of(draw.seed, Stream::kOpponent);
  drawn.policy = index_;
  drawn.now = buffers.opponent[t].mutable_data_ptr<std::uint8_t>();
  drawn.next = buffers.opponent[t + 1].mutable_data_ptr<std::uint8_t>();
  draw_opponents(queue, drawn);
  if (own_plays_) own_->act(buffers, t, draw);
  TakeActionsArgs taken;
  for (std::size_t k = 0; k < frozen_.size(); ++k) {
    Frozen& frozen = *frozen_[k];
    PolicyPlayer(frozen.policy).act(frozen.rows[static_cast<std::size_t>(t)], 0, draw);
    for (const at::Tensor& carried : {frozen.own.state, frozen.own.noise})
      if (carried.defined()) carried[0].copy_(carried[1]);
    taken.from[k] = static_cast<const std::int32_t*>(frozen.own.action.const_data_ptr());
  }
  buffers.in_half_widths = buffers.action_space.has_bounds();
  taken.words = buffers.action.stride(0);
  taken.per_replica = buffers.action.stride(1);
  taken.opponent = drawn.now;
  taken.action = static_cast<std::int32_t*>(buffers.action.mutable_data_ptr()) + t * buffers.action.stride(0);
  take_actions(queue, taken);
}

std::vector<NamedTensor> OpponentsPlayer::state() const {
  std::vector<NamedTensor> all = own_->state();
  for (std::size_t k = 0; k < frozen_.size(); ++k) {
    const PolicyBuffers& own = frozen_[k]->own;
    if (own.state.defined()) all.push_back({concat("opponent", k + 1, ".state"), own.state[0], true});
    if (own.noise.defined()) all.push_back({concat("opponent", k + 1, ".noise"), own.noise[0], true});
  }
  return all;
}

void OpponentsPlayer::restored() {
  if (!now_called_.defined()) return;
  const at::Tensor before = opponent_.cpu().to(at::kLong);
  if (before.max().item<std::int64_t>() >= now_called_.numel())
    throw UsageError(concat("replicas.safetensors: tensor '", name_,
                            "/opponent' names an opponent that the "
                            "checkpoint does not hold: go on from another checkpoint"));
  opponent_.copy_(now_called_.index_select(0, before.flatten()).view(before.sizes()));
}

void OpponentsPlayer::add_to(Snapshot& snapshot) const {
  for (std::size_t k = 0; k < frozen_.size(); ++k) {
    const std::string file = concat(kOpponentsFolder, name_, ".", k + 1);
    const FrozenPolicy& origin = frozen_[k]->origin;
    std::vector<NamedTensor> saved = frozen_[k]->policy.saved();
    for (NamedTensor& named : saved) named.name = concat(k + 1, "/", named.name);
    snapshot.files[file] = host_copies(saved);
    snapshot.metadata[file] = {{"path", origin.path},
                               {"source", origin.source},
                               {"digest", origin.digest},
                               {"policy", origin.settings.name},
                               {"config", origin.config}};
  }
}

}  // namespace wd
