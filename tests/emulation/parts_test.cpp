// parts_test.cpp: networks with several input parts on the emulated GPU, in all precisions.
#include "tests/nets/parts.h"

#include "wd/emulator/emulation.h"
#include "wd/model.h"

namespace wd {
namespace {

TEST(Parts, HaveTheOutputsAndGradientsOfTorchOnTheEmulatedGpu) {
  const Device gpu{DeviceKind::kCuda, 0};
  for (const PartsCase& c : parts_cases())
    for (const Precision precision : {kFp32, kTf32, kBf16}) {
      SCOPED_TRACE(precision);
      expect_parts_as_torch(c, precision, gpu);
    }
}

// Gradients of a perceptron after a forward pass whose sums are exact in every order. of_input: and that of its
// input.
at::Tensor gradients_with(std::size_t shared_memory, const std::vector<int>& hidden, bool of_input = false) {
  const std::size_t before = emulation::opt_in_shared();
  emulation::set_opt_in_shared(shared_memory);
  PartsNetwork with({"", {{"observation", 7}}, hidden, kRelu}, kBf16, {DeviceKind::kCuda, 0});
  constexpr std::int64_t kRows = 700;
  const auto eighths = [](const at::Tensor& x) { x.mul_(8).round_().div_(8); };
  eighths(with.parameters);
  with.shadow.copy_(with.parameters);
  with.network->parameters_changed();
  const auto generator = at::make_generator<at::CPUGeneratorImpl>(std::uint64_t{3});
  const auto draw = [&](std::int64_t columns) {
    return at::randn({kRows, columns}, generator, at::TensorOptions().dtype(at::kFloat));
  };
  at::Tensor seen = draw(8), grad = draw(kPartsOutputs);
  seen.narrow(1, 7, 1).zero_();
  eighths(seen);
  NetworkInput input;
  const at::Device place = with.parameters.device();
  input.parts[0] = seen.to(at::kBFloat16).to(place).narrow(1, 0, 7);
  const auto workspace = with.network->make_workspace(kRows, true);
  const auto gradient = with.network->make_gradient(with.gradients);
  with.network->forward(input, *workspace);
  const at::Tensor output_grad = make_output(kRows, kPartsOutputs, with.parameters.options());
  output_grad.copy_(grad);
  std::vector<at::Tensor> part_grads;
  if (of_input) part_grads.push_back(make_output(kRows, 7, with.parameters.options()));
  with.network->backward(input, output_grad, *workspace, gradient.get(), part_grads);
  const Reference expected(with.c, with.shape.bind(with.parameters.cpu()), {input.parts[0]}, output_grad);
  const std::vector<at::Tensor> found = tensors_of(with.shape.bind(with.gradients.cpu()));
  // A third layer has other signs where the second one is rounded.
  for (std::size_t k = 0; k < found.size() && hidden.size() == 2; ++k)
    expect_close(found[k], expected.layers[k], 0.02, concat("parameter ", k));
  emulation::set_opt_in_shared(before);
  return with.gradients.cpu();
}

TEST(Parts, GradientsDoNotDependOnTheSharedMemoryOfADevice) {
  for (const std::vector<int>& hidden : {std::vector{64, 64}, {19, 128, 128}, {256, 256}}) {
    SCOPED_TRACE(hidden.back());
    const std::size_t chain = ChainShape::shared_bytes(hidden.back());
    EXPECT_TRUE(at::equal(gradients_with(chain, hidden), gradients_with(chain - 1, hidden)));
  }
}

TEST(Parts, OneKernelHasTheGradientsOfLayersOneByOne) {
  constexpr std::size_t kEnough = PerceptronShape::kSharedBytes;
  const at::Tensor whole = gradients_with(kEnough, {64, 64}), layers = gradients_with(kEnough - 1, {64, 64});
  EXPECT_LT((whole - layers).abs().max().item<float>(), 1e-5f * layers.abs().max().item<float>());
  EXPECT_TRUE(at::equal(gradients_with(kEnough, {64, 64}, true), layers));
}

TEST(Parts, ATargetFollowsOnTheEmulatedGpu) {
  const auto model_on = [](Device device) {
    Model model({network_maker({}, {}, {{"action", 3}}, 2, device, kFp32)}, 0, device, kFp32);
    model.initialize(kOrthogonal, 1.0, 4);
    Model target = model.like();
    model.initialize(kOrthogonal, 1.0, 5);
    target.follow(model, 0.25f);
    return target.parameters().cpu().clone();
  };
  EXPECT_TRUE(at::equal(model_on({}), model_on({DeviceKind::kCuda, 0})));
}

}  // namespace
}  // namespace wd
