// judge_test.cpp: when fresh episodes are played, how many, and what follows from them.
#include "src/trainer/judge.h"

#include <gmock/gmock.h>

#include <cmath>

namespace wd {
namespace {

using testing::ElementsAre;

const double kNone = std::nan("");

// Episodes of 100 steps whose returns alternate around a mean.
struct Play {
  double mean = 0.0, spread = 0.0;
  std::vector<int> begun = {};

  FreshEpisodes operator()(int first, int episodes) {
    begun.push_back(first);
    FreshEpisodes played;
    for (int k = 0; k < episodes; ++k) played.returns.push_back(mean + (k % 2 == 0 ? spread : -spread));
    played.steps = 100 * episodes;
    return played;
  }
  double judged(const Prospect& candidate, double best, Judged& judged) {
    begun.clear();
    return judge(candidate, best, judged, std::ref(*this));
  }
};

TEST(Judge, PlaysUntilTheMeanIsKnown) {
  Judged judged;
  Play play{500.0};
  EXPECT_EQ(play.judged({300.0, 1'000'000, 1}, kNone, judged), 500.0);
  EXPECT_THAT(play.begun, ElementsAre(0));
  EXPECT_EQ(judged.steps, 1000);
  play = {100.0, 20.0};  // the error of n episodes is 20 / sqrt(n): 3 % of 100 with 45
  EXPECT_NEAR(play.judged({300.0, 1'000'000, 1}, kNone, judged), 100.0, 1e-9);
  EXPECT_THAT(play.begun, ElementsAre(0, 10, 20, 30, 40));
  play = {1.0, 20.0};
  EXPECT_NEAR(play.judged({300.0, 1'000'000, 1}, kNone, judged), 1.0, 1e-9);
  EXPECT_EQ(play.begun.size(), 10u) << "a hundred episodes are the most";
}

TEST(Judge, StopsWhereAnEpisodeDoesNotEnd) {
  Judged judged;
  Play play{kNone};
  EXPECT_TRUE(std::isnan(play.judged({300.0, 1'000'000, 1}, 120.0, judged)));
  EXPECT_THAT(play.begun, ElementsAre(0));
}

TEST(Judge, StopsOnceTheCandidateIsBelowTheBest) {
  Judged judged;
  Play play{100.0, 20.0};
  EXPECT_NEAR(play.judged({300.0, 1'000'000, 1}, 120.0, judged), 100.0, 1e-9);
  EXPECT_THAT(play.begun, ElementsAre(0));
}

TEST(Judge, LooksWhereTheReturnRisesOrLittleWasSpent) {
  Judged judged;
  Play play{50.0};
  EXPECT_TRUE(std::isnan(play.judged({kNone, 1000, 1}, kNone, judged))) << "no return of training is known";
  EXPECT_TRUE(std::isnan(judged.at) && std::isnan(judged.lowest));
  EXPECT_EQ(play.judged({20.0, 1000, 1}, kNone, judged), 50.0) << "nothing was spent yet";
  judged.steps = 100;  // 5 % of the passes of 1,000 steps, of 4 passes each, are 200
  EXPECT_TRUE(std::isnan(play.judged({19.0, 1000, 1}, 50.0, judged))) << "it falls";
  EXPECT_TRUE(play.begun.empty());
  EXPECT_EQ(judged.lowest, 19.0);
  EXPECT_TRUE(std::isnan(play.judged({20.15, 1000, 1}, 50.0, judged)));
  EXPECT_EQ(play.judged({20.25, 1000, 1}, 50.0, judged), 50.0) << "20 % of what it is above the lowest";
  EXPECT_EQ(judged.at, 20.25);
  judged.steps = 201;
  EXPECT_TRUE(std::isnan(play.judged({40.0, 1000, 1}, 50.0, judged))) << "the share is spent";
  EXPECT_EQ(play.judged({40.0, 1000, 3}, 50.0, judged), 50.0)
      << "a step of 3 epochs costs more to learn from";
  judged.steps = 501;
  EXPECT_TRUE(std::isnan(play.judged({80.0, 1000, 100}, 50.0, judged))) << "but not more than ten passes";
  EXPECT_EQ(play.judged({10.0, 50'100, 1}, 50.0, judged), 50.0) << "1 % of all steps may always be spent";
}

}  // namespace
}  // namespace wd
