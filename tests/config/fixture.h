// fixture.h: an environment that is nothing but parameters and roles, and files that live as long as a test.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "wd/config.h"

namespace wd::test {

// The parameters of WarpDrive's tag games, by type and range as ours have them.
struct Chase {
  int num_taggers = 2, num_runners = 3;
  float grid_length = 10.0f, tagging_distance = 0.01f, tag_penalty_for_runner = 0.0f;
  int episode_length = 100;
  bool use_full_observation = true;
  bool same_spaces = true;

  void describe(Fields& field) {
    field("num_taggers", num_taggers, {1, 1024}, "agents that chase");
    field("num_runners", num_runners, {1, 1024}, "agents that flee");
    field("grid_length", grid_length, above(0, 1e4), "side of the square");
    field("tagging_distance", tagging_distance, {0, 0.1}, "reach");
    field("tag_penalty_for_runner", tag_penalty_for_runner, {-1e6, 0}, "reward for being tagged");
    field("episode_length", episode_length, {1, 1e6}, "steps of an episode");
    field("use_full_observation", use_full_observation, "see all");
    field("same_spaces", same_spaces, "one policy can serve both roles");
  }

  Spec spec() const {
    if (num_taggers > 1000) throw UsageError("num_taggers contradicts num_runners");
    Spec spec;
    spec.time_limit = episode_length;
    spec.roles = {Role{"tagger", num_taggers, {{"all", 7}}, ActionSpace::discrete({5})},
                  Role{"runner", num_runners, {{"all", same_spaces ? 7 : 8}}, ActionSpace::discrete({5})}};
    return spec;
  }
};

inline EnvironmentAccess access_to(Chase& chase) {
  return {[&chase](Fields& fields) { chase.describe(fields); }, [&chase] { return chase.spec(); }};
}

class ConfigTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() /
              ("wd-config-" + std::to_string(::getpid()) + "-" +
               testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(folder_);
    previous_ = std::filesystem::current_path();
    std::filesystem::current_path(folder_);  // so that messages hold short paths
  }
  void TearDown() override {
    std::filesystem::current_path(previous_);
    std::filesystem::remove_all(folder_);
  }

  void write(const std::string& name, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(folder_ / name).parent_path());
    std::ofstream(folder_ / name, std::ios::binary) << text;
  }

  // Loads for the environment "chase"; chase_ then holds its parameters.
  Config load(ConfigSources sources) {
    chase_ = Chase{};
    return load_config(sources, [&](const std::string& name) {
      if (name != "chase") throw UsageError("no environment \"" + name + "\"; did you mean \"chase\"?");
      return access_to(chase_);
    });
  }

  Config load_text(const std::string& text, std::vector<std::string> set = {}) {
    write("a.yaml", text);
    return load({.file = "a.yaml", .overrides = overrides(set)});
  }

  static std::vector<Override> overrides(const std::vector<std::string>& set) {
    std::vector<Override> all;
    for (const std::string& one : set) all.push_back(parse_override(one));
    return all;
  }

  // The message with which a file is refused; empty when it is not.
  std::string refusal(const std::string& text, std::vector<std::string> set = {}) {
    try {
      load_text(text, set);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  }

  std::string print(const Config& config, bool with_origins = true) {
    return print_config(config, access_to(chase_).describe, with_origins);
  }

  std::filesystem::path folder_, previous_;
  Chase chase_;
};

}  // namespace wd::test
