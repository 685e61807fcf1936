// torch_test.cpp: torch's operations on the emulated GPU, which algorithms of a program's own may use.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace wd {
namespace {

// Indices are a list of tensors of which some may be missing.
TEST(TorchOnTheEmulatedGpu, IndexesWithTensors) {
  const at::Tensor host = at::arange(24).view({2, 3, 4}), rows = at::tensor({1, 0, 1}),
                   columns = at::tensor({2, 2, 0});
  const auto gpu = [](const at::Tensor& x) { return x.to(at::kPrivateUse1); };
  EXPECT_TRUE(at::equal(gpu(host).index({gpu(rows), gpu(columns)}).cpu(), host.index({rows, columns})));
  EXPECT_TRUE(at::equal(gpu(host).index({at::indexing::Slice(), gpu(columns)}).cpu(),
                        host.index({at::indexing::Slice(), columns})));
}

}  // namespace
}  // namespace wd
