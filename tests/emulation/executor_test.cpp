// executor_test.cpp: compares the CUDA executor on the emulated GPU with the CPU executor.
#include "src/emulator/races.h"
#include "tests/emulation/orders.h"
#include "tests/parity/executor_cases.h"
#include "wd/detail/packing.h"

namespace wd::parity {
namespace {

// An environment whose replicas are in host memory and are stepped by the CUDA executor.
class Emulated final : public Environment {
 public:
  Emulated(Environment& of, const CudaExecutor& executor, bool gives_scratch = true)
      : of_(of), executor_(executor), gives_scratch_(gives_scratch) {}

  std::string_view name() const override { return of_.name(); }
  void describe(Fields& fields) override { of_.describe(fields); }
  Spec spec() const override { return of_.spec(); }
  StateLayout layout() const override { return of_.layout(); }
  const void* params() const override { return of_.params(); }
  // Looking for races makes a step several times slower.
  static constexpr std::uint64_t kStepsPerRaceCheck = 64;
  // Each step uses another order of blocks and threads. Scratch memory is filled with NaN, because its
  // previous content must not matter.
  void step(const StateLayout& layout, const StepView& view) const override {
    emulation::set_order(emulation::kOrders[steps_ % std::size(emulation::kOrders)].order, steps_);
    emulation::Races::instance().enable(steps_ % kStepsPerRaceCheck == 0);
    ++steps_;
    std::vector<std::max_align_t> scratch(static_cast<std::size_t>(view.num_replicas) * layout.scratch_bytes /
                                          sizeof(std::max_align_t));
    if (!scratch.empty()) std::memset(scratch.data(), 0xff, scratch.size() * sizeof(scratch[0]));
    StepView with_scratch = view;
    with_scratch.scratch = gives_scratch_ ? reinterpret_cast<std::byte*>(scratch.data()) : nullptr;
    executor_.step(params(), layout, with_scratch, nullptr);
  }
  void step_in_order(const StateLayout&, const StepView&, PhaseOrder) const override { FAIL(); }
  void derive(const StateLayout& layout, std::byte* block) const override { of_.derive(layout, block); }
  bool scripted(const StateLayout& layout, const std::byte* block, std::int32_t* actions) const override {
    return of_.scripted(layout, block, actions);
  }
  void in_game(const StateLayout& layout, const std::byte* block, std::uint8_t* flags) const override {
    of_.in_game(layout, block, flags);
  }
  void step_apart(const StateLayout&, const StepView&, const ApartMemory&) const override { FAIL(); }

 private:
  Environment& of_;
  const CudaExecutor& executor_;
  bool gives_scratch_;
  mutable std::uint64_t steps_ = 0;
};

class Executors : public testing::TestWithParam<Case> {};

TEST_P(Executors, AgreeOverWholeEpisodes) {
  Case c = GetParam();
  c.num_envs = std::min(c.num_envs, 19);  // blocks are emulated one after another
  const std::unique_ptr<Environment> environment = make(c);
  const Emulated emulated(*environment, *find_environment(c.environment).cuda());
  Side cpu(c, *environment, DeviceKind::kCpu), gpu(c, emulated, DeviceKind::kCpu);
  expect_same_episodes(cpu, gpu, environment->spec().time_limit * 6 / 11);  // a whole episode, and a reset
}

// Replicas allocate scratch memory exactly if the executor will ask for it.
constexpr std::size_t kLeast = 64 << 10;  // bytes of shared memory that any GPU grants to a block

TEST(SharedMemory, IsJudgedAlikeByReplicasAndExecutor) {
  for (const Case& c : cases()) {
    if (c.stored.type != ObservationType::kFloat32 || c.stored.as_table || c.num_envs > 70) continue;
    SCOPED_TRACE(c.name);
    const std::unique_ptr<Environment> environment = make(c);
    const StateLayout layout = environment->layout();
    std::size_t limit = kLeast;
    while (!detail::is_staged(layout, limit)) limit += 16;
    if (limit > emulation::kMaxSharedBytes) continue;
    const Emulated emulated(*environment, *find_environment(c.environment).cuda(), false);
    emulation::set_opt_in_shared(limit);
    EXPECT_NO_THROW(Side(c, emulated, DeviceKind::kCpu));
    if (limit > kLeast) {
      emulation::set_opt_in_shared(limit - 16);
      EXPECT_THROW(Side(c, emulated, DeviceKind::kCpu), std::runtime_error);
    }
    emulation::set_opt_in_shared(emulation::kMaxSharedBytes);
  }
}

// Rounding to bfloat16 and tables are the same code in games of all lengths and sizes, and the largest games
// take longest.
std::vector<Case> affordable() {
  std::vector<Case> all = cases();
  for (Case& c : all) {
    const bool variant = c.stored.type == ObservationType::kBfloat16 || c.stored.as_table;
    if (variant && c.environment == "tag_continuous") c.params.try_emplace("episode_length", 40);
  }
  std::erase_if(all, [](const Case& c) {
    const bool large = c.name.starts_with("tag_more_agents") || c.name.starts_with("tag_120_KiB");
    return large && c.stored.type == ObservationType::kBfloat16;
  });
  return all;
}

INSTANTIATE_TEST_SUITE_P(Cases, Executors, testing::ValuesIn(affordable()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace wd::parity
