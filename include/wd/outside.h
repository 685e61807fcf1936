// outside.h: replicas of a game whose state is not in their blocks: it is a library of its own, or runs in
// other processes.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "wd/detail/step_view.h"
#include "wd/environment.h"

namespace wd {

// What one step of one replica yields, in arrays over the agents of all roles. Observations and masks of
// agents follow each other, each as long as its role says.
struct OutsideStep {
  bool resets = false;  // the step began an episode
  bool terminated = false, truncated = false;
  float* observation = nullptr;
  float* reward = nullptr;              // [num_agents]; not read in a step that resets
  std::uint8_t* in_game = nullptr;      // [num_agents], after the step
  std::uint8_t* action_mask = nullptr;  // of the roles that have masks
  float* streams = nullptr;             // rows of Spec::streams, one after another
  // Spec::statistics of the episode so far, read where it ends; NaN: the episode does not say.
  float* statistics = nullptr;
};

// Where the agents of a game are in arrays over all of them.
class OutsideLayout {
 public:
  // Throws UsageError if the specification has a table, streams other than float32 of replicas, statistics of
  // roles, or agents that are paid after leaving: environments outside have none.
  explicit OutsideLayout(const Spec& spec);

  // The memory of a replica: the header, whether each agent is in the game, and the statistics.
  StateLayout state() const;
  int num_agents() const { return static_cast<int>(agents_.size()); }
  int observations() const { return observations_; }  // numbers of all agents
  int actions() const { return actions_; }            // words of all agents
  int choices() const { return choices_; }            // of the agents that have masks
  int streams() const { return streams_; }            // numbers of all streams
  int statistics() const { return static_cast<int>(statistics_.size()); }

  // Whether the next step of a replica resets it.
  static bool resets(const StateLayout& layout, const StepView& view, int replica);
  // The seed, 31 bits, of the episode that a replica begins if its next step resets it. It depends on
  // trainer.seed, the global id of the replica, the number of the episode, and env.reset.
  static std::uint32_t seed(const StateLayout& layout, const StepView& view, int replica);
  // Gathers a replica's actions: [actions()] words, which are numbers or, of continuous actions, the bits of
  // floats within their bounds.
  void read_actions(const StepView& view, int replica, std::int32_t* words) const;
  // Writes the rows of a replica and its header.
  void write(const StateLayout& layout, const StepView& view, int replica, const OutsideStep& step) const;
  // Environment::in_game().
  static void in_game(const StateLayout& layout, const std::byte* block, std::uint8_t* flags);

 private:
  struct Agent {
    int observation, observation_size, action, action_width, mask, mask_width;  // mask: -1: none
  };
  std::vector<Agent> agents_;
  std::vector<std::string> statistics_;
  int observations_ = 0, actions_ = 0, choices_ = 0, action_width_ = 0, streams_ = 0;
};

// Which replicas are made (ReplicasOptions).
struct OutsideOptions {
  int num_envs = 1;
  std::uint32_t first_replica = 0;  // global id of the first one
  ResetMode reset = ResetMode::kRandom;
  bool pictures = false;  // picture() will be called
};

// What a replica looks like: rows of pixels from the top, each of red, green and blue.
struct Picture {
  int width = 0, height = 0;  // 0: it shows nothing
  std::string pixels = {};    // 3 width height bytes
};

// The replicas of one Replicas object.
class OutsideReplicas {
 public:
  virtual ~OutsideReplicas() = default;
  // Like Environment::step(), and all pointers are to memory of the host.
  virtual void step(const StateLayout& layout, const StepView& view) = 0;
  // A replica after the last step.
  virtual Picture picture(int /*replica*/) { return {}; }
};

// One replica of a game that a class of your own plays. Its functions are called by one thread at a time, but
// not always by the same one.
class OutsideReplica {
 public:
  virtual ~OutsideReplica() = default;
  // Begins an episode. Equal seeds, of 31 bits, must give equal episodes. Writes `observation`. Before the
  // call, all agents are in the game, all choices are legal, and all other numbers are 0: the same in step().
  virtual void reset(std::uint32_t seed, OutsideStep& first) = 0;
  // Plays [OutsideLayout::actions()] words: choices, or std::bit_cast<float>(word) of continuous actions,
  // within their bounds. Writes `observation`, `reward`, and the ends.
  virtual void step(const std::int32_t* actions, OutsideStep& step) = 0;
  // What it looks like now.
  virtual Picture picture() { return {}; }
};

// Replicas that are one such game each, which `make` makes. Threads share them. Throws UsageError if episodes
// are to begin as a file says.
std::unique_ptr<OutsideReplicas> replicas_of_games(
    const Spec& spec, const OutsideOptions& options,
    const std::function<std::unique_ptr<OutsideReplica>()>& make);

// An environment of replicas outside. A class of your own overrides name(), describe(), spec() and open().
// examples/host_environment is one.
class OutsideEnvironment : public Environment {
 public:
  // Called whenever replicas are made: for a training, an evaluation, a recording. Throws UsageError.
  virtual std::unique_ptr<OutsideReplicas> open(const OutsideOptions& options) const = 0;

  void describe(Fields&) override {}
  StateLayout layout() const final { return OutsideLayout(spec()).state(); }
  const void* params() const final { return nullptr; }
  void step(const StateLayout& layout, const StepView& view) const final;
  void step_in_order(const StateLayout& layout, const StepView& view, PhaseOrder order) const final;
  void derive(const StateLayout&, std::byte*) const final {}
  bool scripted(const StateLayout&, const std::byte*, std::int32_t*) const override { return false; }
  void in_game(const StateLayout& layout, const std::byte* block, std::uint8_t* flags) const final {
    OutsideLayout::in_game(layout, block, flags);
  }
  void step_apart(const StateLayout& layout, const StepView& view, const ApartMemory& memory) const final;
};

// Makes the environment known by its name(), to make_environment() and to all commands of wd::main(). Call it
// before main(), or at its start.
void register_environment(std::unique_ptr<Environment> (*make)());

// For a program that is itself Python: environments that are written in Python use its interpreter, unless
// the user names another one, and find modules where it does (PYTHONPATH). `look` is called several times a
// second while one of them is waited for: what it throws ends the wait, and the process.
void use_python(const std::string& interpreter, const std::string& modules,
                const std::function<void()>& look = {});

namespace detail {
std::vector<EnvironmentRow> registered_environments();
}

}  // namespace wd

// At namespace scope of one source file.
#define WD_REGISTER_ENVIRONMENT(type)                                                        \
  static const bool wd_registered_##type =                                                   \
      (::wd::register_environment(                                                           \
           []() -> std::unique_ptr<::wd::Environment> { return std::make_unique<type>(); }), \
       true)
