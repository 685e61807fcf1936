// network.h: a parameterized function of observations: the interface between a policy and the networks that
// compute its outputs.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "wd/config.h"
#include "wd/trajectory.h"

namespace wd {

// A linear layer: weight [out, in] and bias [out], views of a flat tensor; and, if its sums are normalized,
// scale and shift [out] (kernels/layer_norm.h).
struct Layer {
  at::Tensor weight, bias;
  at::Tensor scale, shift;
  std::vector<at::Tensor>
      further;  // the weights [out, size] of input parts behind the first, in a first layer
};
// Draws the first weights of a layer, for all its inputs, on the CPU with the same bits on every processor.
// `gain` multiplies orthogonal weights; `number` tells layers apart that are drawn with one seed.
void initialize_layer(const Layer& layer, InitMethod method, double gain, std::uint64_t seed, int number);

// The input of a network for some rows.
struct NetworkInput {
  // The observation, streams, agent ids and an action.
  static constexpr std::size_t kMaxParts = 3 + kMaxStreams;
  // In the order of the network's parts: [n, size]; or for a part per replica [n / agents, size] and for a
  // part per slot [agents, size], since the n rows are then those of all agents of some replicas. The
  // observation is float32 or bfloat16, or tables that describe n rows; the other parts are float32, or
  // uint8 streams, which modules read.
  std::array<at::Tensor, kMaxParts> parts;
  // For a network that carries a state. The rows are c sequences, with all rows of a step before those of the
  // next step.
  at::Tensor state;      // [c, state_size] before the first step
  at::Tensor restarted;  // [n] uint8: the state is 0 before this row, with which the agent begins
  // Output, [c, state_size]: the state after the last step; undefined: not wanted.
  at::Tensor next_state = {};
  // [n, feature_size()]: where the network finds the features of the rows, or writes them if they are not
  // known yet; undefined: it keeps them in working memory.
  at::Tensor features = {};
  bool knows_features = false;
};

// One network. Its parameters are a section of a flat tensor that the policy owns, and so are their
// gradients. forward() and backward() may run in several threads at a time, each with its own workspace and
// gradient. They enqueue on CUDA.
class Network {
 public:
  // Activations of up to a fixed number of rows, and working memory. Allocated once and reused.
  struct Workspace {
    at::Tensor output;  // [rows, outputs] float32

    virtual ~Workspace() = default;
    // Views of the activations of rows [first, first + n), with the working memory of `scratch`.
    virtual std::unique_ptr<Workspace> view(std::int64_t first, std::int64_t n,
                                            const Workspace& scratch) const = 0;
  };
  // Where backward() sums gradients: `flat` [num_parameters()] holds those of the parameters. If `derived` is
  // defined, it holds those of other numbers, from which finish_gradient() computes the missing ones.
  struct Gradient {
    at::Tensor flat, derived;
    // Of a network that overwrites(): the next backward() replaces `flat`, and clears this.
    bool is_old = false;

    virtual ~Gradient() = default;
  };

  virtual ~Network() = default;

  virtual int outputs() const = 0;
  // Numbers of state that a row carries from one step to the next.
  virtual int state_size() const { return 0; }
  // Number of floats of all parameters. Each tensor starts at a multiple of 16 bytes, and in bf16 so does its
  // shadow; padding stays 0.
  virtual std::int64_t num_parameters() const = 0;
  // Fills `flat` [num_parameters()], which may be on a different device than the network. `gain` is for the
  // output layer.
  virtual void initialize(const at::Tensor& flat, InitMethod method, double gain,
                          std::uint64_t seed) const = 0;
  // The output layer, whose rows are the outputs, as views of `flat` [num_parameters()]; its weight is
  // undefined if there is no such layer.
  virtual Layer output_layer(const at::Tensor& flat) const;
  // Makes these the parameters, [num_parameters()]; shadow: the same in bfloat16, or undefined.
  virtual void bind(const at::Tensor& parameters, const at::Tensor& shadow) = 0;
  // Call this after the bound tensors have changed. Enqueues.
  virtual void parameters_changed() {}
  // Views of the bound parameters under readable names: all tensors except the output layer's.
  virtual std::vector<NamedTensor> hidden_parameters() const = 0;
  // The bound output layer, if hidden_parameters() leaves it out; otherwise nullptr.
  virtual const Layer* head() const { return nullptr; }
  // Numbers of a row that the network computes from the observation alone, without parameters; 0: none that
  // could be kept.
  virtual int feature_size() const { return 0; }
  virtual at::ScalarType feature_type() const { return at::kFloat; }
  // Width of the last hidden layer, whose activations latent() returns; 0: there is none.
  virtual int latent_size() const { return 0; }
  // The activations of the last hidden layer, [rows, latent_size()] float32 or bfloat16, that the last
  // forward() of this workspace computed: a view of the workspace.
  virtual at::Tensor latent(const Workspace& workspace) const;
  // The activations of all hidden layers of a fully connected network, [rows, width] float32 or bfloat16,
  // that the last forward() of this workspace computed: views of the workspace. Others show none.
  virtual std::vector<at::Tensor> hidden(const Workspace& workspace) const;
  // The gates of a network with memory, [rows, n] float32 in 0 .. 1, that say what is remembered, as the last
  // forward() of this workspace computed them: a view of the workspace. Undefined: others show none.
  virtual at::Tensor gates(const Workspace& workspace) const;

