// parts_test.cpp: networks with several input parts on the emulated GPU, in all precisions.
#include "tests/nets/parts.h"

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
