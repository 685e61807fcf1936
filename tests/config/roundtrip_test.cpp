// roundtrip_test.cpp: what is printed of a configuration loads to the same configuration in every field of
// every struct, also in those that are not printed: random settings on top of the shipped files.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <random>
#include <tuple>

#include "tests/config/real_environments.h"
#include "wd/algorithms.h"

namespace wd::test {
namespace {

constexpr int kConfigurations = 2000;
constexpr int kLayers = 4;  // configurations that follow one another on top of a shipped file

template <typename Settings>
bool same_if(const AlgorithmChoice& a, const AlgorithmChoice& b, int& known) {
  if (!a.is<Settings>() || std::string(a->name()) != Settings().name()) return true;
  ++known;
  return b.is<Settings>() && a.as<Settings>() == b.as<Settings>();
}

template <typename... Settings>
bool same_among(const AlgorithmChoice& a, const AlgorithmChoice& b) {
  int known = 0;
  const bool same = (same_if<Settings>(a, b, known) && ...);
  EXPECT_EQ(known, 1) << a->name() << " is missing in this test";
  return same && known == 1;
}

bool same(const AlgorithmChoice& a, const AlgorithmChoice& b) {
  return same_among<A2cSettings, PpoSettings, IppoSettings, MappoSettings, ReinforceSettings, PqnSettings,
                    BcSettings, DqnSettings, DdpgSettings, Td3Settings, SacSettings, PqnVdnSettings,
                    PqnQmixSettings, VdnSettings, QmixSettings>(a, b);
}

// The bindings name every field: a new one does not compile until it is compared.
void expect_same(const PolicySettings& a, const PolicySettings& b) {
  const auto& [name, roles, agents, to_train, average, opponents, algorithm, model] = a;
  EXPECT_EQ(std::tie(name, roles, agents, to_train, average, opponents),
            std::tie(b.name, b.roles, b.agents, b.to_train, b.average, b.opponents));
  EXPECT_TRUE(same(algorithm, b.algorithm)) << name;
  EXPECT_TRUE(model == b.model) << name;
}

void expect_same(const Config& a, const Config& b) {
  const auto& [name, source, env, trainer, policies, seats, saving, eval, play, autoscale, members, origins,
               notes, checkpoint, inherited] = a;
  EXPECT_EQ(name, b.name);
  EXPECT_EQ(source, b.source);
  EXPECT_TRUE(env == b.env);
  EXPECT_TRUE(trainer == b.trainer);
  EXPECT_EQ(seats, b.seats);
  EXPECT_TRUE(saving == b.saving);
  EXPECT_TRUE(eval == b.eval);
  EXPECT_TRUE(play == b.play);
  EXPECT_TRUE(autoscale == b.autoscale);
  ASSERT_EQ(members.size(), b.members.size());
  for (std::size_t k = 0; k < members.size(); ++k)
    EXPECT_EQ(std::tie(members[k].path, members[k].values), std::tie(b.members[k].path, b.members[k].values));
  ASSERT_EQ(policies.size(), b.policies.size());
  for (std::size_t p = 0; p < policies.size(); ++p) expect_same(policies[p], b.policies[p]);
  static_cast<void>(origins);  // not settings, but what was said about them
  static_cast<void>(notes);
  static_cast<void>(checkpoint);
  static_cast<void>(inherited);
}

std::vector<std::pair<std::string, std::string>> values_of(const Loaded& loaded) {
  std::vector<std::pair<std::string, std::string>> values;
  for (const FieldInfo& field : list_fields(loaded.describe())) values.emplace_back(field.name, field.value);
  return values;
}

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : random_(seed) {}

  int below(std::size_t count) { return static_cast<int>(random_() % count); }
  bool chance(double probability) { return std::uniform_real_distribution<double>()(random_) < probability; }
  template <typename T>
  const T& one_of(const std::vector<T>& all) {
    return all[random_() % all.size()];
  }

  // A value of this type near the one that it has; empty if none is drawn.
  std::string value(const FieldInfo& field) {
    if (field.type == "bool") return field.value == "true" ? "false" : "true";
    if (field.type == "list of int") return one_of<std::string>({"[]", "[8]", "[16, 32]"});
    const double now = std::atof(field.value.c_str());
    if (field.type == "int") return std::to_string(std::lround(now * one_of<double>({1, 2, 3})) + below(2));
    if (field.type == "number" || field.type == "duration")
      return std::to_string(now * one_of<double>({0.5, 0.123, 0.9}));
    if (field.type == "schedule") return one_of<std::string>({"0.1", "[[0, 0.2], [1000, 0.013]]", "1e-05"});
    if (field.type.find(" | ") == std::string::npos) return "";
    std::vector<std::string> words;
    for (std::size_t begin = 0, end = 0; end != std::string::npos; begin = end + 3) {
      end = field.type.find(" | ", begin);
      words.push_back(field.type.substr(begin, end == std::string::npos ? end : end - begin));
    }
    return one_of(words);
  }

