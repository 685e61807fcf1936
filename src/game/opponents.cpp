// opponents.cpp: frozen policies act on the same observations as the policy whose place they take.
#include "src/game/opponents.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <optional>
#include <tuple>

#include "kernels/opponents.h"
#include "src/base/join.h"
#include "src/device/device.h"
#include "src/device/strict.h"
#include "src/device/tensor_device.h"
#include "src/policy/bank.h"
#include "src/rollout/who_plays.h"
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

// The buffers of a policy whose place another one takes, as that one sees them.
PolicyBuffers seen_by(const PolicyBuffers& from, const FrozenPolicy& frozen) {
  PolicyBuffers seen = from;
  seen.opponents = 0;
  seen.state_size = frozen.settings.model.state_size();
  seen.carries_noise = frozen.settings.algorithm->traits().carries_noise;
  seen.reads = frozen.settings.model.all_reads();
  return seen;
}

// What an opponent writes that acts in all replicas: the actions of one step; of a policy, also the state
// before and after it.
PolicyBuffers own_buffers(const PolicyBuffers& from, bool is_policy) {
  PolicyBuffers own;
  static_cast<PolicyLayout&>(own) = from;
  own.bounds = from.bounds;
  const std::int64_t E = from.reward.size(1), A = from.num_agents;
  const auto floats = from.reward.options();
  own.action = at::zeros({1, E, A, from.action.size(3)}, from.action.options());
  if (!is_policy) return own;
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

// What the pool of a list begins with.
static std::vector<FoundPlayer> find_pool_from(const PoolSettings& pool, const Environment& environment,
                                               const Config& config, const GameSide& side,
                                               const PolicySettings& policy) {
  std::vector<FoundPlayer> from;
  if (const int most = Pool::num_slots(pool) - 1; static_cast<int>(pool.from.size()) > most)
    throw UsageError(concat("the pool begins with ", pool.from.size(), " runs, and ", most, " are the most"));
  for (const std::string& run : pool.from) {
    from.push_back(find_player({PlayerSpec::kRun, run}, environment, config, side));
    if (!Bank::are_alike(from.back().frozen->settings, policy))
      throw UsageError(concat(run, ": has another network than the policy (policy.", policy.name,
                              ".model), of which a pool has copies: list it beside the pool"));
  }
  return from;
}

// Where a checkpoint keeps the k-th opponent of a policy.
static std::filesystem::path kept_file(const Config& config, const std::string& policy, std::size_t k) {
  return config.checkpoint / kOpponentsFolder / concat(policy, ".", k, ".safetensors");
}

OpponentList find_opponents(const Config& config, const Environment& environment,
                            const PolicySettings& policy) {
  OpponentList list;
  if (policy.opponents.empty()) return {.shares = {1.0}};
  const Spec spec = environment.spec();
  const auto role = std::ranges::find(spec.roles, policy.roles.front(), &Role::name);
  const auto own = std::ranges::find(config.policies, policy.name, &PolicySettings::name);
  const GameSide side{static_cast<int>(role - spec.roles.begin()),
                      static_cast<int>(own - config.policies.begin())};
  const std::vector<FoundPlayer> kept = kept_opponents(config, spec, *role, policy.name);
  list.kept = static_cast<int>(kept.size());
  for (std::size_t k = 0; k < kept.size(); ++k)
    if (kept[k].spec.kind == PlayerSpec::kPool)
      list.kept_slots = Pool::slots_in(kept_file(config, policy.name, k + 1), concat(k + 1, "/"));
  std::vector<double> given(1);  // [1 + others]
  std::vector<int> without(1);   // [1 + others]: entries without a share
  bool says_self = false;
  for (const ListedPlayer& listed : policy.opponents) {
    const bool is_self = listed.player.kind == PlayerSpec::kSelf;
    if (listed.player.kind == PlayerSpec::kPool) {
      if (list.pool) throw UsageError("lists two pools, and a policy has one: give it the share of both");
      if (!policy.to_train)
        throw UsageError("a pool has past selves of a policy that learns, and this one does not (to_train)");
      list.pool = listed.pool;
    }
    says_self = says_self || is_self;
    auto known = std::ranges::find(list.others, listed.player, &FoundPlayer::spec);
    if (!is_self && known == list.others.end()) {
      const auto known_before = std::ranges::find(kept, listed.player, &FoundPlayer::spec);
      const bool is_kept = known_before != kept.end(), is_pool = listed.player.kind == PlayerSpec::kPool;
      list.before.push_back(is_kept ? 1 + static_cast<int>(known_before - kept.begin()) : 0);
      list.others.push_back(is_kept   ? *known_before
                            : is_pool ? FoundPlayer{listed.player}
                                      : find_player(listed.player, environment, config, side));
      if (is_pool && !is_kept)
        list.pool_from = find_pool_from(listed.pool, environment, config, side, policy);
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
  if (policy.roles.size() > 1 && policy.algorithm->traits().mixer.kind != Mixer::kNone)
    throw UsageError(
        concat("policy '", policy.name, "' acts for ", join(policy.roles, " and "),
               ", of which it keeps one where an opponent plays, and ", policy.algorithm->name(),
               " learns the value of all its agents together: give each role a policy of its own"));
  if (list.others.size() + Pool::kActive + 1 > kMaxOpponents)
    throw UsageError(
        concat(list.others.size(), " different opponents, and ", kMaxOpponents, " are the most"));
  return list;
}

struct OpponentsPlayer::Other {
  FoundPlayer found;
  std::optional<Policy> policy = {};  // of another run, or a past self
  // Of one that acts in all replicas, and in no bank.
  PolicyBuffers own = {};
  std::vector<PolicyBuffers> rows = {};  // by step
  std::unique_ptr<Player> player = nullptr;
};

// Draws may be those of the policy itself: one player acts in an episode.
void OpponentsPlayer::place(Other& other, int player, Game& game) {
  const PolicyBuffers& from = game.trajectory().policies()[index_];
  const PolicyBuffers seen = other.found.frozen ? seen_by(from, *other.found.frozen) : from;
  if (other.policy && Bank::can_hold(*other.policy)) {
    const PolicySettings& settings = other.found.frozen ? other.found.frozen->settings : settings_;
    auto bank = std::ranges::find_if(
        banks_, [&](const auto& one) { return Bank::are_alike(one->settings(), settings); });
    if (bank == banks_.end())
      bank = banks_.insert(
          bank, std::make_unique<Bank>(seen, *other.policy, settings, false, players_, 2 + players_));
    return (*bank)->add(*other.policy, player);
  }
  if (other.found.spec.kind == PlayerSpec::kPool && !other.policy) return;  // its slots play
  other.own = own_buffers(seen, other.policy.has_value());
  for (int t = 0; t < from.reward.size(0); ++t) other.rows.push_back(row_of(from, other.own, t));
  if (other.policy)
    other.player = std::make_unique<PolicyPlayer>(*other.policy);
  else
    other.player = player_without_policy(other.found.spec.kind, game, index_, ActionUnit::kHalfWidths);
}

OpponentsPlayer::OpponentsPlayer(std::unique_ptr<PolicyPlayer> own, const OpponentList& list, Game& game,
                                 std::size_t index, const Config& config)
    : replicas_(game.replicas()),
      own_(std::move(own)),
      index_(static_cast<std::uint32_t>(index)),
      settings_(config.policies[index]),
      name_(settings_.name),
      opponent_(game.trajectory().policies()[index].opponent),
      pool_from_(list.pool_from) {
  const PolicyBuffers& buffers = game.trajectory().policies()[index];
  const Device device = replicas_.device();
  const int slots = list.pool ? Pool::num_slots(*list.pool) : 0;
  listed_ = list.others.size();
  players_ = static_cast<int>(listed_) + slots;
  keeps_seat_ = settings_.to_train && buffers.roles.size() > 1;
  own_plays_ = list.shares[0] > 0.0 || keeps_seat_;
  if (!device.is_cuda()) {
    banks_.push_back(
        std::make_unique<Bank>(buffers, own_->policy(), settings_, true, 1 + players_, 2 + players_));
    banks_[0]->add(own_->policy(), 0);
  }
  const auto add = [&](const FoundPlayer& found, std::optional<Policy>&& policy) {
    Other& other = *others_.emplace_back(std::make_unique<Other>(found));
    if (policy) other.policy.emplace(*std::move(policy)).freeze();
    place(other, static_cast<int>(others_.size()), game);
    return other.policy ? &*other.policy : nullptr;
  };
  const int chunk_rows = config.trainer.chunk_rows, number = static_cast<int>(index);
  const Precision precision = config.trainer.precision;
  for (const FoundPlayer& found : list.others) {
    if (found.frozen)
      add(found, found.frozen->make(seen_by(buffers, *found.frozen), number, chunk_rows, device, precision));
    else
      add(found, std::nullopt);
  }
  const EnvSettings& env = config.env;
  std::vector<Policy*> past;
  for (int k = 0; k < slots; ++k)
    past.push_back(
        add({{PlayerSpec::kPool}}, Policy(buffers, settings_, number, 1, chunk_rows, device, precision)));
  if (env.reset == ResetMode::kPlayed) {
    opening_ = 1 + players_;
    moves_ = {env.played_moves[0], env.played_moves[1]};
    if (!env.played_by_policy)
      add({{PlayerSpec::kRandom}}, std::nullopt);
    else if (!device.is_cuda())
      banks_[0]->play_as_first(opening_);
  }
  shares_ = at::zeros({1 + players_}, at::kDouble);
  for (std::size_t k = 0; k < list.shares.size(); ++k) shares_[static_cast<std::int64_t>(k)] = list.shares[k];
  std::optional<int> pool_before;  // its number in the checkpoint
  if (list.pool) {
    const auto at = std::ranges::find(list.others, PlayerSpec{PlayerSpec::kPool}, &FoundPlayer::spec) -
                    list.others.begin();
    pool_share_ = std::exchange(shares_.mutable_data_ptr<double>()[1 + at], 0.0);
    for (std::size_t p = 0; p < config.policies.size(); ++p)
      if (p == index ? keeps_seat_ : config.policies[p].to_train && !keeps_seat_) learners_.push_back(p);
    if (learners_.empty())  // nobody else learns: those who play against it
      for (std::size_t p = 0; p < config.policies.size(); ++p)
        if (p != index) learners_.push_back(p);
    pool_.emplace(*list.pool, own_->policy(), past, 1 + static_cast<int>(listed_));
    if (const int before = list.before[static_cast<std::size_t>(at)]; before > 0) pool_before = before;
    if (pool_before)
      pool_->restore(kept_file(config, name_, static_cast<std::size_t>(*pool_before)),
                     concat(*pool_before, "/"));
    else
      pool_->begin(pool_from_);
  }
  shares_ = shares_.to(torch_device(device));
  upto_ = at::zeros({1 + players_}, shares_.options().dtype(at::kFloat));
  refresh_shares();
  if (list.kept == 0) return;
  // Behind all others is who makes the first moves.
  const int kept = 1 + list.kept + list.kept_slots;
  now_called_ = at::full({kept + 1}, list.shares[0] > 0.0 ? 0 : 1, at::kInt);
  now_called_[kept] = opening_;
  for (std::size_t k = 0; k < list.before.size(); ++k)
    if (list.before[k] > 0) now_called_[list.before[k]] = static_cast<int>(k) + 1;
  for (int k = 0; pool_before && k < slots; ++k)
    now_called_[1 + list.kept + k] = 1 + static_cast<int>(listed_) + k;
}

// upto_ stays where it is: graphs read it.
void OpponentsPlayer::refresh_shares() {
  at::Tensor shares = shares_;
  if (pool_) {
    shares = shares.clone();
    shares.slice(0, 1 + static_cast<std::int64_t>(listed_)).copy_(pool_->shares() * pool_share_);
  }
  upto_.copy_(shares.cumsum(0));
}

void OpponentsPlayer::weights_changed() {
  if (!pool_) return;
  pool_->begin(pool_from_);
  refresh_shares();
}

void OpponentsPlayer::iteration_ended(const Trajectory& trajectory, const EndedGames& games,
                                      std::int64_t env_steps, const ProcessGroup& group) {
  if (!pool_) return;
  const NotStrict of_the_pool;
  pool_->iteration_ended(trajectory.policies()[index_], games, learners_, env_steps, group);
  refresh_shares();
}

OpponentsPlayer::~OpponentsPlayer() = default;

bool OpponentsPlayer::is_on_host() const {
  return std::ranges::any_of(others_,
                             [](const auto& other) { return other->player && other->player->is_on_host(); });
}

int OpponentsPlayer::num_alone() const {
  return static_cast<int>(
      std::ranges::count_if(others_, [](const auto& other) { return other->policy && other->player; }));
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
  drawn.num_seats = static_cast<int>(buffers.roles.size());
  drawn.keeps = keeps_seat_;
  drawn.opening = opening_;
  std::tie(drawn.least_moves, drawn.most_moves) = moves_;
  drawn.now = buffers.opponent[t].mutable_data_ptr<std::int32_t>();
  drawn.next = buffers.opponent[t + 1].mutable_data_ptr<std::int32_t>();
  draw_opponents(queue, drawn);
  if (replicas_.device().is_cuda() && own_plays_) own_->act(buffers, t, draw);
  for (const auto& bank : banks_) bank->act(buffers, t, own_->options(draw));
  TakeActionsArgs taken;
  taken.rows = std::int64_t{drawn.num_envs} * buffers.num_agents;
  taken.num_agents = buffers.num_agents;
  taken.width = static_cast<int>(buffers.action.size(3));
  taken.who = who_plays(buffers, t);
  taken.action = static_cast<std::int32_t*>(buffers.action.mutable_data_ptr()) + t * buffers.action.stride(0);
  for (std::size_t k = 0; k < others_.size(); ++k) {
    Other& other = *others_[k];
    if (other.player == nullptr) continue;
    other.player->act(other.rows[static_cast<std::size_t>(t)], 0, draw);  // in the policy's unit
    for (const at::Tensor& carried : {other.own.state, other.own.noise})
      if (carried.defined()) carried[0].copy_(carried[1]);
    taken.player = static_cast<int>(k) + 1;
    taken.from = static_cast<const std::int32_t*>(other.own.action.const_data_ptr());
    take_actions(queue, taken);
  }
  return buffers.action_space.has_bounds() ? ActionUnit::kHalfWidths : ActionUnit::kEnvironment;
}

std::vector<PolicyPlayer*> add_players(Game& game, std::vector<Policy>& policies, const Config& config,
                                       const Environment& environment) {
  std::vector<PolicyPlayer*> players;
  for (std::size_t p = 0; p < policies.size(); ++p) {
    auto player = std::make_unique<PolicyPlayer>(policies[p]);
    players.push_back(player.get());
    if (game.trajectory().policies()[p].opponents == 0) {
      game.add(std::move(player));
    } else {
      const OpponentList list = find_opponents(config, environment, config.policies[p]);
      game.add(std::make_unique<OpponentsPlayer>(std::move(player), list, game, p, config));
    }
  }
  return players;
}

std::vector<OpponentsPlayer*> opponents_of(const Game& game) {
  std::vector<OpponentsPlayer*> all;
  for (const std::unique_ptr<Player>& player : game.players())
    if (auto* const listed = dynamic_cast<OpponentsPlayer*>(player.get())) all.push_back(listed);
  return all;
}

std::vector<NamedTensor> OpponentsPlayer::state() const {
  std::vector<NamedTensor> all = own_->state();
  for (std::size_t k = 0; k < others_.size(); ++k) {
    const PolicyBuffers& own = others_[k]->own;  // of one that is in a bank, nothing
    if (own.state.defined()) all.push_back({concat("opponent", k + 1, ".state"), own.state[0], true});
    if (own.noise.defined()) all.push_back({concat("opponent", k + 1, ".noise"), own.noise[0], true});
  }
  for (std::size_t k = 0; k < banks_.size(); ++k) {
    if (banks_[k]->state().defined())
      all.push_back({concat("bank", k, ".state"), banks_[k]->state()[0], true});
    if (banks_[k]->noise().defined())
      all.push_back({concat("bank", k, ".noise"), banks_[k]->noise()[0], true});
  }
  return all;
}

void OpponentsPlayer::restored() {
  if (!now_called_.defined()) return;
  const at::Tensor all = opponent_.cpu(), before = all.bitwise_and(0xffff).to(at::kLong);
  if (before.max().item<std::int64_t>() >= now_called_.numel())
    throw UsageError(concat("replicas.safetensors: tensor '", name_,
                            "/opponent' names an opponent that the "
                            "checkpoint does not hold: go on from another checkpoint"));
  opponent_.copy_(all - before + now_called_.index_select(0, before.flatten()).view(before.sizes()));
}

void OpponentsPlayer::add_to(Snapshot& snapshot) const {
  for (std::size_t k = 0; k < listed_; ++k) {
    const std::string file = concat(kOpponentsFolder, name_, ".", k + 1);
    const Other& other = *others_[k];
    std::vector<NamedTensor> saved;
    if (other.policy) saved = other.policy->saved();
    if (other.found.spec.kind == PlayerSpec::kPool) saved = pool_->saved();
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
