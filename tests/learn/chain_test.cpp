// chain_test.cpp: on a row of places (chain.cu), the learned values and probabilities equal the computed
// ones.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <ostream>
#include <sstream>

#include "tests/learn/learned.h"

namespace wd {
namespace {

using testing::kPpo;
using testing::kTable;
using testing::Learned;

constexpr std::size_t kRest = 0, kForward = 1, kBack = 2, kMoves = 3, kPlaces = 4;
constexpr double kGamma = 0.95;

// One of the games of chain.cu, and its states: places, or pairs of place and time if the observation
// includes the clock.
struct World {
  std::string goal;
  int agents = 1;
  std::size_t limit = 5;
  double rest = 0.1, prize = 1.0;
  bool masks = false, clock = false;

  struct Step {
    double reward;
    std::size_t next;
    bool over;
  };

  std::size_t times() const { return clock ? limit : 1; }
  std::size_t states() const { return kPlaces * times(); }
  bool legal(std::size_t state, std::size_t move) const {
    return !(masks && move == kBack && state / times() % 2 == 1);
  }
  Step step(std::size_t state, std::size_t move) const {
    const std::size_t place = state / times(), time = state % times();
    const bool arrives = move == kForward && place + 1 == kPlaces;
    const bool over = (arrives && goal != "ring") || (clock && time + 1 == limit);
    const std::size_t next = move == kRest ? place : move == kForward && !arrives ? place + 1 : 0;
    const double reward = arrives ? prize : move == kRest ? rest : 0.0;
    return {reward, over ? 0 : next * times() + (clock ? time + 1 : 0), over};
  }
  std::string settings() const {
    return concat("agents: ", agents, ", places: ", kPlaces, ", limit: ", limit, ", goal: ", goal,
                  ", masks: ", masks ? "true" : "false", ", clock: ", clock ? "true" : "false",
                  ", rest: ", rest, ", prize: ", prize, ", reset: random");
  }
};

using Table = std::vector<std::array<double, kMoves>>;

double value_of(const Table& chance, const Table& worth, std::size_t state) {
  double value = 0.0;
  for (std::size_t m = 0; m < kMoves; ++m) value += chance[state][m] * worth[state][m];
  return value;
}

// The value of each move if the agent then follows these probabilities. An unobserved time limit does not end
// an episode.
Table worth_under(const World& world, const Table& chance) {
  Table worth(chance.size(), {0.0, 0.0, 0.0});
  for (int sweep = 0; sweep < 600; ++sweep) {
    for (std::size_t s = world.states(); s-- > 0;) {
      for (std::size_t m = 0; m < kMoves; ++m) {
        const World::Step step = world.step(s, m);
        worth[s][m] = step.reward + (step.over ? 0.0 : kGamma * value_of(chance, worth, step.next));
      }
    }
  }
  return worth;
}

// Only the best moves; or, with an entropy weight, the probabilities at which the gradient of advantage plus
// entropy is zero: proportional to exp(worth / weight) among the legal moves.
Table solve(const World& world, double entropy_weight) {
  Table chance(world.states(), {1.0 / 3, 1.0 / 3, 1.0 / 3});
  for (int round = 0; round < 60; ++round) {
    const Table worth = worth_under(world, chance);
    for (std::size_t s = 0; s < world.states(); ++s) {
      double highest = -1e30, sum = 0.0;
      for (std::size_t m = 0; m < kMoves; ++m)
        if (world.legal(s, m)) highest = std::max(highest, worth[s][m]);
      for (std::size_t m = 0; m < kMoves; ++m) {
        const double behind = highest - worth[s][m];
        const double weight = entropy_weight > 0.0 ? std::exp(-behind / entropy_weight) : behind < 1e-9;
        sum += chance[s][m] = world.legal(s, m) ? weight : 0.0;
      }
      for (double& c : chance[s]) c /= sum;
    }
  }
  return chance;
}

struct Case {
  std::string name;
  World world;
  std::string settings;  // of the policy
  std::int64_t steps, batch = 512;
  double lr = 0.05, entropy_weight = 0.0;
  double chance_error = 0.02;  // maximum
  bool values = true;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

World ring() { return {.goal = "ring", .agents = 2}; }
World ends() { return {.goal = "terminates", .rest = 0.02}; }
World leaves() { return {.goal = "leaves", .agents = 3, .rest = 0.02}; }
World timed() { return {.goal = "ring", .agents = 2, .clock = true}; }

const std::pair<std::string, World> kWorlds[] = {
    {"ring", ring()}, {"ends", ends()}, {"leaves", leaves()}, {"timed", timed()}};

World masked(World world) {
  world.masks = true;
  return world;
}

// Two algorithms, three kinds of returns, four worlds, with and without masks.
std::vector<Case> cases() {
  const std::pair<std::string, std::string> returns[] = {{"lambda", "gae_lambda: 0.8, n_step: 0, "},
                                                         {"whole", "gae_lambda: 1, n_step: 0, "},
                                                         {"steps", "gae_lambda: 1, n_step: 3, "}};
  const std::string rest = "normalize_advantage: false, " + kTable;
  std::vector<Case> all;
  for (const auto& [of, world] : kWorlds) {
    for (const bool masks : {false, true}) {
      for (const auto& [kind, settings] : returns) {
        const std::string name = kind + "_" + of + (masks ? "_masks" : "");
        const World here = masks ? masked(world) : world;
        all.push_back({"A2C_" + name, here, "algorithm: A2C, " + settings + rest, 307'200});
        all.push_back({"PPO_" + name, here, kPpo + settings + rest, 76'800});
      }
    }
  }
  return all;
}

// Cases that differ from those above in one setting.
std::vector<Case> variations() {
  const std::string gae = "gae_lambda: 0.8, n_step: 0, ", plain = "normalize_advantage: false, ";
  const std::string shared =
      "model: {fc_dims: [32], activation: tanh, separate_value: false, init_method: orthogonal}";
  const std::string apart =
      "model: {fc_dims: [32], activation: relu, separate_value: true, init_method: orthogonal}";
  const std::string reinforce = "algorithm: REINFORCE, " + plain + kTable;
  World ends_in_time = ends(), leaves_in_time = leaves();
  ends_in_time.clock = leaves_in_time.clock = true;
  return {
      {"A2C_hidden_layer_for_both", masked(leaves()), "algorithm: A2C, " + gae + plain + shared, 614'400, 512,
       0.01},
      {"PPO_hidden_layers_apart", masked(ring()), kPpo + gae + plain + apart, 153'600, 512, 0.01},
      {"PPO_value_clipping", masked(leaves()), kPpo + gae + plain + "vf_clip_param: 0.2, " + kTable, 76'800},
      {"PPO_value_clipping_ring", ring(), kPpo + gae + plain + "vf_clip_param: 0.2, " + kTable, 76'800},
      {"PPO_normalized_advantages", ring(), kPpo + gae + "normalize_advantage: true, " + kTable, 76'800},
      {"REINFORCE_timed", masked(timed()), reinforce, 2'048'000, 512, 0.05, 0.0, 0.1, false},
      {"REINFORCE_ends", ends_in_time, reinforce, 2'048'000, 512, 0.05, 0.0, 0.1, false},
      {"REINFORCE_leaves", masked(leaves_in_time), reinforce, 2'048'000, 512, 0.05, 0.0, 0.1, false},
  };
}

// With an entropy weight, the solution determines every probability.
std::vector<Case> mixtures() {
  const std::string gae = "gae_lambda: 0.8, n_step: 0, ", steps = "gae_lambda: 1, n_step: 3, ",
                    rest = "normalize_advantage: false, " + kTable;
  World ends_in_time = ends();
  ends_in_time.clock = true;
  ends_in_time.limit = 4;
  std::vector<Case> all;
  for (const auto& [of, world] : kWorlds) {
    all.push_back(
        {"A2C_" + of, masked(world), "algorithm: A2C, " + gae + rest, 1'228'800, 2048, 0.05, 0.2, 0.03});
    all.push_back({"PPO_" + of, masked(world), kPpo + gae + rest, 614'400, 2048, 0.03, 0.2, 0.03});
  }
  all.push_back(
      {"A2C_steps_ring", ring(), "algorithm: A2C, " + steps + rest, 1'228'800, 2048, 0.05, 0.2, 0.03});
  all.push_back({"REINFORCE_ends", masked(ends_in_time), "algorithm: REINFORCE, " + rest, 4'915'200, 8192,
                 0.05, 0.2, 0.05, false});
  return all;
}

std::map<int, Learned> learn(const Case& c) {
  testing::Trained trained({.env = "chain",
                            .env_settings = c.world.settings(),
                            .settings = c.settings,
                            .gamma = kGamma,
                            .lr = c.lr,
                            .entropy_weight = c.entropy_weight,
                            .steps = c.steps,
                            .batch = c.batch});
  return trained.table();
}

struct Errors {
  double value = 0.0;      // maximum error, relative to the largest value
  double chance = 0.0;     // maximum error
  std::size_t states = 0;  // number of states seen often enough
  std::string text;
};

Errors errors_of(const Case& c, const std::map<int, Learned>& learned) {
  const Table chance = solve(c.world, c.entropy_weight), worth = worth_under(c.world, chance);
  Errors errors;
  std::ostringstream text;
  double largest = 0.0;
  for (std::size_t s = 0; s < c.world.states(); ++s)
    largest = std::max(largest, std::abs(value_of(chance, worth, s)));
  for (const auto& [number, here] : learned) {
    const auto state = static_cast<std::size_t>(number);
    if (here.seen < 10) continue;
    ++errors.states;
    const double value = value_of(chance, worth, state);
    if (c.values) errors.value = std::max(errors.value, std::abs(here.value - value) / largest);
    text << "state " << state << ", seen " << here.seen << " times: value " << here.value << " where "
         << value << " is right; chances";
    for (const auto& [move, p] : here.chance) {
      const double right = chance[state][static_cast<std::size_t>(move)];
      errors.chance = std::max(errors.chance, std::abs(p - right));
      text << " " << move << ": " << p << " (" << right << ")";
    }
    text << "\n";
  }
  errors.text = text.str();
  return errors;
}

class Chain : public ::testing::TestWithParam<Case> {};

TEST_P(Chain, IsLearned) {
  const Case& c = GetParam();
  const Errors errors = errors_of(c, learn(c));
  EXPECT_LE(errors.value, 0.02) << errors.text;
  EXPECT_LE(errors.chance, c.chance_error) << errors.text;
  EXPECT_GE(errors.states, kPlaces);
  RecordProperty("value_error", concat(errors.value));
  RecordProperty("chance_error", concat(errors.chance));
}

const auto name_of = [](const auto& info) { return info.param.name; };
INSTANTIATE_TEST_SUITE_P(Optimum, Chain, ::testing::ValuesIn(cases()), name_of);
INSTANTIATE_TEST_SUITE_P(Variation, Chain, ::testing::ValuesIn(variations()), name_of);
INSTANTIATE_TEST_SUITE_P(Mixture, Chain, ::testing::ValuesIn(mixtures()), name_of);

// Compares computed values with formulas where they exist.
TEST(ChainAnswers, AreThoseOfTheFormulas) {
  const double round = 1.0 / (1.0 - std::pow(kGamma, 4));
  for (std::size_t place = 0; place < kPlaces; ++place) {
    const double way = std::pow(kGamma, static_cast<double>(kPlaces - 1 - place));
    const Table round_trip = solve(ring(), 0.0), once = solve(ends(), 0.0);
    EXPECT_NEAR(value_of(round_trip, worth_under(ring(), round_trip), place), way * round, 1e-9);
    EXPECT_NEAR(value_of(once, worth_under(ends(), once), place), way, 1e-9);
  }
}

}  // namespace
}  // namespace wd
