// bfloat16_rows_test.cpp: on the CPU, every environment's bfloat16 rows equal the rounded float32 rows.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <bit>

#include "src/base/selective_fields.h"
#include "tests/rollout/played.h"
#include "wd/detail/bfloat16.h"

namespace wd {
namespace {

constexpr int kSteps = 40, kReplicas = 5;

TEST(Bfloat16, RoundsAsTorchDoes) {
  std::vector<std::uint32_t> bits = {0u,          0x80000000u, 0x3f808000u, 0x3f818000u, 0x3f808001u,
                                     0x7f7fffffu, 0x7f800000u, 0xff800000u, 0x00000001u, 0x00008000u,
                                     0x00018000u, 0x7fc00000u, 0x7f800001u};
  for (std::uint32_t i = 0; i < 200'000; ++i) bits.push_back(i * 2654435761u);
  for (const std::uint32_t b : bits) {
    const auto value = std::bit_cast<float>(b);
    const c10::BFloat16 torchs(value);
    ASSERT_EQ(to_bfloat16(value), torchs.x) << std::hex << b;
    ASSERT_EQ(std::bit_cast<std::uint32_t>(round_to_bfloat16(value)), std::uint32_t{torchs.x} << 16)
        << std::hex << b;
  }
}

// Turns use_full_observation off if the environment has it.
class Partial : public SelectiveFields {
 public:
  bool found = false;
  void operator()(const char* name, bool& value, const char*) override {
    if (std::string_view(name) != "use_full_observation") return;
    found = true;
    value = false;
  }
};

void expect_rounded_rows(const Environment& environment) {
  const Played exact(environment, kSteps, kReplicas, {}),
      rounded(environment, kSteps, kReplicas, {ObservationType::kBfloat16});
  EXPECT_TRUE(at::equal(exact.replicas.blocks(), rounded.replicas.blocks()));
  bool any_was_rounded = false;
  for (std::size_t p = 0; p < exact.trajectory.policies().size(); ++p) {
    const PolicyBuffers &a = exact.trajectory.policies()[p], &b = rounded.trajectory.policies()[p];
    ASSERT_EQ(b.observation.scalar_type(), at::kBFloat16);
    EXPECT_EQ(b.observation.size(3) % 8, 0);
    const auto size = a.observation_size;
    const at::Tensor expected = a.observation.narrow(3, 0, size).to(at::kBFloat16),
                     found = b.observation.narrow(3, 0, size).contiguous();
    EXPECT_TRUE(at::equal(expected.view(at::kByte), found.view(at::kByte))) << a.name;
    const auto padding = b.observation.size(3) - size;
    EXPECT_EQ(b.observation.narrow(3, size, padding).count_nonzero().item<std::int64_t>(), 0)
        << "padding of " << a.name;
    any_was_rounded =
        any_was_rounded || !at::equal(expected.to(at::kFloat), a.observation.narrow(3, 0, size));
  }
  // Whose rows are small whole numbers.
  const std::string_view name = environment.name();
  EXPECT_EQ(any_was_rounded, name != "foraging" && name != "t_maze")
      << "bfloat16 held every number: the test shows less than it says";
}

TEST(Bfloat16Rows, AreTheRoundedRowsOfEveryEnvironment) {
  int with_another_row = 0;
  for (const EnvironmentRow& row : detail::environment_table()) {
    SCOPED_TRACE(row.name);
    const std::unique_ptr<Environment> environment = make_environment(row);
    expect_rounded_rows(*environment);
    Partial partial;
    environment->describe(partial);
    if (!partial.found) continue;
    ++with_another_row;
    expect_rounded_rows(*environment);
  }
  EXPECT_EQ(with_another_row, 2) << "tag_gridworld and tag_continuous have partial observations";
}

}  // namespace
}  // namespace wd
