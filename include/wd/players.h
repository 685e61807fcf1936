// players.h: how users name who plays: one grammar for opponents.NAME, eval.opponent, and commands.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace wd {

class Fields;

// "self": the policy itself; "random": uniform draws of legal actions; "scripted": the environment's script;
// "pool": its past selves, in a training; else RUN or RUN:POLICY, of a run or a checkpoint, as ./random.
struct PlayerSpec {
  enum Kind { kSelf, kRandom, kScripted, kPool, kRun };
  static constexpr const char* kWords[] = {"self", "random", "scripted", "pool"};

  Kind kind = kSelf;
  std::string run = {};  // kRun

  // "trained" is what results call the policy itself, and is taken for it.
  static PlayerSpec of(const std::string& text);
  std::string text() const { return kind == kRun ? run : kWords[kind]; }
  bool operator==(const PlayerSpec&) const = default;
};

// Past selves of a policy: copies of its weights, of which one plays a whole game. Which one is drawn with
// equal chances; or the latest plays; or (pfsp, prioritized fictitious self-play: Vinyals et al. 2019) each
// has the weight (1 - w)^exponent, where w is the learner's win rate against it, (wins + 1) / (games + 2).
struct PoolSettings {
  int size = 12;                 // copies; the oldest one is left out for a new one
  std::int64_t every = 500'000;  // environment steps from copy to copy
  std::string draw = "uniform";
  double exponent = 2.0;
  // The learner wins a game whose return is above this, for the agents that it plays; if equal, it is half a
  // win.
  double win_above = 0.0;
  std::vector<std::string> from = {};  // runs whose weights it begins with; empty: the policy's first ones

  void describe(Fields& field);
  bool operator==(const PoolSettings&) const = default;
};

// An entry of opponents.NAME, in YAML a PLAYER, or {player: PLAYER, share: 0.2}, or {pool: {size: 12}}.
struct ListedPlayer {
  PlayerSpec player = {};
  PoolSettings pool = {};
  double share = 0.0;  // of all episodes; 0: what is left is divided equally between such entries

  std::string text() const;
  bool operator==(const ListedPlayer&) const = default;
};
std::string shown(const std::vector<ListedPlayer>& players);  // "[self, runs/a]"

}  // namespace wd
