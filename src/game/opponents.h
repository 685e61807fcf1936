// opponents.h: a policy that in some replicas leaves its place to others, which do not learn.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "src/game/frozen.h"
#include "src/game/pool.h"
#include "wd/checkpoint.h"
#include "wd/player.h"

namespace wd {

class Bank;

// What config.opponents names for a policy: the policy itself, and others.
struct OpponentList {
  std::vector<FoundPlayer> others;  // each once
  // [others]: its number among `kept` ones of the checkpoint that training goes on from; 0: it is new.
  std::vector<int> before;
  int kept = 0;
  int kept_slots = 0;  // of the pool among these
  // [1 + others]: the shares of all episodes, whose sum is 1; first that of the policy itself, which is an
  // entry without a share if it learns and is not listed.
  std::vector<double> shares;
  // If past selves are among them: their settings, and the policies that these begin with.
  std::optional<PoolSettings> pool = {};
  std::vector<FoundPlayer> pool_from = {};

  bool is_as_before() const;  // the same, in the same order
};

// Those that config.checkpoint holds are taken from there. Throws UsageError that names the entry: see
// find_player(); also if shares are more or less than all.
OpponentList find_opponents(const Config& config, const Environment& environment,
                            const PolicySettings& policy);

// The player of a policy with opponents. Each episode of each replica has one player, drawn by its share, in
// all roles of the policy; if it has several and learns, it keeps one of them, which is drawn as well.
// Trajectory::write_mask() leaves out rows of the others. Policies with networks of one shape act in one
// pass, each where it plays (Bank). Every other player, and on a GPU the policy itself, acts in all replicas,
// and what it chose counts where it plays: shapes do not depend on draws, so graphs of a GPU can hold them.
class OpponentsPlayer : public Player {
 public:
  // The arguments must outlive it. `own` acts for policy `index` of the game itself.
  OpponentsPlayer(std::unique_ptr<PolicyPlayer> own, const OpponentList& list, Game& game, std::size_t index,
                  const Config& config);
  ~OpponentsPlayer() override;

  ActionUnit act(PolicyBuffers& buffers, int t, const Draw& draw) override;
  bool is_on_host() const override;
  // States of networks, by replica.
  std::vector<NamedTensor> state() const override;
  void state_changed() override { own_->state_changed(); }
  // Call this when the rows of a checkpoint are there: replicas whose opponent is in the list no more are the
  // policy's own. Throws UsageError if a row names an opponent that the checkpoint does not hold.
  void restored();
  // Call this when training begins with other weights than those that the policy had.
  void weights_changed();
  // Call this after each iteration, of which these games ended.
  void iteration_ended(const Trajectory& trajectory, const EndedGames& games, std::int64_t env_steps,
                       const ProcessGroup& group);
  // Policies that act in a pass of their own, in all replicas.
  int num_alone() const;
  // Of past selves; null: there are none.
  Pool* pool() { return pool_ ? &*pool_ : nullptr; }
  // For checkpoints: adds the weights of opponent k as "opponents/POLICY.k", with where they are from.
  void add_to(Snapshot& snapshot) const;

 private:
  struct Other;

  void place(Other& other, int player, Game& game);
  void refresh_shares();

  const Replicas& replicas_;
  std::unique_ptr<PolicyPlayer> own_;
  // Those of the list, then the slots of the pool, then who makes the first moves, if that is not the policy.
  std::vector<std::unique_ptr<Other>> others_;
  // On a CPU, the first one holds the policy itself. On a GPU it acts alone, in all replicas.
  std::vector<std::unique_ptr<Bank>> banks_;
  std::uint32_t index_;
  int players_ = 0;         // beside itself
  std::size_t listed_ = 0;  // of them, not slots of the pool
  PolicySettings settings_;
  bool own_plays_, keeps_seat_;
  int opening_ = 0;                 // the player of the first moves (env.reset: played); 0: there are none
  std::pair<int, int> moves_ = {};  // how many there are
  std::string name_;                // of the policy
  at::Tensor opponent_;             // [T + 1, E] int32: who plays
  at::Tensor now_called_;  // [1 + kept] int32: the player that had this number before; undefined: as before
  at::Tensor shares_,
      upto_;  // [players] on the device: float64, that of the pool not yet divided; float32, sums
  std::optional<Pool> pool_;
  std::vector<FoundPlayer> pool_from_;
  double pool_share_ = 0.0;
  std::vector<std::size_t> learners_;  // the policies that play against this one
};

// The players of a game that have opponents.
std::vector<OpponentsPlayer*> opponents_of(const Game& game);

}  // namespace wd
