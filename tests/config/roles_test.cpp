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

TEST_F(Roles, OnePolicyNeedsEqualSpaces) {
  EXPECT_EQ(refusal("name: chase\nenv: {same_spaces: false}\npolicy: {shared: {}}"),
            "policy.shared.roles = tagger, runner: one policy needs equal spaces, but tagger observes 7 "
            "numbers and acts by "
            "5 choices, runner observes 8 numbers and acts by 5 choices");
  EXPECT_EQ(refusal("name: chase\nenv: {same_spaces: false}\npolicy: {tagger: {}, runner: {}}"), "");
}

}  // namespace
}  // namespace wd::test
