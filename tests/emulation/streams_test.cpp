// streams_test.cpp: the streams, graphs and memory of the emulated GPU show the mistakes that a GPU hides or
// punishes.
#include "src/emulator/streams.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include <optional>

#include "src/device/graph.h"

namespace wd::emulation {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

class Streams : public testing::Test {
 protected:
  void SetUp() override { set_progress(Progress::kLazy); }
  void TearDown() override {
    set_progress(Progress::kImmediate);
    set_current_stream(0);
    stream(0).synchronize();
  }
  static at::Tensor on_gpu(double value) {
    return at::full({4}, value, at::TensorOptions().device(at::kPrivateUse1).dtype(at::kDouble));
  }

  Stream& a_ = stream(new_stream());
  Stream& b_ = stream(new_stream());
};

TEST_F(Streams, WorkWaitsForTheHostAndKeepsItsOrder) {
  std::vector<int> done;
  for (const int i : {1, 2, 3}) a_.enqueue([&done, i] { done.push_back(i); });
  b_.enqueue([&done] { done.push_back(4); });
  EXPECT_TRUE(done.empty());
  a_.synchronize();
  EXPECT_EQ(done, (std::vector{1, 2, 3}));  // not the other stream's
  b_.synchronize();
  EXPECT_EQ(done.size(), 4U);
}

TEST_F(Streams, AnEventOrdersTwoStreams) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    set_progress(Progress::kRandom, seed);
    std::vector<int> done;
    a_.enqueue([&done] { done.push_back(1); });
    Event event;
    event.record(a_);
    event.block(b_);
    b_.enqueue([&done] { done.push_back(2); });
    b_.synchronize();
    EXPECT_EQ(done, (std::vector{1, 2}));
  }
}

TEST_F(Streams, WithoutAnEventBothOrdersHappen) {
  bool first[2] = {};
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    set_progress(Progress::kRandom, seed);
    std::vector<int> done;
    a_.enqueue([&done] { done.push_back(0); });
    b_.enqueue([&done] { done.push_back(1); });
    a_.synchronize();
    b_.synchronize();
    first[done[0]] = true;
  }
  EXPECT_TRUE(first[0] && first[1]);
}

TEST_F(Streams, AFailureIsReportedToTheHostThatWaits) {
  Event event;
  a_.enqueue([] { throw std::runtime_error("the kernel failed"); });
  event.record(a_);
  event.block(b_);
  EXPECT_THAT([&] { b_.synchronize(); }, ThrowsMessage<std::runtime_error>(HasSubstr("the kernel failed")));
  EXPECT_NO_THROW(b_.synchronize());
}

TEST_F(Streams, PiecesOfAGraphRunInAnyOrderThatEventsAllow) {
  std::vector<int> done;
  a_.begin_capture();
  a_.enqueue([&done] { done.push_back(1); });
  Event forked, joined;
  forked.record(a_);
  forked.block(b_);
  a_.enqueue([&done] { done.push_back(2); });
  b_.enqueue([&done] { done.push_back(3); });
  joined.record(b_);
  joined.block(a_);
  a_.enqueue([&done] { done.push_back(4); });
  const auto graph = a_.end_capture();
  EXPECT_TRUE(done.empty());
  bool seen[5] = {};
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    set_progress(Progress::kRandom, seed);
    done.clear();
    replay(graph, a_);
    a_.synchronize();
    ASSERT_EQ(done.size(), 4U);
    EXPECT_EQ(done[0], 1);
    EXPECT_EQ(done[3], 4);
    seen[done[1]] = true;
  }
  EXPECT_TRUE(seen[2] && seen[3]);
}

TEST_F(Streams, AForkThatIsNotJoinedIsRefused) {
  a_.begin_capture();
  Event forked;
  forked.record(a_);
  forked.block(b_);
  b_.enqueue([] {});
  EXPECT_THAT([&] { a_.end_capture(); }, ThrowsMessage<std::runtime_error>(HasSubstr("unjoined work")));
  EXPECT_NO_THROW(b_.synchronize());  // neither stream captures any more
}

TEST_F(Streams, ACaptureRefusesWhatItCannotRepeat) {
  Event before;
  before.record(b_);
  a_.begin_capture();
  EXPECT_THAT([&] { a_.synchronize(); }, ThrowsMessage<std::runtime_error>(HasSubstr("the host waits")));
  EXPECT_THAT([&] { before.block(a_); }, ThrowsMessage<std::exception>(HasSubstr("uncaptured work")));
  EXPECT_THAT([&] { stream(0).enqueue([] {}); },
              ThrowsMessage<std::runtime_error>(HasSubstr("default stream")));
  a_.discard_capture();
  EXPECT_NO_THROW(a_.synchronize());
}

TEST_F(Streams, AReadThatDoesNotWaitSeesWhatWasThere) {
  const at::Tensor x = on_gpu(1.0);
  EXPECT_EQ(x.cpu()[0].item<double>(), 1.0);
  x.add_(1.0);
  EXPECT_EQ(*x.const_data_ptr<double>(), 1.0);  // a host that reads device memory without waiting
  EXPECT_EQ(x[0].item<double>(), 2.0);
}

TEST_F(Streams, AGraphWithTheAddressOfAFreedTensorComputesNaN) {
  const at::Tensor sum = on_gpu(0.0);
  std::optional<at::Tensor> term = on_gpu(1.0);
  Graph graph({DeviceKind::kCuda, 0}, true);
  for (int i = 0; i < 3; ++i) graph.run([&] { sum.add_(*term); });
  EXPECT_EQ(sum.cpu()[0].item<double>(), 3.0);
  term.reset();
  graph.run([] {});
  EXPECT_TRUE(std::isnan(sum.cpu()[0].item<double>()));
}

TEST_F(Streams, AHostReadWithinAGraphIsRefused) {
  const at::Tensor x = on_gpu(1.0);
  Graph graph({DeviceKind::kCuda, 0}, true);
  const auto enqueue = [&] { static_cast<void>(x.sum().item<double>()); };
  graph.run(enqueue);
  EXPECT_THAT([&] { graph.run(enqueue); },
              ThrowsMessage<std::runtime_error>(HasSubstr("could not be captured")));
  EXPECT_EQ(x.cpu()[0].item<double>(), 1.0);
}

TEST_F(Streams, ALaunchThatIsRefusedLaterIsReported) {
  a_.enqueue([] { run(nullptr, {{1, 1, 1}, kMaxThreads + 1, 0}, [] {}); });
  EXPECT_THAT([&] { a_.synchronize(); }, ThrowsMessage<std::runtime_error>(HasSubstr("refused a launch")));
}

}  // namespace
}  // namespace wd::emulation
