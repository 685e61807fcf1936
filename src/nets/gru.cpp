// gru.cpp: a recurrent network: gated recurrent units (Cho et al. 2014) between linear layers.
#include <ATen/ATen.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/rnn.h>

#include "wd/module.h"

namespace wd {
namespace {

struct Gru : Module {
  struct Settings {
    int width = 64;
    int state_size() const { return width; }
    void describe(Fields& field) {
      field("width", width, {1, 4096}, "width of the layer before the recurrent one, and of its state");
    }
  };

  Gru(const Settings& settings, const ModuleShape& shape)
      : parts(shape.parts),
        input(register_module("input", torch::nn::Linear(numbers_of(shape), settings.width))),
        cell(register_module("cell", torch::nn::GRUCell(settings.width, settings.width))),
        head(register_module("head", torch::nn::Linear(settings.width, shape.outputs))) {}

  // All parts of the input, side by side.
  Step step(const ModuleInput& rows, const at::Tensor& state) override {
    if (parts.size() == 1) return step(rows.observation(), state);
    std::vector<at::Tensor> all;
    for (const InputPart& part : parts) all.push_back(rows[part.name]);
    return step(at::cat(all, 1), state);
  }
  Step step(const at::Tensor& observation, const at::Tensor& state) override {
    const at::Tensor next = cell(at::tanh(input(observation)), state);
    return {head(next), next};
  }
  OutputLayer output_layer() override { return {head->weight, head->bias}; }

  static int numbers_of(const ModuleShape& shape) {
    int numbers = 0;
    for (const InputPart& part : shape.parts) numbers += part.size;
    return numbers;
  }

  std::vector<InputPart> parts;
  torch::nn::Linear input;
  torch::nn::GRUCell cell;
  torch::nn::Linear head;
};
WD_REGISTER_MODULE(Gru, "gru");

}  // namespace
}  // namespace wd
