// roles_test.cpp: every role has one policy, and the roles of one policy must have equal spaces.
#include "tests/config/fixture.h"

namespace wd::test {
namespace {

using Roles = ConfigTest;

TEST_F(Roles, SharedServesAllRoles) {
  const Config config = load_text("name: chase\npolicy: {shared: {}}");
  EXPECT_EQ(config.policies[0].roles, (std::vector<std::string>{"tagger", "runner"}));
  EXPECT_EQ(policies_of(config), (std::vector<int>{0, 0}));
}

TEST_F(Roles, AnyPolicyMayListItsRoles) {
  const Config config = load_text("name: chase\npolicy: {a: {roles: [runner]}, b: {roles: [tagger]}}");
  EXPECT_EQ(policies_of(config), (std::vector<int>{1, 0}));
  EXPECT_EQ(policies_of(load_text("name: chase\npolicy: {a: {roles: [runner, tagger]}}")),
            (std::vector<int>{0, 0}));
}

TEST_F(Roles, MistakesAreNamed) {
  const std::pair<const char*, const char*> cases[] = {
      {"{tagger: {}}", "policy: role \"runner\" has no policy"},
      {"{shared: {}, tagger: {}}", "policy.tagger.roles = tagger: policy \"shared\" has this role already"},
      {"{a: {roles: [tagger, taggr, runner]}}",
       "a.yaml:2:21: policy.a.roles = taggr: no such role; did you mean \"tagger\"?"},
      {"{a: {roles: [tagger, tagger, runner]}}",
       "a.yaml:2:21: policy.a.roles = tagger: policy \"a\" has this role already"},
      {"{a: {roles: tagger}}", "a.yaml:2:21: policy.a.roles = tagger: must be a list of words, [a, b]"},
      {"{shared: {}, a: {}}",
       "a.yaml:2:22: policy.a: no role of that name; name it tagger, runner or shared, or give it roles: "
       "[...]"},
  };
  for (const auto& [text, expected] : cases) {
    EXPECT_EQ(refusal("name: chase\npolicy: " + std::string(text)), expected) << text;
  }
}

// Taggers are agents 0 and 1, runners 2 to 4.
TEST_F(Roles, APolicyMayListAnyRunsOfAgents) {
  const Config config = load_text(
      "name: chase\npolicy: {a: {agents: [tagger 0, runner 1-2]}, b: {agents: [1, runner 0], algorithm: "
      "PPO}}");
  EXPECT_EQ(config.seats, (std::vector<Seat>{{0, 0, 1, 0}, {0, 1, 1, 1}, {1, 2, 1, 1}, {1, 3, 2, 0}}));
  EXPECT_EQ(config.policies[0].roles, (std::vector<std::string>{"tagger", "runner"}));
  EXPECT_EQ(config.policies[0].agents, (std::vector<std::string>{"tagger 0", "runner 1-2"}));
  EXPECT_EQ(load_text("name: chase\npolicy: {a: {agents: [0-4]}}").seats,
            (std::vector<Seat>{{0, 0, 2, 0}, {1, 2, 3, 0}}));
  EXPECT_EQ(load_text("name: chase\npolicy: {a: {agents: [tagger, runner 0, runner 1-2]}}").seats,
            (std::vector<Seat>{{0, 0, 2, 0}, {1, 2, 3, 0}}));
}

TEST_F(Roles, AgentsStayWhenTheAlgorithmChanges) {
  const Config config =
      load_text("name: chase\npolicy: {a: {agents: [0-2]}, b: {agents: [3, 4]}}", {"policy.a.algorithm=PPO"});
  EXPECT_EQ(config.policies[0].agents, std::vector<std::string>{"0-2"});
  EXPECT_EQ(config.notes, std::vector<std::string>{});
}

TEST_F(Roles, MistakesInAgentsAreNamed) {
  const std::pair<const char*, const char*> cases[] = {
      {"{a: {agents: [tagger, runner 0-1]}}", "policy: agents runner 2 have no policy"},
      {"{a: {agents: [tagger, runner 0-3]}}",
       "a.yaml:2:22: policy.a.agents = runner 0-3: the agents of runner are 0 to 2\n"
       "policy: role \"runner\" has no policy"},
      {"{a: {agents: [0-5]}}",
       "a.yaml:2:22: policy.a.agents = 0-5: the agents' ids are 0 to 4\n"
       "policy: role \"tagger\" has no policy\npolicy: role \"runner\" has no policy"},
      {"{a: {agents: [tagger, runner 2-1]}}",
       "a.yaml:2:22: policy.a.agents = runner 2-1: the first number is above the last one\n"
       "policy: role \"runner\" has no policy"},
      {"{a: {agents: [tagger, runner 0-2]}, b: {agents: [runner 2-1], max_rows: 10}}",
       "a.yaml:2:57: policy.b.agents = runner 2-1: the first number is above the last one"},
      {"{a: {agents: [0-4]}, b: {algorithm: PQN, roles: [nope], max_rows: 10}}",
       "a.yaml:2:57: policy.b.roles = nope: no such role; known: tagger, runner"},
      {"{a: {agents: [0-4]}, b: {agents: [], max_rows: 10}}",
       "a.yaml:2:30: policy.b: no role of that name; name it tagger, runner or shared, or give it roles: "
       "[...]"},
      {"{a: {agents: [0-4]}, b: {agents: [runner 1]}}",
       "a.yaml:2:42: policy.b.agents = runner 1: policy \"a\" has runner 1 already"},
      {"{a: {agents: [tagger, runer 0]}, runner: {}}",
       "a.yaml:2:22: policy.a.agents = runer 0: no such role; did you mean \"runner\"?"},
      {"{a: {roles: [tagger], agents: [0-4]}}",
       "a.yaml:2:21: policy.a.roles = tagger: agents are given too, of tagger, runner: leave out roles"},
      {"{a: {roles: [tagger 0], agents: [0-4]}}",
       "a.yaml:2:21: policy.a.roles = tagger 0: agents are given too, of tagger, runner: leave out roles"},
  };
  for (const auto& [text, expected] : cases)
    EXPECT_EQ(refusal("name: chase\npolicy: " + std::string(text)), expected) << text;
}

TEST_F(Roles, OpponentsAreReadByPolicy) {
  const Config config = load_text("name: chase\nopponents: {runner: [runs/a, self, runs/a, runs/b]}");
  EXPECT_EQ(shown(config.policies[1].opponents), "[runs/a, self, runs/a, runs/b]");
  EXPECT_EQ(config.policies[1].num_opponents(), 2);
  EXPECT_EQ(config.policies[0].num_opponents(), 0);
  EXPECT_EQ(refusal("name: chase\nopponents: [runs/a]"),
            "a.yaml:2:12: opponents = [runs/a]: must be a section");
}

TEST_F(Roles, OnePolicyNeedsEqualSpaces) {
  EXPECT_EQ(refusal("name: chase\nenv: {same_spaces: false}\npolicy: {shared: {}}"),
            "policy.shared.roles = tagger, runner: one policy needs equal spaces, but tagger observes 7 "
            "numbers and acts by "
            "5 choices, runner observes 8 numbers and acts by 5 choices");
  EXPECT_EQ(refusal("name: chase\nenv: {same_spaces: false}\npolicy: {tagger: {}, runner: {}}"), "");
}

}  // namespace
}  // namespace wd::test
