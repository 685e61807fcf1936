// process_group_test.cpp: every operation, on one rank and on several.
#include "wd/process_group.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include "tests/distributed/ranks.h"
#include "wd/error.h"

namespace wd {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class Group : public testing::TestWithParam<int> {};

TEST_P(Group, ReducesToTheSameEverywhere) {
  on_ranks(GetParam(), [](const ProcessGroup& group) {
    const int N = group.size();
    for (const at::ScalarType type : {at::kFloat, at::kDouble, at::kLong}) {
      const auto reduced = [&](ReduceOp op) {
        const at::Tensor tensor = at::full({3}, group.rank() + 1, type);
        group.all_reduce(tensor, op);
        return tensor[2].item<double>();
      };
      EXPECT_EQ(reduced(ReduceOp::kSum), N * (N + 1) / 2);
      EXPECT_EQ(reduced(ReduceOp::kMax), N);
      EXPECT_EQ(reduced(ReduceOp::kMin), 1);
    }
  });
}

TEST_P(Group, BroadcastsFromAnyRank) {
  on_ranks(GetParam(), [](const ProcessGroup& group) {
    for (int root = 0; root < group.size(); ++root) {
      const at::Tensor tensor = at::full({5}, group.rank(), at::kByte);
      group.broadcast(tensor, root);
      EXPECT_EQ(tensor[4].item<int>(), root);
    }
    EXPECT_EQ(group.broadcast(group.leads() ? "from the first" : "not this"), "from the first");
  });
}

TEST_P(Group, GathersRowsOfUnequalNumber) {
  on_ranks(GetParam(), [](const ProcessGroup& group) {
    const at::Tensor rows = at::full({group.rank(), 2}, group.rank(), at::kDouble);  // none on rank 0
    const at::Tensor all = group.all_gather_rows(rows);
    ASSERT_EQ(all.size(0), group.size() * (group.size() - 1) / 2);
    std::int64_t at = 0;
    for (int r = 0; r < group.size(); ++r)
      for (int k = 0; k < r; ++k) EXPECT_EQ(all[at++][1].item<double>(), r);
    EXPECT_EQ(group.all_gather_rows(at::empty({0, 3}, at::kFloat)).size(0), 0);
  });
}

TEST_P(Group, SharesOutWhatItGathered) {
  on_ranks(GetParam(), [](const ProcessGroup& group) {
    const at::Tensor own = at::arange(6, at::kInt).view({2, 3}) + 100 * group.rank();
    const at::Tensor all = group.gather_rows(own);
    EXPECT_EQ(all.defined(), group.leads());
    if (all.defined()) {
      EXPECT_EQ(all[2 * group.size() - 1][2].item<int>(), 100 * (group.size() - 1) + 5);
    }
    const at::Tensor back = at::zeros_like(own);
    group.scatter_rows(all, back);
    EXPECT_TRUE(at::equal(back, own));

    const at::Tensor halves = own.to(at::kBFloat16), all_halves = group.gather_rows(halves);
    if (group.leads()) {
      EXPECT_TRUE(at::equal(all_halves, all.to(at::kBFloat16)));
    }
    const at::Tensor halves_back = at::zeros_like(halves);
    group.scatter_rows(all_halves, halves_back);
    EXPECT_TRUE(at::equal(halves_back, halves));
  });
}

TEST_P(Group, GathersTexts) {
  on_ranks(GetParam(), [](const ProcessGroup& group) {
    const std::vector<std::string> texts =
        group.all_gather(std::string(static_cast<std::size_t>(group.rank()), 'x'));
    for (int r = 0; r < group.size(); ++r) EXPECT_EQ(texts[static_cast<std::size_t>(r)].size(), r);
  });
}

TEST_P(Group, CountsWithoutWaiting) {
  on_ranks(GetParam(), [](const ProcessGroup& group) {
    group.add("steps", 2);
    group.barrier();
    EXPECT_EQ(group.add("steps", 0), 2 * group.size());
    group.barrier();  // rank 0 keeps the counter: it must not leave before the others have read it
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, Group, testing::Values(1, 2, 3), testing::PrintToStringParamName());

TEST(ProcessGroup, AloneIsAGroupOfOne) {
  const ProcessGroup group;
  EXPECT_EQ(group.size(), 1);
  EXPECT_TRUE(group.leads());
  const at::Tensor tensor = at::full({1}, 7);
  group.all_reduce(tensor);
  EXPECT_EQ(tensor.item<int>(), 7);
  EXPECT_THAT(group.all_gather("me"), ElementsAre("me"));
  EXPECT_EQ(group.add("n", 3), 3);
  EXPECT_EQ(group.add("n", 0), 3);
}

TEST(ProcessGroup, ARankThatEndsIsNoticedAsAConsequence) {
  const auto codes = exit_codes_of_ranks(3, [](const ProcessGroup& group) {
    if (group.rank() == 1) ::_exit(9);
    const at::Tensor tensor = at::zeros({4});
    try {
      group.all_reduce(tensor);
      ADD_FAILURE() << "rank 1 was missed by nobody";
    } catch (const PeerError& error) {
      EXPECT_THAT(error.what(), HasSubstr("another rank does not answer"));
    }
  });
  EXPECT_THAT(codes, ElementsAre(0, 9, 0));
}

}  // namespace
}  // namespace wd
