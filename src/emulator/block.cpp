// block.cpp: runs each thread until it waits, and continues threads when all have arrived.
#include "src/emulator/block.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <numeric>
#include <string_view>
#include <utility>

#include "src/emulator/races.h"
#include "wd/error.h"

namespace wd::emulation {

namespace {

using wd::concat;

constexpr unsigned kWarp = 32;
constexpr std::size_t kStackBytes = 64 << 10;

bool same(const Place& a, const Place& b) {
  if (a.line() != b.line() || a.column() != b.column()) return false;
  return a.file_name() == b.file_name() || std::string_view(a.file_name()) == b.file_name();
}

// Allocates stacks for the threads of a block, with a guard page below each. Their upper ends differ within a
// page, because caches would otherwise hold only a few of them.
std::vector<Fiber> make_fibers(Fiber::Function function) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t each = page + kStackBytes;
  void* const memory = mmap(nullptr, kMaxThreads * each, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  WD_CHECK(memory != MAP_FAILED, "no memory for the stacks of the emulated GPU");
  Races::instance().ignore(memory, kMaxThreads * each);
  std::vector<Fiber> fibers;
  for (unsigned k = 0; k < kMaxThreads; ++k) {
    std::byte* const guard = static_cast<std::byte*>(memory) + k * each;
    mprotect(guard, page, PROT_NONE);
    fibers.emplace_back(guard + page, kStackBytes - k % 64 * 64, function);
  }
  return fibers;
}

Block* running = nullptr;

}  // namespace

void Orderly::set(Order order, std::uint64_t seed) {
  order_ = order;
  random_.seed(seed);
}

std::vector<unsigned> Orderly::all(unsigned n) {
  std::vector<unsigned> numbers(n);
  std::iota(numbers.begin(), numbers.end(), 0u);
  if (order_ == Order::kBackward) std::reverse(numbers.begin(), numbers.end());
  if (order_ == Order::kShuffled) std::shuffle(numbers.begin(), numbers.end(), random_);
  return numbers;
}

void Orderly::add(std::vector<unsigned>& met, std::vector<unsigned>& ready) {
  if (order_ == Order::kShuffled) std::shuffle(met.begin(), met.end(), random_);
  const bool after_others = order_ == Order::kShuffled && random_() % 2 == 0;
  ready.insert(after_others ? ready.begin() : ready.end(), met.rbegin(), met.rend());
}

Block::Block() : fibers_(make_fibers([] { running->run_thread(); })) { forget_fibers(); }

// --- On the caller's stack ------------------------------------------------------------------------------

void Block::run(unsigned num_threads, const std::function<void()>& body, Orderly& order) {
  running = this;
  body_ = &body;
  order_ = &order;
  begin(num_threads);
  ready_ = order.all(num_threads);
  std::reverse(ready_.begin(), ready_.end());
  while (!ready_.empty()) {
    const unsigned thread = ready_.back();
    ready_.pop_back();
    go_on(thread);
  }
  if (num_ended_ == num_threads) return;
  complain_of_waiting(all_, 0, num_threads);
  for (unsigned warp = 0; warp < warps_.size(); ++warp)
    for (const Meeting& meeting : warps_[warp].meetings) complain_of_waiting(meeting, warp * kWarp, kWarp);
}

void Block::begin(unsigned num_threads) {
  if (idle_.size() < fibers_.size()) forget_fibers();  // a failed block leaves paused threads
  threads_.assign(num_threads, {});
  num_ended_ = 0;
  all_.expected = num_threads;
  all_.arrived.clear();
  warps_.resize((num_threads + kWarp - 1) / kWarp);
  for (unsigned warp = 0; warp < warps_.size(); ++warp) {
    const unsigned lanes = std::min(num_threads - warp * kWarp, kWarp);
    warps_[warp].present = lanes == kWarp ? ~0u : (1u << lanes) - 1;
    for (Meeting& meeting : warps_[warp].meetings) meeting.arrived.clear();
  }
}

void Block::forget_fibers() {
  idle_.clear();
  for (Fiber& fiber : fibers_) {
    fiber.forget();
    idle_.push_back(&fiber);
  }
}

// Runs a thread until it waits or ends.
void Block::go_on(unsigned number) {
  Thread& thread = threads_[number];
  current_ = number;
  here.thread.x = number;
  if (thread.fiber == nullptr) {
    thread.fiber = idle_.back();
    idle_.pop_back();
  }
  thread.fiber->resume();
  if (failure_ != nullptr) std::rethrow_exception(std::exchange(failure_, nullptr));
  if (thread.ended) idle_.push_back(thread.fiber);
}

// All threads wait: throws Divergence if a meeting waits for one of the `count` threads starting at `first`.
void Block::complain_of_waiting(const Meeting& meeting, unsigned first, unsigned count) const {
  if (meeting.arrived.empty()) return;
  for (unsigned k = 0; k < count; ++k) {
    const bool awaited = meeting.mask == 0 || (meeting.mask >> k & 1) != 0;
    if (awaited &&
        std::find(meeting.arrived.begin(), meeting.arrived.end(), first + k) == meeting.arrived.end())
      throw Divergence(divergence(meeting.arrived.front(), first + k));
  }
}

// --- On a thread's fiber ---------------------------------------------------------------------------------

void Block::run_thread() {
  std::exception_ptr thrown;
  try {
    (*body_)();
  } catch (...) {
    thrown = std::current_exception();
  }
  if (thrown != nullptr) fail(std::move(thrown));
  threads_[current_].ended = true;
  ++num_ended_;
}

void Block::meet_lanes(unsigned mask, Place place) {
  Warp& warp = warps_[current_ / kWarp];
  threads_[current_].place = place;
  if ((mask >> current_ % kWarp & 1) == 0) complain("is not in its own mask");
  if ((mask & ~warp.present) != 0) complain("has a mask with lanes that the block does not have");
  if (std::has_single_bit(mask)) return Races::instance().met({current_});
  arrive(meeting_of(mask), place);
}

Block::Meeting& Block::meeting_of(unsigned mask) {
  std::vector<Meeting>& all = warps_[current_ / kWarp].meetings;
  const auto found = std::find_if(all.begin(), all.end(), [&](const Meeting& m) { return m.mask == mask; });
  return found != all.end() ? *found : all.emplace_back(mask, std::popcount(mask));
}

double Block::exchange(unsigned mask, double value, unsigned from, Place place) {
  Thread& me = threads_[current_];
  me.place = place;
  if (from >= kWarp || (mask >> from & 1) == 0) complain("reads from a lane that is not in the mask");
  me.brought = me.got = value;
  me.from = current_ / kWarp * kWarp + from;
  meet_lanes(mask, place);
  return me.got;
}

// The last lane to arrive multiplies for all of them.
void Block::multiply_add(Factors mine, int numbers, Place place) {
  threads_[current_].factors = mine;
  if (warps_[current_ / kWarp].present == ~0u) {
    const Meeting& meeting = meeting_of(~0u);
    if (meeting.arrived.size() + 1 == kWarp && same(meeting.place, place))
      multiply_warp(current_ / kWarp * kWarp, numbers);
  }
  meet_lanes(~0u, place);
}

void Block::multiply_warp(unsigned first, int numbers) {
  float a[16][16], b[16][8];
  const auto number = [&](std::uint32_t word, int half) {
    return std::bit_cast<float>(numbers == 1 ? word : half == 0 ? word << 16 : word & 0xffff0000u);
  };
  for (unsigned lane = 0; lane < kWarp; ++lane) {
    const Factors& factors = threads_[first + lane].factors;
    const int g = static_cast<int>(lane / 4), t = static_cast<int>(lane % 4);
    for (int half = 0; half < numbers; ++half) {
      for (int i = 0; i < 4; ++i)
        a[g + i % 2 * 8][(t + i / 2 * 4) * numbers + half] = number(factors.a[i], half);
      for (int i = 0; i < 2; ++i) b[(t + i * 4) * numbers + half][g] = number(factors.b[i], half);
    }
  }
  for (unsigned lane = 0; lane < kWarp; ++lane) {
    for (int i = 0; i < 4; ++i) {
      float& sum = threads_[first + lane].factors.sum[i];
      for (int k = 0; k < 8 * numbers; ++k)
        sum += a[lane / 4 + static_cast<unsigned>(i) / 2 * 8][k] *
               b[k][lane % 4 * 2 + static_cast<unsigned>(i) % 2];
    }
  }
}

void Block::arrive(Meeting& meeting, Place place) {
  threads_[current_].place = place;
  if (meeting.arrived.empty()) meeting.place = place;
  meeting.arrived.push_back(current_);
  if (!same(meeting.place, place))
    fail(std::make_exception_ptr(Divergence(divergence(meeting.arrived.front(), current_))));
  if (meeting.arrived.size() == meeting.expected) release(meeting);
  Fiber::pause();
}

void Block::release(Meeting& meeting) {
  for (const unsigned k : meeting.arrived) threads_[k].got = threads_[threads_[k].from].brought;
  static const std::vector<unsigned> kWholeBlock;
  Races::instance().met(meeting.mask == 0 ? kWholeBlock : meeting.arrived);
  order_->add(meeting.arrived, ready_);
  meeting.arrived.clear();
}

void Block::fail(std::exception_ptr failure) {
  failure_ = std::move(failure);
  Fiber::pause();
  std::terminate();
}

void Block::complain(const char* of_what) {
  fail(
      std::make_exception_ptr(Divergence(concat("a thread diverges: ", where(current_), ", and ", of_what))));
}

// --- Messages --------------------------------------------------------------------------------------------

std::string Block::divergence(unsigned waiting, unsigned other) const {
  const auto [x, y, z] = here.block;
  return concat("the threads of block (", x, ", ", y, ", ", z, ") diverge: ", where(waiting), ", ",
                where(other));
}

std::string Block::where(unsigned number) const {
  const Thread& thread = threads_[number];
  const bool met = thread.place.line() != 0;
  const std::string at = met ? concat(thread.place.file_name(), ':', thread.place.line()) : "";
  if (!thread.ended) return concat("thread ", number, " waits at ", at);
  return concat("thread ", number, " has ended", met ? ", after it met others at " : "", at);
}

}  // namespace wd::emulation
