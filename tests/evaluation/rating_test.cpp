// rating_test.cpp: ratings of simulated leagues, whose truth is known, and of games without luck.
#include "src/evaluation/rating.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace wd {
namespace {

// splitmix64, so that every library draws the same leagues.
class Draws {
 public:
  explicit Draws(std::uint64_t seed) : state_(seed) {}

  double uniform() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return (static_cast<double>((z ^ (z >> 31)) >> 11) + 0.5) / 9007199254740992.0;
  }
  double normal() {
    return std::sqrt(-2.0 * std::log(uniform())) * std::cos(2.0 * std::acos(-1.0) * uniform());
  }

 private:
  std::uint64_t state_;
};

constexpr double kSeat = 0.5;

// Games of all pairs, as many with each of the two on the first seat. drawn: share of the points of who has
// the lesser chance that come from draws.
std::vector<SeatedGames> drawn_league(Draws& draws, const std::vector<double>& strengths, double drawn,
                                      int each) {
  std::vector<SeatedGames> games;
  const int players = static_cast<int>(strengths.size());
  for (int i = 0; i < players; ++i) {
    for (int j = 0; j < players; ++j) {
      if (i == j) continue;
      const double ahead = strengths[std::size_t(i)] - strengths[std::size_t(j)] + kSeat;
      const double p = 1.0 / (1.0 + std::exp(-ahead)), draw = drawn * 2.0 * std::min(p, 1.0 - p);
      SeatedGames& match = games.emplace_back(i, j);
      for (int k = 0; k < each; ++k) {
        const double u = draws.uniform();
        (u < draw ? match.draws : u < p + draw / 2.0 ? match.wins : match.losses) += 1.0;
      }
    }
  }
  return games;
}

bool covers(const Rating& rating, double truth) { return rating.low <= truth && truth <= rating.high; }

class Coverage : public ::testing::TestWithParam<double> {};

TEST_P(Coverage, IsThatOfTheInterval) {
  constexpr int kLeagues = 200, kPlayers = 6;
  int players = 0, best = 0, seat = 0;
  for (int league = 0; league < kLeagues; ++league) {
    Draws draws(static_cast<std::uint64_t>(league));
    std::vector<double> strengths(kPlayers);
    double mean = 0.0;
    for (double& strength : strengths) mean += (strength = draws.normal()) / kPlayers;
    const Ratings ratings = rate(kPlayers, drawn_league(draws, strengths, GetParam(), 20));
    const auto strongest = std::ranges::max_element(strengths) - strengths.begin();
    for (std::size_t i = 0; i < kPlayers; ++i) {
      const bool covered = covers(ratings.players[i], strengths[i] - mean);
      players += covered;
      best += covered && std::ptrdiff_t(i) == strongest;
    }
    seat += covers(ratings.first_seat, kSeat);
  }
  const auto share = [](int covered, int of) { return static_cast<double>(covered) / of; };
  const double shares[] = {share(players, kLeagues * kPlayers), share(best, kLeagues), share(seat, kLeagues)};
  for (const double covered : shares) {
    EXPECT_GE(covered, 0.90);
    EXPECT_LE(covered, 0.99);
  }
}

INSTANTIATE_TEST_SUITE_P(Rating, Coverage, ::testing::Values(0.0, 0.3, 0.6));

TEST(Rating, OfTwoPlayersIsTheLogitOfTheirScore) {
  for (const double wins : {200.0, 500.0, 730.0}) {
    const double losses = 1000.0 - wins;
    const Ratings ratings =
        rate(2, std::vector<SeatedGames>{{0, 1, wins / 2, 0, losses / 2}, {1, 0, losses / 2, 0, wins / 2}});
    EXPECT_NEAR(ratings.players[0].value - ratings.players[1].value, std::log(wins / losses), 0.005);
    EXPECT_NEAR(ratings.players[0].value + ratings.players[1].value, 0.0, 1e-9);
    EXPECT_NEAR(ratings.first_seat.value, 0.0, 1e-9);
    // The variance of a logit is 1 / (n p (1 - p)).
    const Rating& first = ratings.players[0];
    EXPECT_NEAR(first.high - first.value, 1.96 / 2.0 * std::sqrt(1000.0 / (wins * losses)), 0.002);
    EXPECT_NEAR(first.high - first.value, first.value - first.low, 1e-9);
  }
  EXPECT_NEAR(elo(std::log(10.0)), 400.0, 1e-9);
}

TEST(Rating, OfWhoWonEveryGameIsFiniteAndWide) {
  const Ratings ratings = rate(3, std::vector<SeatedGames>{{0, 1, 50, 0, 0},
                                                           {1, 0, 0, 0, 50},
                                                           {0, 2, 50, 0, 0},
                                                           {2, 0, 0, 0, 50},
                                                           {1, 2, 25, 0, 25},
                                                           {2, 1, 25, 0, 25}});
  const Rating &won = ratings.players[0], &lost = ratings.players[1];
  EXPECT_GT(won.value, 3.0);
  EXPECT_LT(won.value, 7.0);
  EXPECT_GT(won.high - won.low, 3.0);
  EXPECT_GT(won.high - won.low, 1.5 * (lost.high - lost.low));
  EXPECT_GT(won.low, lost.high);
}