 private:
  std::mt19937_64 random_;
};

class RoundTrip : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("wd-roundtrip-" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // Loads with these settings on top, or leaves everything as it is if they are refused.
  bool attempt(const std::vector<std::string>& settings) {
    ConfigSources more = sources_;
    for (const std::string& setting : settings) more.overrides.push_back(parse_override(setting));
    try {
      now_ = load_real(more);
    } catch (const UsageError&) {
      return false;
    }
    sources_ = std::move(more);
    return true;
  }

  // Another algorithm, with what it asks for.
  void change_algorithm(Draw& draw) {
    std::vector<std::string> settings;
    const std::string algorithm = draw.one_of(algorithm_names());
    for (const PolicySettings& policy : now_.config.policies)
      settings.push_back("policy." + policy.name + ".algorithm=" + algorithm);
    if (attempt(settings)) return;
    for (const PolicySettings& policy : now_.config.policies)
      settings.push_back("policy." + policy.name + ".model.separate_value=false");
    if (attempt(settings)) return;
    std::vector<std::string> mixed = settings;
    for (const PolicySettings& policy : now_.config.policies)
      mixed.push_back("policy." + policy.name + ".model.critic_reads=[state]");
    if (attempt(mixed)) return;
    settings.insert(settings.end(), {"trainer.num_envs=64", "trainer.train_batch_size=64"});
    if (attempt(settings)) return;
    settings.back() = "trainer.train_batch_size=64k";
    attempt(settings);
  }

  // A network of whose settings some come and go.
  void change_network(Draw& draw) {
    const std::string model = "policy." + draw.one_of(now_.config.policies).name + ".model.";
    attempt({model + draw.one_of<std::string>({"type=gru", "type=fully_connected"}), model + "input=entities",
             model + draw.one_of<std::string>({"pool=none", "pool=mean", "attention=2"})});
    attempt({model + "activation=tanh", model + "layer_norm=true", model + "init_method=xavier"});
  }

  // For which agents a policy acts, who takes its place, and what its networks read.
  void change_cast(Draw& draw) {
    const PolicySettings& chosen = draw.one_of(now_.config.policies);
    const std::string name = chosen.name, role = chosen.roles.front(), policy = "policy." + name + ".",
                      model = policy + "model.";
    attempt({"opponents." + name +
             draw.one_of<std::string>({"=[runs/a, self, \"runs/b:x\"]", "=[\"runs/a\"]", "=[]"})});
    attempt({"trainer.population=2", "members." + policy + "average=[0, 0.9]",
             "members." + model + "fc_dims=[[8], [16, 8]]"});
    attempt({policy + "agents=" + draw.one_of<std::string>({"[" + role + "]", "[]"})});
    attempt(
        {model + "reads=" + draw.one_of<std::string>({"[observation, agent_id]", "[observation, state]"})});
    attempt({policy + "algorithm=" + draw.one_of<std::string>({"MAPPO", "PPO"}),
             model + "separate_value=true", model + "critic_reads=[state, agent_id]"});
  }

  // All of these that are not refused.
  void attempt_each(const std::vector<std::string>& settings) {
    if (settings.empty() || attempt(settings) || settings.size() == 1) return;
    const auto middle = settings.begin() + static_cast<std::ptrdiff_t>(settings.size() / 2);
    attempt_each({settings.begin(), middle});
    attempt_each({middle, settings.end()});
  }

  // Each setting that there is, with some probability. Which there are is what list_settings() says, so that
  // a new one takes part.
  void change_settings(Draw& draw) {
    std::vector<std::string> settings;
    for (const FieldInfo& field : list_settings(now_.config, now_.describe())) {
      const bool model = field.name.find(".model.") != std::string::npos;
      if (field.name == "name" || !draw.chance(model ? 0.07 : 0.008)) continue;
      if (const std::string text = draw.value(field); !text.empty())
        settings.push_back(field.name + "=" + text);
    }
    attempt_each(settings);
  }

  // Expects that what is printed loads to the same, and goes on from the printed file.
  void print_and_load() {
    const std::string text = print_config(now_.config, now_.describe());
    const std::filesystem::path file = folder_ / "printed.yaml";
    std::ofstream(file) << text;
    sources_ = {.file = file, .shipped = false};
    Loaded again = load_real(sources_);
    expect_same(now_.config, again.config);
    EXPECT_EQ(values_of(now_), values_of(again));
    if (HasFailure()) ADD_FAILURE() << text;
    now_ = std::move(again);
  }

  void begin(const std::string& env) {
    sources_ = {.env = env};
    now_ = load_real(sources_);
  }

  std::filesystem::path folder_;
  ConfigSources sources_;
  Loaded now_;
};

TEST_F(RoundTrip, APrintedConfigurationIsTheSameInAllFields) {
  // Two are there twice, since few games have continuous actions.
  const std::vector<std::string> envs = {"cartpole",
                                         "acrobot",
                                         "mountain_car",
                                         "pendulum",
                                         "simple_tag",
                                         "tag_continuous",
                                         "tag_gridworld",
                                         "continuous_mountain_car",
                                         "simple_spread",
                                         "simple_adversary",
                                         "simple_reference",
                                         "simple_speaker_listener",
                                         "foraging",
                                         "pendulum",
                                         "continuous_mountain_car",
                                         "memory_chain",
                                         "t_maze"};
  std::map<std::string, int> seen;  // by algorithm, kind of network and so on
  for (int k = 0; k < kConfigurations && !HasFailure(); ++k) {
    Draw draw(static_cast<std::uint64_t>(k));
    if (k % kLayers == 0) begin(draw.one_of(envs));
    if (draw.chance(0.4)) change_algorithm(draw);
    if (draw.chance(0.2)) change_network(draw);
    if (draw.chance(0.2)) change_cast(draw);
    change_settings(draw);
    print_and_load();
    for (const PolicySettings& policy : now_.config.policies) {
      ++seen[policy.algorithm->name()];
      ++seen[policy.model.network ? policy.model.network->name() : "fully_connected"];
      if (policy.model.network && policy.model.pools()) ++seen["module that embeds things"];
      if (!policy.agents.empty()) ++seen["agents"];
      if (!policy.opponents.empty()) ++seen["opponents"];
      if (!policy.model.critic_reads.empty()) ++seen["critic_reads"];
    }
  }
  for (const std::string& name : algorithm_names()) {
    if (name == "BC") continue;  // needs recordings
    EXPECT_GT(seen[name], 10) << name;
  }
  for (const char* const kind :
       {"fully_connected", "gru", "module that embeds things", "agents", "opponents", "critic_reads"})
    EXPECT_GT(seen[kind], 10) << kind;
}

// The keys that only some networks have, in layers that turn them on and off.
TEST_F(RoundTrip, WhatHasNoEffectIsForgottenAndWhatHasIsPrinted) {
  const std::string model = "policy.adversary.model.";
  const auto load = [&](const std::vector<std::string>& set) {
    std::vector<Override> overrides;
    for (const std::string& one : set) overrides.push_back(parse_override(model + one));
    const Loaded loaded = load_real({.env = "simple_tag", .overrides = overrides});
    std::map<std::string, std::string> values;
    for (const auto& [path, value] : config_values(loaded.config, loaded.describe())) values[path] = value;
    return std::pair(loaded.config.policies[0].model, values);
  };
  const auto [embeds, printed] = load({"type=gru", "input=entities", "pool=mean", "activation=tanh",
                                       "layer_norm=true", "init_method=xavier"});
  EXPECT_EQ(std::tuple(embeds.activation, embeds.layer_norm, embeds.init_method),
            std::tuple(kTanh, true, kXavier));
  EXPECT_EQ(printed.at(model + "activation"), "tanh");
  EXPECT_EQ(printed.at(model + "layer_norm"), "true");
  EXPECT_EQ(printed.at(model + "init_method"), "xavier");
  const auto [plain, short_list] = load({"type=fully_connected", "init_method=xavier"});
  EXPECT_EQ(plain.init_method, kXavier);
  EXPECT_FALSE(short_list.contains(model + "sequence_length"));
  EXPECT_THROW(load({"type=fully_connected", "width=3"}), ConfigError);
  const auto [other, of_other] =
      load({"type=gru", "width=24", "horizon=30", "activation=relu", "fc_dims=[8]", "type=mingru"});
  EXPECT_EQ(std::tuple(other.activation, other.fc_dims), std::tuple(kRelu, std::vector<int>{8}));
  EXPECT_EQ(of_other.at(model + "width") + of_other.at(model + "horizon"), "2430");
  const auto [memory, of_memory] = load({"type=lstm"});
  EXPECT_EQ(std::tuple(memory.activation, memory.fc_dims), std::tuple(kTanh, std::vector<int>()));
  EXPECT_EQ(of_memory.at(model + "activation"), "tanh");
}

}  // namespace
}  // namespace wd::test
