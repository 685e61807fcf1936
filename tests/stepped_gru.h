// stepped_gru.h: a module of a user's own with a state: torch's GRUCell between linear layers, which is what the
// type gru computes.
#pragma once

#include <ATen/ATen.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/rnn.h>

#include "wd/module.h"

namespace wd {

struct SteppedGru : Module {
  struct Settings {
    int width = 64;
    int state_size() const { return width; }
    void describe(Fields& field) { field("width", width, {1, 4096}, "of the state"); }
  };
  SteppedGru(const Settings& settings, const ModuleShape& shape)
      : input(register_module("input", torch::nn::Linear(shape.inputs, settings.width))),
        cell(register_module("cell", torch::nn::GRUCell(settings.width, settings.width))),
        head(register_module("head", torch::nn::Linear(settings.width, shape.outputs))) {}
  Step step(const at::Tensor& observation, const at::Tensor& state) override {
    const at::Tensor next = cell(at::tanh(input(observation)), state);
    return {head(next), next};
  }
  OutputLayer output_layer() override { return {head->weight, head->bias}; }

  torch::nn::Linear input;
  torch::nn::GRUCell cell;
  torch::nn::Linear head;
};
// Once, in however many files this is.
inline const bool stepped_gru_is_registered = (register_module_type<SteppedGru>("stepped_gru"), true);

}  // namespace wd
