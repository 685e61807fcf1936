// opponents.cpp: frozen policies act on the same observations as the policy whose place they take.
#include "src/game/opponents.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <optional>

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

// What an opponent writes: the actions of one step; of a policy, also the state before and after it.
PolicyBuffers own_buffers(const PolicyBuffers& from, const FrozenPolicy* frozen) {
  PolicyBuffers own;
  static_cast<PolicyLayout&>(own) = from;
  own.bounds = from.bounds;
  own.opponents = 0;
  const std::int64_t E = from.reward.size(1), A = from.num_agents;
  const auto floats = from.reward.options();
  own.action = at::zeros({1, E, A, from.action.size(3)}, from.action.options());
  if (frozen == nullptr) return own;
  own.state_size = frozen->settings.model.state_size();
  own.carries_noise = frozen->settings.algorithm->traits().carries_noise;
  own.reads = frozen->settings.model.all_reads();
  own.value = at::zeros({1, E, A}, floats);
  own.log_prob = at::zeros({1, E, A}, floats);
  own.mask = at::zeros({1, E, A}, from.mask.options());
  if (own.state_size > 0) own.state = at::zeros({2, E, A, own.state_size}, floats);
  if (own.carries_noise) own.noise = at::zeros({2, E, A, own.action_space.components()}, floats);
  return own;
}

// The shares of all players, of which each may be listed several times.
std::vector<double> shares_of(const std::vector<double>& given, const std::vector<int>& without) {
  const double all = std::accumulate(given.begin(), given.end(), 0.0);
  const int equal = std::accumulate(without.begin(), without.end(), 0);
  if (equal == 0 && std::abs(all - 1.0) > 1e-6)
    throw UsageError(concat("the shares add up to ", all, ", and not to 1"));
  if (equal > 0 && all > 1.0 - 1e-6)
    throw UsageError(
        concat("the shares add up to ", all,
               ", which leaves nothing for players without a share (self is one if it learns and is "
               "not listed): give each a share, or smaller ones"));
  std::vector<double> shares;
  for (std::size_t k = 0; k < given.size(); ++k)
    shares.push_back(equal == 0 ? given[k] / all : given[k] + (1.0 - all) * without[k] / equal);
  return shares;
}

}  // namespace

bool OpponentList::is_as_before() const {
  for (std::size_t k = 0; k < before.size(); ++k)
    if (before[k] != static_cast<int>(k) + 1) return false;
  return kept == static_cast<int>(before.size());
}

OpponentList find_opponents(const Config& config, const Environment& environment,
                            const PolicySettings& policy) {
  OpponentList list;
  if (policy.roles.size() > 1)
    throw UsageError(
        concat("policy '", policy.name, "' acts for ", join(policy.roles, " and "),
               ", so an opponent would play all of these and nobody would learn: give each role a "
               "policy of its own (policy: {",
               policy.roles[0], ": {...}, ", policy.roles[1], ": {...}}), and opponents to one of them"));
  const Spec spec = environment.spec();
  const auto role = std::ranges::find(spec.roles, policy.roles.front(), &Role::name);
  const auto own = std::ranges::find(config.policies, policy.name, &PolicySettings::name);
  const GameSide side{static_cast<int>(role - spec.roles.begin()),
                      static_cast<int>(own - config.policies.begin())};
  const std::vector<FoundPlayer> kept = kept_opponents(config, spec, *role, policy.name);
  list.kept = static_cast<int>(kept.size());
  std::vector<double> given(1);  // [1 + others]
  std::vector<int> without(1);   // [1 + others]: entries without a share
  bool says_self = false;
  for (const ListedPlayer& listed : policy.opponents) {
    const bool is_self = listed.player.kind == PlayerSpec::kSelf;
    says_self = says_self || is_self;
    auto known = std::ranges::find(list.others, listed.player, &FoundPlayer::spec);
    if (!is_self && known == list.others.end()) {
      const auto known_before = std::ranges::find(kept, listed.player, &FoundPlayer::spec);
      const bool is_kept = known_before != kept.end();
      list.before.push_back(is_kept ? 1 + static_cast<int>(known_before - kept.begin()) : 0);
      list.others.push_back(is_kept ? *known_before : find_player(listed.player, environment, config, side));
      known = std::prev(list.others.end());
      given.push_back(0.0);
      without.push_back(0);
    }
    const auto k = is_self ? 0 : 1 + static_cast<std::size_t>(known - list.others.begin());
    given[k] += listed.share;
    without[k] += listed.share > 0.0 ? 0 : 1;
  }
  if (list.kept > 0 && !list.is_as_before())
    for (const std::vector<FoundPlayer>* const all : {&std::as_const(kept), &std::as_const(list.others)})
      for (const FoundPlayer& player : *all)
        if (player.remembers())
          throw UsageError(concat(player.name(),
                                  ": remembers what it saw in episodes under way, so a run with it "
                                  "cannot go on with another list: begin a "
                                  "new run with its weights (--warm_start)"));
  if (!says_self && policy.to_train) without[0] = 1;
  list.shares = shares_of(given, without);
  if (list.others.size() > kMaxOpponents)
    throw UsageError(
        concat(list.others.size(), " different opponents, and ", kMaxOpponents, " are the most"));
  return list;
}

struct OpponentsPlayer::Other {
  FoundPlayer found;
  PolicyBuffers own;
  std::vector<PolicyBuffers> rows;  // by step
  std::optional<Policy> policy;     // of another run
  std::unique_ptr<Player> player;

