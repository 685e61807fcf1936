// entities_test.cpp: networks that read entities on the emulated GPU, in all precisions.
#include "tests/nets/entities.h"

#include "src/device/device.h"

namespace wd {
namespace {

// The features of the same rows on both devices have the same bits.
TEST(Entities, HaveTheSameFeaturesOnBothDevices) {
  const PolicyLayout layout = crowd_layout(true);
  const EntityShape shape = entity_shape(layout, entities_model({"", true, 3}));
  const auto features_on = [&](Device device) {
    const at::Device place = torch_device(device);
    const at::Tensor rows = crowd_rows(layout, 9).to(place);
    const auto options = rows.options();
    const at::Tensor features = at::zeros({9, shape.width()}, options),
                     found = at::zeros({9, shape.slots()}, options.dtype(at::kInt));
    EntitiesArgs args;
    args.shape = shape;
    args.source.floats = rows.const_data_ptr<float>();
    args.source.stride = rows.stride(0);
    args.rows = 9;
    args.features = {features.mutable_data_ptr<float>(), features.stride(0)};
    args.found = found.mutable_data_ptr<std::int32_t>();
    entities(current_queue(device), args);
    return std::pair(features.cpu().clone(), found.cpu().clone());
  };
  const auto cpu = features_on({}), gpu = features_on({DeviceKind::kCuda, 0});
  EXPECT_TRUE(at::equal(cpu.second, gpu.second)) << cpu.second << gpu.second;
  EXPECT_TRUE(at::equal(cpu.first, gpu.first)) << (cpu.first - gpu.first).abs().max();
}

TEST(Entities, HaveTheOutputsAndGradientsOfTorch) {
  for (const EntitiesCase& c : entities_cases())
    for (const Precision precision : {kFp32, kTf32, kBf16})
      expect_entities_as_torch(c, precision, {DeviceKind::kCuda, 0});
}

}  // namespace
}  // namespace wd
