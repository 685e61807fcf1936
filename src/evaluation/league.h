// league.h: players of a game with two sides, each against each other, on both seats.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "src/evaluation/evaluator.h"
#include "src/evaluation/rating.h"

namespace wd {

struct League {
  struct Member {
    std::string name;
    std::vector<FoundPlayer> players;  // by side
  };

  std::vector<Member> members;
  // Whether each game has a result, since what one side gets the other one loses. Otherwise two games from
  // one start, in which the players change seats, are one: who got more in both together has won it.
  bool by_game = true;
  bool repeats = false;              // two players who draw no actions played one game, again and again
  std::vector<SeatedGames> results;  // of each pair; by_game: twice, with each of them on the first seat
  Ratings ratings;

  // All results of a member, against one other or all, on both seats.
  SeatedGames of(int member, std::optional<int> other = {}) const;
};

// Plays `match` with each pair of members, half of its episodes with each of them on the first seat, from the
// same starts. Throws UsageError if the game has not two sides, or does not end.
League play_league(Evaluator& evaluator, const Spec& spec, std::vector<League::Member> members, Match match);

}  // namespace wd
