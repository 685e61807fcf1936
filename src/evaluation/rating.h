// rating.h: strengths of players from the games that they played with each other (Bradley and Terry 1952).
#pragma once

#include <span>
#include <vector>

namespace wd {

// Games between two players, `first` on the first seat, counted as `first` saw them.
struct SeatedGames {
  int first = 0, second = 0;
  double wins = 0.0, draws = 0.0, losses = 0.0;

  double games() const { return wins + draws + losses; }
  double score() const { return (wins + draws / 2.0) / games(); }
};

struct Rating {
  double value, low, high;  // with a 95 % interval
};

struct Ratings {
  std::vector<Rating> players;  // their mean is 0
  Rating first_seat;            // what the first seat is worth
};

// What a rating is worth on the scale of Elo, for display: 400 for odds of ten to one.
double elo(double rating);

// The first player scores 1 / (1 + exp(-(r_first - r_second + s))) points on average: 1 for a win, 1/2 for a
// draw. Maximum likelihood, with a normal prior of deviation 4.6 (800 Elo), which matters where somebody won
// or lost every game. Draws vary less than wins and losses, and narrow the intervals of who drew. Games of a
// player against itself count for the seat. With `seats` false, games have no first seat, and s is 0.
Ratings rate(int players, std::span<const SeatedGames> games, bool seats = true);

}  // namespace wd
