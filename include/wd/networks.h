// networks.h: the types of networks that a model can have, by name, and the settings of each.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "wd/params.h"

namespace wd {

class Module;  // wd/module.h

// What a module is made for.
struct ModuleShape {
  int inputs = 0;   // entries of an observation
  int outputs = 0;  // columns of the distribution, and the value if the module computes it
};

// The settings of a registered network; they stand in the model's section of YAML.
class NetworkSettings {
 public:
  virtual ~NetworkSettings() = default;
  virtual const char* name() const = 0;
  virtual std::unique_ptr<NetworkSettings> copy() const = 0;
  virtual void describe(Fields& field) = 0;
  // Numbers that a row carries from one step to the next; 0: a row depends on its observation alone.
  virtual int state_size() const = 0;
  // With parameters drawn from torch's default generator.
  virtual std::shared_ptr<Module> make(const ModuleShape& shape) const = 0;
};

// Throws UsageError if the name is taken. Not thread-safe: call it before main() or at its beginning.
void register_network(std::unique_ptr<NetworkSettings> defaults);
// "fully_connected", then the registered ones in their order.
std::vector<std::string> network_names();
// A copy of the defaults; null for "fully_connected". Throws UsageError for a name that is none.
std::unique_ptr<NetworkSettings> network_settings(const std::string& name);

// Settings of a registered network as a value; empty for fully_connected.
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

 private:
  std::unique_ptr<NetworkSettings> settings_;
};

}  // namespace wd
