// gather_test.cpp: each row is the one at its index, and nothing is written past the last row.
#include <gtest/gtest.h>

#include "tests/kernels/gather_data.h"
#include "tests/kernels/memory.h"
#include "wd/error.h"

namespace wd {
namespace {

TEST(Gather, RowsOfEveryWidthByIndex) {
  for (const int rows : {0, 1, 5, 40000}) {
    constexpr std::int64_t kSource = 1000;
    const std::vector<std::int64_t> index = gather_index(kSource, rows);
    const std::vector<std::uint8_t> all = run_gather(HostMemory(), kSource, index);
    std::size_t at = 0;
    for (const std::int64_t bytes : kGatheredBytes) {
      for (const std::int64_t row : index)
        for (std::int64_t b = 0; b < bytes; ++b)
          ASSERT_EQ(all[at++], (31 * row + b) % 251) << bytes << ' ' << row;
      ASSERT_EQ(all[at++], 0xff) << "beyond the last row of " << bytes << " bytes";
    }
  }
}

TEST(Gather, AsManyArraysAsThereIsRoomFor) {
  GatherArgs args;
  std::uint8_t byte = 0;
  for (int k = 0; k < kMaxGathered; ++k) args.add(&byte, &byte, 1);
  EXPECT_THROW(args.add(&byte, &byte, 1), std::runtime_error);
}

}  // namespace
}  // namespace wd
