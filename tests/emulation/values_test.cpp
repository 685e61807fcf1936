// values_test.cpp: networks of values of choices, computed in parts or one by one, on the emulated GPU, in
// all precisions.
#include "tests/nets/values.h"

namespace wd {
namespace {

TEST(Values, HaveTheOutputsAndGradientsOfTorch) {
  for (const ValuesCase& c : values_cases())
    for (const Precision precision : {kFp32, kTf32, kBf16})
      expect_values_as_torch(c, precision, {DeviceKind::kCuda, 0});
}

TEST(PerChoice, HaveTheOutputsAndGradientsOfTorch) {
  for (const ValuesCase& c : per_choice_cases())
    for (const Precision precision : {kFp32, kTf32, kBf16})
      expect_values_as_torch(c, precision, {DeviceKind::kCuda, 0});
}

}  // namespace
}  // namespace wd
