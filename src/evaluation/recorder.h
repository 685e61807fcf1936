// recorder.h: keeps everything that happens in the episodes of a match, for viewers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "wd/game.h"
#include "wd/policy.h"

namespace wd {

// Numbers of all agents of a role, or of all values of a state field, moment after moment.
struct Series {
  int width = 0;  // numbers per moment
  std::vector<double> values;

  std::size_t moments() const { return width == 0 ? 0 : values.size() / static_cast<std::size_t>(width); }
};

// What the agents of one role did. A step lies between two frames.
struct RoleRecord {
  Series in_game;  // [frames, agents] 0 or 1
  Series reward;   // [steps, agents]
  Series action;   // [steps, agents, width]
  // NaN for agents whose player is no policy, and empty if that is so of all of them.
  Series value;        // [steps, agents]
  Series probability;  // [steps, agents, choices of all heads]; empty for a box
  // For a box, of agents whose player is a policy: the action at the mean of its Gaussian, and one standard
  // deviation below and above. [steps, agents, width]
  Series mean, below, above;
};

struct EpisodeRecord {
  int steps = 0;
  bool whole = true;          // false: it went on when the recording ended
  std::vector<Series> state;  // by state field, as recorded_fields(); [frames, values], steps + 1 frames
  std::vector<RoleRecord> roles;
  std::vector<Picture> pictures;  // by frame, maybe of the first ones only; empty: none were wanted
};

// The fields of the state without working memory.
std::vector<StateField> recorded_fields(const StateLayout& layout);

// Whether to keep what replicas outside (wd/outside.h) look like: of kSmall, at most 320 x 240 pixels and 600
// frames of an episode.
enum class Pictures { kNone, kSmall, kFull };

// Records the first episode of every replica, at most max_steps steps of it.
class Recorder {
 public:
  explicit Recorder(int max_steps, Pictures pictures = Pictures::kNone)
      : max_steps_(max_steps), pictures_(pictures) {}
  bool wants_pictures() const { return pictures_ != Pictures::kNone; }

  // Makes the policies keep the outputs of their networks, from which probabilities follow. `policies`: of
  // the game's players, null for those that are none; they must outlive the recorder.
  void start(Game& game, const std::vector<Policy*>& policies);
  // Computes the values of actions that policies with critics have chosen, before the step.
  void value_actions(Game& game) const;
  // After the first reset and after each step, before rows are carried over.
  void add_frame(const Game& game, bool first);

  // True once all episodes have ended or are as long as requested.
  bool is_complete() const;
  std::vector<EpisodeRecord>& episodes() { return episodes_; }

 private:
  // The agents of a role for which one policy of the game acts.
  struct Share {
    std::size_t policy;
    at::Tensor slots, numbers;  // of these agents, in the policy's rows and in the role: int64
  };

  void add_step(EpisodeRecord& episode, const Trajectory& trajectory, std::int64_t replica) const;

  int max_steps_;
  Pictures pictures_;
  std::vector<EpisodeRecord> episodes_;
  std::vector<bool> over_;
  std::vector<Policy*> policies_;
  std::vector<std::vector<Share>> shares_;  // by role
};

}  // namespace wd
