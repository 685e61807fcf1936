// trace.cpp: `wdtrain trace`: plays a script in one replica and writes all results, for debugging and
// external checks.
#include <ATen/ops/from_blob.h>

#include <charconv>
#include <cmath>

#include "src/base/atomic_file.h"
#include "src/cli/output.h"
#include "src/cli/script.h"
#include "src/cli/setup.h"
#include "src/metrics/number.h"
#include "wd/error.h"
#include "wd/game.h"
#include "wd/trainer.h"

namespace wd::cli {
namespace {

// Returns the shortest text that is read back as the same float, or "null" if it is not finite.
std::string number(float value) {
  if (!std::isfinite(value)) return "null";
  char text[32];
  return {text, std::to_chars(text, text + sizeof(text), value).ptr};
}

std::string list_of(const std::vector<std::string>& texts) { return "[" + join(texts, ",") + "]"; }

// One replica with one policy per role. Takes actions and returns rows.
class Trace {
 public:
  Trace(const Experiment& setup, const Script& script)
      : setup_(setup),
        spec_(setup.environment->spec()),
        game_(*setup.environment, options(setup, script),
              RolloutShape::of_roles(spec_, 1, setup.device, {setup.config.trainer.storage().type})) {
    for (std::size_t r = 0; r < spec_.roles.size(); ++r) {
      auto player = std::make_unique<OutsidePlayer>();
      players_.push_back(player.get());
      game_.add(std::move(player));
    }
  }

  std::string play(const Script& script) {
    game_.begin();
    std::vector<std::string> steps = {step_text(0)};
    for (std::size_t t = 0; t < script.actions.size() && !over_; ++t) {
      put_actions(script.actions[t]);
      game_.act(0, {});
      game_.step(0);
      steps.push_back(step_text(static_cast<int>(t) + 1));
    }
    return "{\"environment\": \"" + std::string(setup_.environment->name()) + "\",\n\"agents\": [" +
           join(agents()) + "],\n\"steps\": [\n" + join(steps, ",\n") + "\n]}\n";
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
      const at::Tensor action = game_.trajectory().policies()[r].action[0];
      auto* const numbers = const_cast<std::int32_t*>(roles[r].data());
      players_[r]->set(
          at::from_blob(numbers, action.sizes(), at::TensorOptions().dtype(action.scalar_type())));
    }
  }

  std::vector<std::string> agents() const {
    std::vector<std::string> agents;
    for (const Role& role : spec_.roles) {
      for (int i = 0; i < role.count; ++i)
        agents.push_back(concat("{\"id\": ", agents.size(), ", \"role\": \"", role.name, "\"}"));
    }
    return agents;
  }

  // The row that the step wrote: row 0 at the start, row 1 otherwise.
  std::string step_text(int t) {
    return concat("{\"t\": ", t, ", \"observations\": ", list_of(observations(t == 0 ? 0 : 1)),
                  t > 0 ? outcome() : "", ", \"state\": {", join(state()), "}}");
  }

  std::vector<std::string> state() const {
    const at::Tensor block = game_.replicas().blocks()[0].cpu();
    std::vector<std::string> fields;
    for (const StateField& field : game_.replicas().layout().fields) {
      if (field.scratch) continue;
      std::vector<std::string> values;
      for (const double value : read_field(static_cast<const std::byte*>(block.data_ptr()), field)) {
        values.push_back(field.type == FieldType::kFloat ? number(static_cast<float>(value))
                                                         : json_number(value));
      }
      fields.push_back("\"" + field.name + "\": " + list_of(values));
    }
    return fields;
  }

  // One list per agent.
  std::vector<std::string> observations(int row) const {
    std::vector<std::string> agents;
    for (const PolicyBuffers& policy : game_.trajectory().policies()) {
      const at::Tensor rows = policy.observation[row][0].cpu().to(at::kFloat);
      for (std::int64_t agent = 0; agent < rows.size(0); ++agent) {
        std::vector<std::string> numbers;
        for (int k = 0; k < policy.observation_size; ++k)
          numbers.push_back(number(rows.const_data_ptr<float>()[agent * rows.size(1) + k]));
        agents.push_back(list_of(numbers));
      }
    }
    return agents;
  }

  std::string outcome() {
    std::vector<std::string> rewards, active;
    for (const PolicyBuffers& policy : game_.trajectory().policies()) {
      const at::Tensor reward = policy.reward[0][0].cpu();
      for (std::int64_t i = 0; i < reward.size(0); ++i)
        rewards.push_back(number(reward.const_data_ptr<float>()[i]));
    }
    const at::Tensor block = game_.replicas().blocks()[0].cpu();
    for (const std::uint8_t flag :
         game_.replicas().in_game(static_cast<const std::byte*>(block.const_data_ptr())))
      active.push_back(flag != 0 ? "true" : "false");
    const bool terminated = game_.trajectory().terminated().item<std::uint8_t>() != 0;
    const bool truncated = game_.trajectory().truncated().item<std::uint8_t>() != 0;
    over_ = terminated || truncated;
    return concat(", \"rewards\": ", list_of(rewards), ", \"active\": ", list_of(active),
                  ", \"terminated\": ", terminated ? "true" : "false",
                  ", \"truncated\": ", truncated ? "true" : "false");
  }

  const Experiment& setup_;
  Spec spec_;
  Game game_;
  std::vector<OutsidePlayer*> players_;  // of the game, by role
  bool over_ = false;
};

// Adds the file name to errors in the start state, which are found when the replica is created.
Trace made(const Experiment& setup, const Script& script, const std::string& path) try {
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
      "Settings are the environment's own defaults, then --config, "
      "then --set; configs/NAME.yaml is not read.");
  ConfigOptions options;
  std::string script_path, out;
  options.add_to(arguments, {{"--seed", "trainer.seed"}});
  arguments.option("--script", script_path, "FILE",
                   R"(JSON: {"state": {field: [values]}, "actions": [step][agent]})");
  arguments.option("--out", out, "FILE", "JSON to write; - is stdout");
  if (!arguments.parse()) return 0;
  if (script_path.empty() || out.empty()) throw UsageError("trace needs --script FILE and --out FILE");
  ConfigSources sources = options.sources();
  // A trace is about the rules, so settings that are not given have the environment's own defaults.
  sources.shipped = false;
  const Experiment setup = load_setup(sources);
  const Script script = read_script(script_path, setup.environment->spec());
  write_result(out, made(setup, script, script_path).play(script));
  return 0;
}

}  // namespace wd::cli
