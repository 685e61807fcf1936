// opponents.h: a policy that in some replicas leaves its place to others, which do not learn.
#pragma once

#include <memory>
#include <vector>

#include "src/game/frozen.h"
#include "wd/checkpoint.h"
#include "wd/player.h"

namespace wd {

// What config.opponents names for a policy: the policy itself, and others.
struct OpponentList {
  std::vector<FrozenPolicy> frozen;  // each once
  // [frozen]: its number among `kept` ones of the checkpoint that training goes on from; 0: it is new.
  std::vector<int> before;
  int kept = 0;
  // [1 + frozen]: how often a player is listed; first the policy itself, which counts once if it learns and
  // is not listed.
  std::vector<int> shares;

  bool is_as_before() const;  // the same, in the same order
};

// Those that config.checkpoint holds are taken from there. Throws UsageError that names the entry: see
// find_frozen(); also if the policy acts for several roles, or learns and never plays.
OpponentList find_opponents(const Config& config, const Spec& spec, const PolicySettings& policy);

// The player of a policy with opponents. Each episode of each replica has one player, drawn by its share;
// Trajectory::write_mask() leaves out rows of the others. Every frozen policy acts in all replicas, and what
// it chose counts where it plays: shapes do not depend on draws, so graphs of a GPU can hold them.
class OpponentsPlayer : public Player {
 public:
  // The arguments must outlive it. `own` acts for the policy itself.
  OpponentsPlayer(std::unique_ptr<Player> own, const OpponentList& list, const Replicas& replicas,
                  const PolicyBuffers& buffers, int index, const Config& config);
  ~OpponentsPlayer() override;

  void act(PolicyBuffers& buffers, int t, const Draw& draw) override;
  // States of networks, by replica.
  std::vector<NamedTensor> state() const override;
  void state_changed() override { own_->state_changed(); }
  // Call this when the rows of a checkpoint are there: replicas whose opponent is in the list no more are the
  // policy's own. Throws UsageError if a row names an opponent that the checkpoint does not hold.
  void restored();
  // For checkpoints: adds the weights of opponent k as "opponents/POLICY.k", with where they are from.
  void add_to(Snapshot& snapshot) const;

 private:
  struct Frozen;

  const Replicas& replicas_;
  std::unique_ptr<Player> own_;
  std::vector<std::unique_ptr<Frozen>> frozen_;
  std::uint32_t index_;
  bool own_plays_;
  std::string name_;       // of the policy
  at::Tensor opponent_;    // [T + 1, E] uint8: who plays
  at::Tensor now_called_;  // [1 + kept] uint8: the player that had this number before; undefined: as before
  at::Tensor upto_;        // [players] float32 on the device
};

}  // namespace wd
