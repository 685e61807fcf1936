// blocks_test.cpp: how rows are divided into the blocks that lanes work through.
#include "wd/detail/blocks.h"

#include <gtest/gtest.h>

namespace wd {
namespace {

TEST(Blocks, CutInferenceOnAGpuIntoPiecesOfAMillionRows) {
  constexpr std::int64_t kPiece = std::int64_t{1} << 20;
  struct Case {
    std::int64_t rows, unit, block;
  };
  for (const auto& [rows, unit, block] :
       {Case{1, 1, 1}, Case{5000, 1, 5000}, Case{kPiece, 1, kPiece}, Case{kPiece + 1, 1, kPiece},
        Case{10'000'000, 1, kPiece}, Case{105 * 20'000, 105, kPiece / 105 * 105}}) {
    const Blocks blocks = Blocks::of_inference(rows, true, unit);
    EXPECT_EQ(blocks.lanes, 1) << rows;
    EXPECT_EQ(blocks.block, block) << rows;
    std::int64_t next = 0;
    blocks.each([&](std::int64_t lane, std::int64_t begin, std::int64_t end) {
      EXPECT_EQ(lane, 0);
      EXPECT_EQ(begin, next);
      EXPECT_LE(end - begin, kPiece);
      EXPECT_EQ(begin % unit, 0);
      next = end;
    });
    EXPECT_EQ(next, rows);
  }
}

TEST(Blocks, OfInferenceAreSmallOnTheCpu) {
  const Blocks blocks = Blocks::of_inference(100'000, false, 1);
  EXPECT_LE(blocks.block, kMaxBlock);
  EXPECT_EQ(blocks.lanes, kMaxLanes);
}

}  // namespace
}  // namespace wd