TEST(Rating, OfEqualsIsZero) {
  const auto with = [](double n) {
    return rate(3, std::vector<SeatedGames>{{0, 1, 0, n, 0},
                                            {1, 0, 0, n, 0},
                                            {0, 2, 0, n, 0},
                                            {2, 0, 0, n, 0},
                                            {1, 2, 0, n, 0},
                                            {2, 1, 0, n, 0}});
  };
  const auto halves = rate(3, std::vector<SeatedGames>{{0, 1, 25, 0, 25},
                                                       {1, 0, 25, 0, 25},
                                                       {0, 2, 25, 0, 25},
                                                       {2, 0, 25, 0, 25},
                                                       {1, 2, 25, 0, 25},
                                                       {2, 1, 25, 0, 25}});
  const Ratings few = with(2), many = with(50);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(many.players[i].value, 0.0, 1e-9);
    const double wide = many.players[i].high - many.players[i].low;
    EXPECT_GT(wide, 0.02);
    EXPECT_LT(wide, (halves.players[i].high - halves.players[i].low) / 4.0);
    EXPECT_GT(few.players[i].high - few.players[i].low, 5.0 * wide);  // four draws prove little
  }
  EXPECT_NEAR(many.first_seat.value, 0.0, 1e-9);
}

// Two who draw with each other, and a third who lost every game: of its strength, nothing is known from the
// draws of the others.
TEST(Rating, DrawsNarrowTheIntervalsOfWhoDrew) {
  const auto third = [](double draws) {
    const double won = (50.0 - draws) / 2.0;
    return rate(3, std::vector<SeatedGames>{{0, 1, won, draws, won},
                                            {1, 0, won, draws, won},
                                            {0, 2, 50, 0, 0},
                                            {2, 0, 0, 0, 50},
                                            {1, 2, 50, 0, 0},
                                            {2, 1, 0, 0, 50}})
        .players[2];
  };
  const Rating with = third(50.0), without = third(0.0);
  EXPECT_NEAR(with.value, without.value, 1e-9);
  EXPECT_NEAR(with.high, without.high, 1e-6);
  EXPECT_GT(with.high - with.low, 3.0);
}

TEST(Rating, OrderAndNamesDoNotMatter) {
  Draws draws(7);
  const std::vector<double> strengths = {1.0, 0.2, -0.4, -1.3};
  std::vector<SeatedGames> games = drawn_league(draws, strengths, 0.3, 20);
  const Ratings before = rate(4, games);
  std::ranges::reverse(games);
  for (SeatedGames& each : games) each.first = 3 - each.first, each.second = 3 - each.second;
  const Ratings after = rate(4, games);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(before.players[i].value, after.players[3 - i].value, 1e-9);
    EXPECT_NEAR(before.players[i].low, after.players[3 - i].low, 1e-9);
    EXPECT_NEAR(before.players[i].high, after.players[3 - i].high, 1e-9);
  }
  EXPECT_NEAR(before.first_seat.value, after.first_seat.value, 1e-9);
  // Nor who is named first, where nobody sits first.
  const Ratings plain = rate(4, games, false);
  for (SeatedGames& each : games) each = {each.second, each.first, each.losses, each.draws, each.wins};
  const Ratings turned = rate(4, games, false);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(plain.players[i].value, turned.players[i].value, 1e-9);
}

TEST(Rating, GamesAgainstItselfSayWhatTheSeatIsWorth) {
  const std::vector<SeatedGames> pair = {{0, 1, 60, 0, 40}, {1, 0, 40, 0, 60}};
  std::vector<SeatedGames> more = pair;
  more.push_back({0, 0, 750, 0, 250});
  const Ratings alone = rate(2, pair), with = rate(2, more);
  EXPECT_NEAR(alone.first_seat.value, 0.0, 1e-9);
  EXPECT_NEAR(with.first_seat.value, std::log(850.0 / 350.0), 0.02);
  EXPECT_GT(with.first_seat.low, 0.5);
  EXPECT_NEAR(with.players[0].value, alone.players[0].value, 0.1);  // by the seat alone
  const Ratings self = rate(1, std::vector<SeatedGames>{{0, 0, 750, 0, 250}});
  EXPECT_NEAR(self.players[0].value, 0.0, 1e-9);
  EXPECT_NEAR(self.first_seat.value, std::log(3.0), 0.005);
}

TEST(Rating, WithoutSeatsAllIsStrength) {
  const std::vector<SeatedGames> games = {{0, 1, 75, 0, 25}};
  const Ratings seated = rate(2, games), plain = rate(2, games, false);
  EXPECT_NEAR(plain.players[0].value - plain.players[1].value, std::log(3.0), 0.02);
  EXPECT_NEAR(plain.first_seat.value, 0.0, 1e-9);
  EXPECT_GT(seated.first_seat.value, 0.2);  // it cannot tell them apart
  EXPECT_LT(seated.players[0].value, plain.players[0].value);
}

}  // namespace
}  // namespace wd