  virtual std::unique_ptr<Workspace> make_workspace(std::int64_t rows, bool with_gradients) const = 0;
  virtual std::unique_ptr<Gradient> make_gradient(const at::Tensor& flat) const = 0;
  // Computes workspace.output for these rows.
  virtual void forward(const NetworkInput& input, Workspace& workspace) const = 0;
  // Adds to the gradient of the parameters, unless `gradient` is null. `output_grad` [n, outputs] is the
  // gradient of the output and may be overwritten. For parts of the input whose `part_grads` are defined,
  // [rows of the part or more, size] float32, writes the gradient of the part there; there is none of tables.
  // Call it after forward() of the same rows in the same workspace.
  virtual void backward(const NetworkInput& input, const at::Tensor& output_grad, Workspace& workspace,
                        Gradient* gradient, std::span<const at::Tensor> part_grads = {}) const = 0;
  // Whether a number of the rows of the first part that is not finite makes the gradient of a parameter that
  // backward() computes from them not finite.
  virtual bool shows_not_finite() const { return false; }
  // Whether backward() obeys Gradient::is_old, so that nobody has to clear gradients before it.
  virtual bool overwrites() const { return false; }
  // Returns a network that computes `count` networks of this kind for the same input at a time: its
  // parameters are theirs, one after another; its outputs and their gradients are [count, rows, outputs], and
  // gradients of parts [count, rows, size]. Returns null if that would not be faster.
  virtual std::unique_ptr<Network> several(int count) const;
  // Completes `flat` from `derived`, which is overwritten.
  virtual void finish_gradient(const at::Tensor& derived, const at::Tensor& flat) const;

  // Floating-point operations of the matrix products for all agents of one replica in one step.
  virtual double forward_flop() const = 0;
  virtual double backward_flop() const = 0;
  // Floats of activations that forward() keeps for backward(), per row.
  virtual std::int64_t activation_size() const = 0;
};

using MakeNetwork = std::function<std::unique_ptr<Network>()>;

// Returns what creates networks of the kind that a policy's settings name, with other inputs and outputs than
// the policy's own. Only the first part may be the observation, of the policy's size. `input_norm` [columns,
// 2] float32 {mean, deviation}: what the network reads of observations is in these units; undefined: plain.
// Throws UsageError if there are more parts than NetworkInput::kMaxParts.
MakeNetwork network_maker(const PolicyLayout& layout, const ModelSettings& model,
                          std::vector<InputPart> parts, int outputs, Device device, Precision precision,
                          const at::Tensor& input_norm = {});

// The parts of an input with these names (model.reads): the observation, then streams, then agent ids. Throws
// UsageError if there is no such part.
std::vector<InputPart> input_parts(const PolicyLayout& layout,
                                   const std::vector<std::string>& names = {InputPart::kObservation});

// Creates the networks of a policy: the actor, whose outputs are the parameters of its distribution, and the
// value if there is no critic, or the values of all choices; then the critic, with model.separate_value; or
// the network of the mixer, which reads what model.critic_reads names.
std::vector<MakeNetwork> make_networks(const PolicyLayout& layout, const ModelSettings& model,
                                       PolicyOutput output, Device device, Precision precision,
                                       const at::Tensor& input_norm = {}, const Mixer& mixer = {});

// Creates the critics of a policy. Their input is what model.critic_reads names and, of continuous actions,
// "action".
std::vector<MakeNetwork> make_critics(const PolicyLayout& layout, const ModelSettings& model,
                                      const CriticShape& shape, Device device, Precision precision,
                                      const at::Tensor& input_norm = {});

// Returns zeros [rows, columns] float32 for the outputs of a network, or for their gradient. On a GPU, rows
// begin 16 bytes apart or a multiple of it, because cuBLASLt's faster kernels need that.
at::Tensor make_output(std::int64_t rows, std::int64_t columns, const at::TensorOptions& options);

}  // namespace wd
