// shared_memory_test.cpp: the all-reduce of ranks on one machine has the bits of Gloo's, and the same errors.
#include "src/distributed/shared_memory.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/mman.h>

#include <chrono>
#include <cmath>
#include <cstring>
#include <random>

#include "tests/distributed/ranks.h"
#include "wd/error.h"

namespace wd {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Results of rank 0, which this process can read.
class Results {
 public:
  static constexpr std::size_t kBytes = std::size_t{256} << 20;
  Results()
      : bytes_(static_cast<std::byte*>(
            ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {}
  ~Results() { ::munmap(bytes_, kBytes); }
  Results(const Results&) = delete;
  Results& operator=(const Results&) = delete;

  void add(const at::Tensor& tensor) {
    ASSERT_LE(used_ + tensor.nbytes(), kBytes);
    std::memcpy(bytes_ + used_, tensor.const_data_ptr(), tensor.nbytes());
    used_ += tensor.nbytes();
  }
  bool operator==(const Results& other) const { return std::memcmp(bytes_, other.bytes_, kBytes) == 0; }
  bool empty() const { return bytes_[0] == std::byte{}; }

 private:
  std::byte* bytes_;
  std::size_t used_ = 0;
};

at::Tensor numbers(std::int64_t size, at::ScalarType type, int rank) {
  std::mt19937_64 random(static_cast<std::uint64_t>(1000 * size + rank));
  at::Tensor tensor = at::empty({size}, at::kDouble);
  for (std::int64_t k = 0; k < size; ++k)
    tensor.mutable_data_ptr<double>()[k] = std::ldexp(static_cast<double>(random()) - 0x1p63, -40);
  return tensor.to(type);
}

// Sums of three numbers depend on their order. The longest has more than two of Gloo's segments per rank.
void reduce_all(int ranks, bool one_machine, Results& results) {
  const auto codes = exit_codes_of_ranks(
      ranks,
      [&](const ProcessGroup& group) {
        for (const at::ScalarType type : {at::kFloat, at::kDouble, at::kLong}) {
          for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kMax, ReduceOp::kMin}) {
            const bool is_long = type == at::kFloat && op == ReduceOp::kSum;
            for (const std::int64_t size : {1, 2, 7, 64, 1001, 20'001, is_long ? 4'000'003 : 3}) {
              const at::Tensor tensor = numbers(size, type, group.rank());
              group.all_reduce(tensor, op);
              if (group.leads()) results.add(tensor);
            }
          }
        }
      },
      {}, {}, {.one_machine = one_machine});
  EXPECT_EQ(codes, std::vector<int>(static_cast<std::size_t>(ranks), 0));
}

class SharedMemoryOf : public testing::TestWithParam<int> {};

TEST_P(SharedMemoryOf, HasTheBitsOfGloo) {
  Results shared, gloo;
  reduce_all(GetParam(), true, shared);
  reduce_all(GetParam(), false, gloo);
  EXPECT_FALSE(shared.empty());
  EXPECT_TRUE(shared == gloo);
}

// More operations are under way than there are places for, and they are ended in another order.
TEST_P(SharedMemoryOf, KeepsOperationsApart) {
  on_ranks(GetParam(), [](const ProcessGroup& group) {
    const int N = group.size();
    for (int round = 0; round < 50; ++round) {
      std::vector<at::Tensor> tensors;
      std::vector<std::function<void()>> ends;
      for (int k = 0; k < 7; ++k) {
        tensors.push_back(at::full({1 + 100 * k}, 10 * k + group.rank() + round, at::kLong));
        ends.push_back(group.begin_all_reduce(tensors.back()));
      }
      if ((round + group.rank()) % 3 == 0) ::usleep(300);
      for (const int k : {3, 0, 6, 5, 1, 2, 4}) {
        ends[static_cast<std::size_t>(k)]();
        EXPECT_EQ(tensors[static_cast<std::size_t>(k)].min().item<int>(),
                  N * (10 * k + round) + N * (N - 1) / 2);
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, SharedMemoryOf, testing::Values(2, 3, 4), testing::PrintToStringParamName());

using Clock = std::chrono::steady_clock;

// Returns the error that a rank gets from an all-reduce, and how long that takes.
std::pair<std::string, double> error_of_all_reduce(const ProcessGroup& group) {
  const Clock::time_point start = Clock::now();
  std::string text;
  try {
    group.all_reduce(at::zeros({4}));
  } catch (const PeerError& error) {
    text = error.what();
  }
  return {text, std::chrono::duration<double>(Clock::now() - start).count()};
}

TEST(SharedMemory, ARankThatIsKilledIsNamedAtOnce) {
  const auto codes = exit_codes_of_ranks(3, [](const ProcessGroup& group) {
    group.all_reduce(at::zeros({4}));
    if (group.rank() == 1) ::raise(SIGKILL);
    const auto [text, seconds] = error_of_all_reduce(group);
    EXPECT_THAT(text, HasSubstr("another rank does not answer: rank 1 has ended"));
    EXPECT_LT(seconds, 5.0);
  });
  EXPECT_THAT(codes, ElementsAre(0, 128 + SIGKILL, 0));
}

TEST(SharedMemory, ARankThatHangsIsNamedAfterTheTimeout) {
  const auto codes = exit_codes_of_ranks(
      2,
      [](const ProcessGroup& group) {
        group.all_reduce(at::zeros({4}));
        if (group.rank() == 1) {
          ::sleep(4);
          return;
        }
        const auto [text, seconds] = error_of_all_reduce(group);
        EXPECT_THAT(text, HasSubstr("another rank does not answer: rank 1 did not arrive within 1 s"));
        EXPECT_GE(seconds, 1.0);
        EXPECT_LT(seconds, 3.5);
      },
      {}, {}, {.timeout_s = 1.0});
  EXPECT_THAT(codes, ElementsAre(0, 0));
}

// The others have what they need of a rank that has ended in good order.
TEST(SharedMemory, ARankMayEndBeforeTheOthersHaveRead) {
  on_ranks(3, [](const ProcessGroup& group) {
    const at::Tensor tensor = at::full({4}, group.rank(), at::kLong);
    const std::function<void()> end = group.begin_all_reduce(tensor);
    if (group.rank() == 2) return;
    ::usleep(300'000);
    end();
    EXPECT_EQ(tensor[3].item<int>(), 3);
  });
}

}  // namespace
}  // namespace wd
