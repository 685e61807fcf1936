// players.h: how users name who plays: one grammar for opponents.NAME, eval.opponent, and commands.
#pragma once

#include <string>
#include <vector>

namespace wd {

// "self": the policy itself; "random": uniform draws of legal actions; "scripted": the environment's script;
// anything else: a policy of a run or a checkpoint, RUN or RUN:POLICY. A folder called as a word is ./random.
struct PlayerSpec {
  enum Kind { kSelf, kRandom, kScripted, kRun };
  static constexpr const char* kWords[] = {"self", "random", "scripted"};

  Kind kind = kSelf;
  std::string run = {};  // kRun

  // "trained" is what results call the policy itself, and is taken for it.
  static PlayerSpec of(const std::string& text);
  std::string text() const { return kind == kRun ? run : kWords[kind]; }
  bool operator==(const PlayerSpec&) const = default;
};

// An entry of opponents.NAME, in YAML a PLAYER, or {player: PLAYER, share: 0.2}.
struct ListedPlayer {
  PlayerSpec player = {};
  double share = 0.0;  // of all episodes; 0: what is left is divided equally between such entries

  std::string text() const;
  bool operator==(const ListedPlayer&) const = default;
};
std::string shown(const std::vector<ListedPlayer>& players);  // "[self, runs/a]"

}  // namespace wd
