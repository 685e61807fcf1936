// module.h: networks of your own: any torch::nn::Module, trained through LibTorch's autograd, by a name that
// YAML can use.
//
//   struct Mine : wd::Module {
//     struct Settings {
//       int width = 64;
//       void describe(wd::Fields& field) { field("width", width, {1, 4096}, "of the hidden layer"); }
//     };
//     Mine(const Settings& settings, const wd::ModuleShape& shape)
//         : hidden(register_module("hidden", torch::nn::Linear(shape.inputs, settings.width))),
//           head(register_module("head", torch::nn::Linear(settings.width, shape.outputs))) {}
//     at::Tensor forward(const at::Tensor& observation) override {
//       return head(torch::tanh(hidden(observation)));
//     }
//     torch::nn::Linear hidden, head;
//   };
//   WD_REGISTER_MODULE(Mine, "mine");
//
// and in YAML:  policy: {tagger: {model: {type: mine, width: 128}}}
//
// A module that remembers declares `int state_size() const` in its Settings, and overrides step() in place of
// forward() (src/nets/gru.cpp is one).
#pragma once

#include <torch/nn/module.h>

#include <memory>
#include <utility>

#include "wd/networks.h"

namespace wd {

// The module's parameters are float32. It has no buffers (torch::nn::Module::register_buffer), whose updates
// would depend on the order of blocks, and its forward() draws no random numbers.
class Module : public torch::nn::Module {
 public:
  struct Step {
    at::Tensor output;  // as forward() returns it
    at::Tensor state;   // [n, state_size] float32: for the next step
  };

  // observation [n, inputs] float32. Returns [n, outputs] float32: what the policy's distribution needs
  // (logits of all heads, or means), then the value, unless model.separate_value gives the value a module of
  // its own. The rows are independent of one another. Called from several threads at a time.
  virtual at::Tensor forward(const at::Tensor& observation);
  // The same of one step of a module with a state, [n, state_size] float32: 0 where an episode begins. The
  // gradient reaches back over model.sequence_length steps.
  virtual Step step(const at::Tensor& observation, const at::Tensor& state);
};

namespace detail {

template <typename M>
class ModuleSettings final : public NetworkSettings {
 public:
  explicit ModuleSettings(const char* name) : name_(name) {}
  const char* name() const override { return name_; }
  std::unique_ptr<NetworkSettings> copy() const override { return std::make_unique<ModuleSettings>(*this); }
  void describe(Fields& field) override { settings_.describe(field); }
  int state_size() const override {
    if constexpr (requires { settings_.state_size(); }) return settings_.state_size();
    return 0;
  }
  std::shared_ptr<Module> make(const ModuleShape& shape) const override {
    return std::make_shared<M>(settings_, shape);
  }

 private:
  const char* name_;
  typename M::Settings settings_;
};

}  // namespace detail

// Makes a module known under a name. Throws UsageError if the name is taken.
template <typename M>
void register_module_type(const char* name) {
  register_network(std::make_unique<detail::ModuleSettings<M>>(name));
}

}  // namespace wd

// At namespace scope of one source file.
#define WD_REGISTER_MODULE(type, name) \
  static const bool wd_registered_##type = (::wd::register_module_type<type>(name), true)
