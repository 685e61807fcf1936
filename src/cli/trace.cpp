// trace.cpp: `wdtrain trace`: plays a script in one replica and writes all results, for debugging and
// external checks.
#include <ATen/ops/from_blob.h>

#include <charconv>
#include <cmath>

#include "src/base/atomic_file.h"
#include "src/cli/output.h"
#include "src/cli/script.h"
#include "src/cli/setup.h"
#include "src/config/role_names.h"
#include "src/metrics/number.h"
#include "wd/error.h"
#include "wd/trainer.h"

namespace wd::cli {
namespace {

// Returns the shortest text that is read back as the same float, or "null" if it is not finite.
std::string number(float value) {
  if (!std::isfinite(value)) return "null";
  char text[32];
  return {text, std::to_chars(text, text + sizeof(text), value).ptr};
}

template <typename Values, typename Text>
void append_list(std::string& json, const Values& values, const Text& text) {
  json += '[';
  bool first = true;
  for (const auto& value : values) {
    if (!first) json += ',';
    first = false;
    json += text(value);
  }
  json += ']';
}

// One replica with one policy per role. Takes actions and returns rows.
class Player {
 public:
  Player(const Experiment& setup, const Script& script)
      : setup_(setup),
        spec_(setup.environment->spec()),
        trajectory_(spec_, role_names(spec_), one_policy_per_role(spec_), 1, 1, setup.device,
                    {setup.config.trainer.storage().type}),
        replicas_(*setup.environment, options(setup, script)) {}

  std::string play(const Script& script) {
    std::string json = "{\"environment\": \"" + std::string(setup_.environment->name()) + "\",\n\"agents\": ";
    append_agents(json);
    json += ",\n\"steps\": [\n";
    replicas_.step(trajectory_.first_rows());
    append_step(json, 0);
    const std::size_t steps = script.actions.size();
    for (std::size_t t = 0; t < steps && !over_; ++t) {
      put_actions(script.actions[t]);
      replicas_.step(trajectory_.rows(0));
      json += ",\n";
      append_step(json, static_cast<int>(t) + 1);
    }
    return json + "\n]}\n";
  }

 private:
  static ReplicasOptions options(const Experiment& setup, const Script& script) {
    ReplicasOptions options = replicas_options(setup.config, setup.device);
    options.num_envs = 1;
    if (!script.state.empty()) {
      options.reset = ResetMode::kGiven;
      options.starts = script.state;
    }
    return options;
  }

  void put_actions(const std::vector<std::vector<std::int32_t>>& roles) {
    for (std::size_t r = 0; r < roles.size(); ++r) {
      at::Tensor& action = trajectory_.policies()[r].action;
      auto* const numbers = const_cast<std::int32_t*>(roles[r].data());
      action.copy_(at::from_blob(numbers, action.sizes(), at::TensorOptions().dtype(action.scalar_type())));
    }
  }

  void append_agents(std::string& json) const {
    int id = 0;
    json += '[';
    for (const Role& role : spec_.roles) {
      for (int i = 0; i < role.count; ++i, ++id) {
        json += concat(id == 0 ? "" : ", ", "{\"id\": ", id, ", \"role\": \"", role.name, "\"}");
      }
    }
    json += ']';
  }

  // Appends the row that the step wrote: row 0 at the start, row 1 otherwise.
  void append_step(std::string& json, int t) {
    const int row = t == 0 ? 0 : 1;
    json += concat("{\"t\": ", t, ", \"observations\": ");
    append_observations(json, row);
    if (t > 0) append_outcome(json);
    json += ", \"state\": {";
    const at::Tensor block = replicas_.blocks()[0].cpu();
    bool first = true;
    for (const StateField& field : replicas_.layout().fields) {
      if (field.scratch) continue;
      json += (first ? "\"" : ", \"") + field.name + "\": ";
      first = false;
      append_list(
          json, read_field(static_cast<const std::byte*>(block.data_ptr()), field), [&](double value) {
            return field.type == FieldType::kFloat ? number(static_cast<float>(value)) : json_number(value);
          });
    }
    json += "}}";
  }

  void append_observations(std::string& json, int row) const {
    json += '[';
    bool first = true;
    for (const PolicyBuffers& policy : trajectory_.policies()) {
      const at::Tensor rows = policy.observation[row][0].cpu().to(at::kFloat);
      for (std::int64_t agent = 0; agent < rows.size(0); ++agent) {
        const auto* const values = rows.const_data_ptr<float>() + agent * rows.size(1);
        if (!first) json += ',';
        first = false;
        append_list(json, std::span(values, static_cast<std::size_t>(policy.observation_size)), number);
      }
    }
    json += ']';
  }

  void append_outcome(std::string& json) {
    std::vector<std::string> rewards, active;
    for (const PolicyBuffers& policy : trajectory_.policies()) {
      const at::Tensor reward = policy.reward[0][0].cpu(), flags = policy.active[1][0].cpu();
      for (std::int64_t i = 0; i < reward.size(0); ++i) {
        rewards.push_back(number(reward.const_data_ptr<float>()[i]));
        active.push_back(flags.const_data_ptr<std::uint8_t>()[i] != 0 ? "true" : "false");
      }
    }
    const bool terminated = trajectory_.terminated().item<std::uint8_t>() != 0;
    const bool truncated = trajectory_.truncated().item<std::uint8_t>() != 0;
    over_ = terminated || truncated;
    json += ", \"rewards\": [" + join(rewards, ",") + "], \"active\": [" + join(active, ",") + "]";
    json += concat(", \"terminated\": ", terminated ? "true" : "false",
                   ", \"truncated\": ", truncated ? "true" : "false");
  }

  const Experiment& setup_;
  Spec spec_;
  Trajectory trajectory_;
  Replicas replicas_;
  bool over_ = false;
};

// Adds the file name to errors in the start state, which are found when the replica is created.
Player player(const Experiment& setup, const Script& script, const std::string& path) try {
  return {setup, script};
} catch (const UsageError& error) {
  if (script.state.empty()) throw;
  throw UsageError(concat(path, ": state: ", error.what()));
}

}  // namespace

int trace(const CommandLine& line) {
  Arguments arguments(
      line, "trace",
      "Play a script of actions in one replica, and record the observations and rewards of every agent.\n"
      "Settings are the environment's own defaults, then --config, then --set; configs/NAME.yaml is not "
      "read.");
  ConfigOptions options;
  std::string script_path, out;
  options.add_to(arguments, {{"--seed", "trainer.seed"}});
  arguments.option("--script", script_path, "FILE",
                   R"(JSON: {"state": {field: [by agent]}, "actions": [step][agent]})");
  arguments.option("--out", out, "FILE", "JSON to write; - is stdout");
  if (!arguments.parse()) return 0;
  if (script_path.empty() || out.empty()) throw UsageError("trace needs --script FILE and --out FILE");
  ConfigSources sources = options.sources();
  // A trace is about the rules, so settings that are not given have the environment's own defaults.
  sources.shipped = false;
  const Experiment setup = load_setup(sources);
  const Script script = read_script(script_path, setup.environment->spec());
  write_result(out, player(setup, script, script_path).play(script));
  return 0;
}

}  // namespace wd::cli
