// module.h: custom networks: any torch::nn::Module, trained with LibTorch's autograd and selected by its name
// in YAML.
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
// A module with a state declares `int state_size() const` in its Settings, and overrides step() instead of
// forward(). The types mingru, gru and lstm are many times as fast as a module that does the same.
//
// With model.reads: [observation, image] the input has a part for each stream of the environment that is
// named (StreamSpec in wd/spec.h), and one for agent_id; shape.parts has its shape too. A value or critic
// with model.critic_reads has other parts, of which the first takes the place of the observation:
//
//     at::Tensor forward(const wd::ModuleInput& input) override {
//       return head(torch::relu(convolution(input["image"].view({-1, 3, 8, 8}) / 255)).flatten(1));
//     }
//
// A network that an algorithm creates for itself may have an input of several parts, such as a critic of
// observations and actions. shape.parts names them with their sizes; override forward(const ModuleInput&):
//
//     at::Tensor forward(const wd::ModuleInput& input) override {
//       return head(torch::relu(hidden(torch::cat({input.observation(), input["action"]}, 1))));
//     }
#pragma once

#include <torch/nn/module.h>

#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "wd/detail/networks.h"

namespace wd {

// The input of a module for n rows, by the names of its parts.
class ModuleInput {
 public:
  // One tensor for each part of the shape, [n, size] float32; of a part per replica [n / shape.agents, size],
  // per slot [shape.agents, size]. Numbers of a uint8 stream are 0 to 255.
  ModuleInput(const ModuleShape& shape, std::vector<at::Tensor> parts);

  // The part of this name for all n rows, [n, size]; rows of a part per replica are repeated for each of its
  // agents, those of a part per slot for each replica. Throws UsageError if the input has no such part.
  at::Tensor operator[](std::string_view name) const;
  // As it is stored: [n / shape.agents, size] if the part is per replica, [shape.agents, size] per slot.
  const at::Tensor& stored(std::string_view name) const;
  // The first part, [n, shape.inputs].
  at::Tensor observation() const;

 private:
  std::size_t index(std::string_view name) const;
  at::Tensor rows(std::size_t part) const;

  const ModuleShape* shape_;
  std::vector<at::Tensor> parts_;
};

// The module's parameters must be float32. It must have no buffers (torch::nn::Module::register_buffer),
// whose updates would depend on the order of blocks, and its forward() must draw no random numbers.
class Module : public torch::nn::Module {
 public:
  struct Step {
    at::Tensor output;  // as returned by forward()
    at::Tensor state;   // [n, state_size] float32, for the next step
  };
  struct OutputLayer {
    at::Tensor weight, bias;
  };

  // Returns [n, outputs] float32: the input of the policy's distribution (logits of all heads, or means),
  // then the value, unless model.separate_value gives the value its own module; or what an algorithm asks of
  // a network of its own. Rows must be independent of one another. Called from several threads at the same
  // time. Unless it is overridden, calls the short form.
  virtual at::Tensor forward(const ModuleInput& input);
  // The short form, for inputs of one part: observation [n, inputs] float32.
  virtual at::Tensor forward(const at::Tensor& observation);
  // The same for one step of a module with a state, [n, state_size] float32, which is 0 at the start of an
  // episode. The gradient reaches back over model.sequence_length steps.
  virtual Step step(const ModuleInput& input, const at::Tensor& state);
  virtual Step step(const at::Tensor& observation, const at::Tensor& state);
  // Override this if a linear layer computes the outputs and is to start as that of fully_connected does:
  // with orthogonal weights of gain 0.01 for the choices, so that all start about equally probable, and 1 for
  // the value, and biases of 0. Returns weight [outputs, n] and bias [outputs], both parameters of the
  // module. All other parameters, and without this function the output layer too, start as the constructor
  // draws them.
  virtual OutputLayer output_layer() { return {}; }
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

// Registers a type of module under a name. Throws UsageError if the name is taken.
template <typename M>
void register_module_type(const char* name) {
  register_network(std::make_unique<detail::ModuleSettings<M>>(name));
}

}  // namespace wd

// At namespace scope of one source file.
#define WD_REGISTER_MODULE(type, name) \
  static const bool wd_registered_##type = (::wd::register_module_type<type>(name), true)
