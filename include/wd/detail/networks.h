// networks.h: the types of networks that a model can have, by name, and the settings of each.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "wd/params.h"

namespace wd {

class Module;  // wd/module.h

// A named part of a network's input: `size` numbers for each agent; or for each replica, whose agents then
// share them; or for each slot of the policy's agents, where all replicas share them.
struct InputPart {
  std::string name;
  int size = 0;
  bool per_replica = false;
  std::vector<int> shape = {};  // of a stream's row (StreamSpec::shape); empty: [size]
  bool per_slot = false;
  bool rounded = false;  // stored in bfloat16, in rows that are padded to 16 bytes
  bool late = false;     // of a network with memory of the library's own: read behind the memory

  // What agents observe. In bf16 it is rounded to bfloat16, and the other parts stay float32.
  static constexpr const char* kObservation = "observation";
  bool is_observation() const { return name == kObservation; }
  // Which of the policy's agents a row is of, as a one-hot vector (model.reads).
  static constexpr const char* kAgentId = "agent_id";
  // Whether its rows are shared, so that networks read the rows of all agents of a replica together.
  bool is_shared() const { return per_replica || per_slot; }
};

// The sizes that a module is made for.
struct ModuleShape {
  int inputs = 0;                // numbers of the first part: entries of an observation
  int outputs = 0;               // columns of the distribution, and the value if the module computes it
  std::vector<InputPart> parts;  // of the input, at least one
  int agents = 1;                // rows of output for one row of a part per replica
};

// The settings of a registered network; in YAML they are in the section of the model.
class NetworkSettings {
 public:
  virtual ~NetworkSettings() = default;
  virtual const char* name() const = 0;
  virtual std::unique_ptr<NetworkSettings> copy() const = 0;
  virtual void describe(Fields& field) = 0;
  // Takes the settings that a network of another type has in common with this one.
  virtual void take(const NetworkSettings&) {}
  // Size of the state that a row carries from one step to the next; 0: a row depends only on its observation.
  virtual int state_size() const = 0;
  // Whether make() creates it; otherwise it is one of the library's own.
  virtual bool is_module() const { return true; }
  // Creates a module with parameters drawn from torch's default generator.
  virtual std::shared_ptr<Module> make(const ModuleShape& shape) const = 0;
};

// Throws UsageError if the name is taken. Not thread-safe: call it before main() or at its start.
void register_network(std::unique_ptr<NetworkSettings> defaults);
// "fully_connected", then the registered names in order of registration.
std::vector<std::string> network_names();
// A copy of the defaults; null for "fully_connected". Throws UsageError for an unknown name.
std::unique_ptr<NetworkSettings> network_settings(const std::string& name);

// Settings of a registered network, as a copyable value; empty for fully_connected.
class NetworkChoice {
 public:
  NetworkChoice() = default;
  NetworkChoice(std::unique_ptr<NetworkSettings> settings) : settings_(std::move(settings)) {}  // implicit
  NetworkChoice(const NetworkChoice& other)
      : settings_(other.settings_ ? other.settings_->copy() : nullptr) {}
  NetworkChoice(NetworkChoice&&) noexcept = default;
  NetworkChoice& operator=(const NetworkChoice& other) {
    settings_ = other.settings_ ? other.settings_->copy() : nullptr;
    return *this;
  }
  NetworkChoice& operator=(NetworkChoice&&) noexcept = default;
  ~NetworkChoice() = default;

  explicit operator bool() const { return settings_ != nullptr; }
  NetworkSettings* operator->() const { return settings_.get(); }
  // Whether both describe the same fields with the same values.
  bool operator==(const NetworkChoice& other) const;

 private:
  std::unique_ptr<NetworkSettings> settings_;
};

}  // namespace wd