  // Draws may be those of the policy itself: one player acts in an episode.
  Other(const FoundPlayer& of, Game& game, std::size_t index, const Config& config) : found(of) {
    const PolicyBuffers& from = game.trajectory().policies()[index];
    own = own_buffers(from, of.frozen.get());
    for (int t = 0; t < from.reward.size(0); ++t) rows.push_back(row_of(from, own, t));
    if (of.frozen) {
      policy.emplace(of.frozen->make(rows[0], static_cast<int>(index), config.trainer.chunk_rows,
                                     game.replicas().device(), config.trainer.precision));
      player = std::make_unique<PolicyPlayer>(*policy);
    } else {
      player = player_without_policy(of.spec.kind, game, index, ActionUnit::kHalfWidths);
    }
  }
};

OpponentsPlayer::OpponentsPlayer(std::unique_ptr<Player> own, const OpponentList& list, Game& game,
                                 std::size_t index, const Config& config)
    : replicas_(game.replicas()),
      own_(std::move(own)),
      index_(static_cast<std::uint32_t>(index)),
      own_plays_(list.shares[0] > 0.0),
      name_(game.trajectory().policies()[index].name),
      opponent_(game.trajectory().policies()[index].opponent) {
  for (const FoundPlayer& other : list.others)
    others_.push_back(std::make_unique<Other>(other, game, index, config));
  double sum = 0.0;
  std::vector<float> upto;
  for (const double share : list.shares) upto.push_back(static_cast<float>(sum += share));
  upto_ = at::tensor(upto).to(torch_device(replicas_.device()));
  if (list.kept == 0) return;
  now_called_ = at::full({1 + list.kept}, own_plays_ ? 0 : 1, at::kByte);
  for (std::size_t k = 0; k < list.before.size(); ++k)
    if (list.before[k] > 0) now_called_[list.before[k]] = static_cast<int>(k) + 1;
}

OpponentsPlayer::~OpponentsPlayer() = default;

bool OpponentsPlayer::is_on_host() const {
  return std::ranges::any_of(others_, [](const auto& other) { return other->player->is_on_host(); });
}

ActionUnit OpponentsPlayer::act(PolicyBuffers& buffers, int t, const Draw& draw) {
  const Queue queue = current_queue(replicas_.device());
  DrawOpponentsArgs drawn;
  drawn.num_envs = replicas_.num_envs();
  drawn.first_replica = draw.first_replica;
  drawn.blocks = static_cast<const std::byte*>(replicas_.blocks().const_data_ptr());
  drawn.block_bytes = replicas_.layout().block_bytes;
  drawn.num_players = static_cast<int>(upto_.numel());
  drawn.upto = upto_.const_data_ptr<float>();
  drawn.key = RandomKey::of(draw.seed, RandomUse::kOpponent);
  drawn.policy = index_;
  drawn.now = buffers.opponent[t].mutable_data_ptr<std::uint8_t>();
  drawn.next = buffers.opponent[t + 1].mutable_data_ptr<std::uint8_t>();
  draw_opponents(queue, drawn);
  if (own_plays_) own_->act(buffers, t, draw);
  TakeActionsArgs taken;
  for (std::size_t k = 0; k < others_.size(); ++k) {
    Other& other = *others_[k];
    other.player->act(other.rows[static_cast<std::size_t>(t)], 0, draw);  // in the policy's unit
    for (const at::Tensor& carried : {other.own.state, other.own.noise})
      if (carried.defined()) carried[0].copy_(carried[1]);
    taken.from[k] = static_cast<const std::int32_t*>(other.own.action.const_data_ptr());
  }
  taken.words = buffers.action.stride(0);
  taken.per_replica = buffers.action.stride(1);
  taken.opponent = drawn.now;
  taken.action = static_cast<std::int32_t*>(buffers.action.mutable_data_ptr()) + t * buffers.action.stride(0);
  take_actions(queue, taken);
  return buffers.action_space.has_bounds() ? ActionUnit::kHalfWidths : ActionUnit::kEnvironment;
}

std::vector<PolicyPlayer*> add_players(Game& game, std::vector<Policy>& policies, const Config& config,
                                       const Environment& environment) {
  std::vector<PolicyPlayer*> players;
  for (std::size_t p = 0; p < policies.size(); ++p) {
    auto player = std::make_unique<PolicyPlayer>(policies[p]);
    players.push_back(player.get());
    if (config.policies[p].num_opponents() == 0) {
      game.add(std::move(player));
    } else {
      const OpponentList list = find_opponents(config, environment, config.policies[p]);
      game.add(std::make_unique<OpponentsPlayer>(std::move(player), list, game, p, config));
    }
  }
  return players;
}

std::vector<NamedTensor> OpponentsPlayer::state() const {
  std::vector<NamedTensor> all = own_->state();
  for (std::size_t k = 0; k < others_.size(); ++k) {
    const PolicyBuffers& own = others_[k]->own;
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
  for (std::size_t k = 0; k < others_.size(); ++k) {
    const std::string file = concat(kOpponentsFolder, name_, ".", k + 1);
    const Other& other = *others_[k];
    std::vector<NamedTensor> saved;
    if (other.policy) saved = other.policy->saved();
    for (NamedTensor& named : saved) named.name = concat(k + 1, "/", named.name);
    snapshot.files[file] = host_copies(saved);
    TensorMetadata& metadata = snapshot.metadata[file] = {{"path", other.found.spec.text()}};
    if (const FrozenPolicy* const origin = other.found.frozen.get())
      metadata.insert({{"source", origin->source},
                       {"digest", origin->digest},
                       {"policy", origin->settings.name},
                       {"config", origin->config}});
  }
}

}  // namespace wd
