// fixture.h: configurations of the environment "chase", in files that exist during a test.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/config/chase.h"

namespace wd::test {

class ConfigTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() /
              ("wd-config-" + std::to_string(::getpid()) + "-" +
               testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(folder_);
    previous_ = std::filesystem::current_path();
    std::filesystem::current_path(folder_);  // so that messages contain short paths
  }
  void TearDown() override {
    std::filesystem::current_path(previous_);
    std::filesystem::remove_all(folder_);
  }

  void write(const std::string& name, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(folder_ / name).parent_path());
    std::ofstream(folder_ / name, std::ios::binary) << text;
  }

  // Loads a configuration of the environment "chase" and fills chase_ with its parameters.
  Config load(ConfigSources sources) {
    chase_ = Chase{};
    return load_config(sources, lookup_of(chase_));
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

  // The error message for a file; empty if the file is accepted.
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
