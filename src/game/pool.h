// pool.h: copies of a policy's weights from earlier in its training, against which it plays.
#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "src/game/frozen.h"
#include "wd/process_group.h"

namespace wd {

// The games that ended in a rollout.
struct EndedGames {
  at::Tensor length;                // [T, E] int32: 0 where none ended
  std::vector<at::Tensor> returns;  // [T, E] float32 by policy; NaN where it did not play itself
};

// A copy acts as one of `slots`, which are policies of the same shape; what is not in a slot waits in the
// memory of the host. A slot changes only while no game is played with it. All functions do the same on all
// ranks.
class Pool {
 public:
  static constexpr int kActive = 16;  // copies that have a slot, at most; one slot more is for the next copy
  static int num_slots(const PoolSettings& settings) { return std::min(settings.size, kActive) + 1; }

  // The slots are players from `first_player` on. What is referred to must outlive it.
  Pool(const PoolSettings& settings, const Policy& own, std::vector<Policy*> slots, int first_player);

  // Begins with the weights of these runs, or with those that the policy has now.
  void begin(const std::vector<FoundPlayer>& from);
  // How many slots saved() has written there.
  static int slots_in(const std::filesystem::path& file, const std::string& prefix);
  // Goes on from what saved() has written. Throws UsageError if that had another number of slots.
  void restore(const std::filesystem::path& file, const std::string& prefix);
  std::vector<NamedTensor> saved() const;

  // [slots] float64 on the device: the share of the pool's games that each plays.
  at::Tensor shares() const;

  // Counts the games of a rollout, and copies the policy if it is time. `buffers` are the policy's;
  // `learners` are the policies whose returns say who won.
  void iteration_ended(const PolicyBuffers& buffers, const EndedGames& games,
                       const std::vector<std::size_t>& learners, std::int64_t env_steps,
                       const ProcessGroup& group);

  // Since the last call; names without the policy's.
  std::vector<std::pair<std::string, double>> metrics(std::int64_t env_steps);

 private:
  struct Member {
    std::int64_t steps = 0;  // of the training when it was copied
    std::int64_t order = 0;  // when it was last given a slot or taken from it
    int slot = -1;           // -1: on the host
    bool leaves = false;     // it is drawn no more, and goes to the host when its games have ended
    double results[2] = {};  // wins and games, while on the host
    std::vector<at::Tensor> weights = {};
  };

  std::vector<bool> busy_slots(const PolicyBuffers& buffers, const ProcessGroup& group) const;
  // A slot that belongs to nobody, and with which nobody plays; -1: there is none.
  int free_slot(const std::vector<bool>& busy) const;
  // Lets the copy that has had its slot longest leave it, unless a slot is spare.
  void keep_one_spare();
  void fill(Member& member, int slot, const std::vector<NamedTensor>& weights);
  void take_out(Member& member);
  void refresh();

  PoolSettings settings_;
  const Policy& own_;
  std::vector<Policy*> slots_;
  int first_player_;
  std::vector<Member> members_;  // the oldest one first
  std::int64_t counted_steps_ = 0, order_ = 0;
  bool due_ = false;
  at::Tensor results_, recent_,
      interval_;        // [slots + 1, 2] float64: wins and games; the last row is of all games
  at::Tensor partial_;  // working memory
  at::Tensor weight_;   // [slots] float64: 1 where a copy may be drawn
};

}  // namespace wd
