// emulation.cpp: limits of a launch, the order of blocks and threads, shared memory, and the meetings of
// threads.
#include "tests/emulation/emulation.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <random>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/emulation/fiber.h"
#include "wd/error.h"

namespace emulation {

namespace {

using wd::concat;

constexpr unsigned kWarp = 32;
constexpr std::size_t kStackBytes = 64 << 10;

bool same(const Place& a, const Place& b) {
  if (a.line() != b.line() || a.column() != b.column()) return false;
  return a.file_name() == b.file_name() || std::string_view(a.file_name()) == b.file_name();
}

// What a launch is refused with.
struct Refusal {
  Error error;
};

// Numbers 0 .. n - 1 in the order that was asked for.
class Orderly {
 public:
  void set(Order order, std::uint64_t seed) {
    order_ = order;
    random_.seed(seed);
  }
  bool shuffles() const { return order_ == Order::kShuffled; }
  void shuffle(std::vector<unsigned>& numbers) { std::shuffle(numbers.begin(), numbers.end(), random_); }
  void fill(std::vector<unsigned>& numbers, unsigned n) {
    numbers.resize(n);
    std::iota(numbers.begin(), numbers.end(), 0u);
    if (order_ == Order::kBackward) std::reverse(numbers.begin(), numbers.end());
    if (order_ == Order::kShuffled) shuffle(numbers);
  }

 private:
  Order order_ = Order::kForward;
  std::mt19937_64 random_;
};

// Stacks with a page between them that nobody may touch. They begin at different places of a page, or
// caches would hold few of them.
class Stacks {
 public:
  Stacks() {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::size_t each = kStackBytes + page;
    void* const memory = mmap(nullptr, kMostThreads * each, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) throw std::runtime_error("no memory for the stacks of the emulated GPU");
    for (unsigned k = 0; k < kMostThreads; ++k) {
      std::byte* const guard = static_cast<std::byte*>(memory) + k * each;
      mprotect(guard, page, PROT_NONE);
      begin_.push_back(guard + page);
    }
  }
  std::byte* operator[](std::size_t k) const { return begin_[k]; }
  static std::size_t bytes(std::size_t k) { return kStackBytes - k % 64 * 64; }

 private:
  std::vector<std::byte*> begin_;
};

// A barrier of the block, or a meeting of the lanes of a mask.
struct Meeting {
  unsigned mask = 0;  // of lanes; 0: all threads of the block
  int expected = 0;
  Place place{};
  std::vector<unsigned> arrived{};  // threads
};

struct Warp {
  unsigned present = 0, ended = 0;  // lanes
  std::vector<Meeting> meetings{};  // one a mask
};

struct Thread {
  Fiber* fiber = nullptr;  // of its own from where it first waits on
  bool ended = false;
  Place place{};                    // where it met others last, or waits
  double brought = 0.0, got = 0.0;  // in an exchange
  unsigned from = 0;
};

class Gpu {
 public:
  static Gpu& instance() {
    static Gpu gpu;
    return gpu;
  }

  Orderly& order() { return order_; }

  Error allow_shared(const void* kernel, std::size_t bytes) {
    if (bytes > kMostSharedBytes) return Error::kInvalidValue;
    allowed_[kernel] = bytes;
    return Error::kNone;
  }
  Error take_error() { return std::exchange(error_, Error::kNone); }

  void run(const void* kernel, const Grid& grid, const std::function<void()>& body) {
    const std::lock_guard alone(mutex_);
    if (body_ != nullptr) throw std::logic_error("a kernel launches a kernel");
    try {
      check(kernel, grid);
      body_ = &body;
      run_blocks();
    } catch (const Refusal& refusal) {
      error_ = refusal.error;
    } catch (...) {
      body_ = nullptr;
      throw;
    }
    body_ = nullptr;
  }

  std::byte* dynamic_shared() const { return shared_; }

  std::byte* static_shared(std::size_t variable, std::size_t bytes) {
    if (variable >= offset_.size()) offset_.resize(variable + 1, kNowhere);
    if (offset_[variable] == kNowhere) {
      if (used_ + bytes > most_shared_) fail(std::make_exception_ptr(Refusal{Error::kInvalidValue}));
      offset_[variable] = used_;
      used_ += (bytes + 15) / 16 * 16;
    }
    return shared_ + offset_[variable];
  }

  void meet_block(Place place) {
    if (num_ended_ > 0) {
      threads_[current_].place = place;
      const auto ended =
          std::find_if(threads_.begin(), threads_.end(), [](const Thread& t) { return t.ended; });
      diverge(current_, static_cast<unsigned>(ended - threads_.begin()));
    }
    arrive(block_meeting_, place);
  }

  void meet_lanes(unsigned mask, Place place) {
    Warp& warp = warps_[current_ / kWarp];
    threads_[current_].place = place;
    if ((mask >> current_ % kWarp & 1) == 0) complain("is not in its own mask");
    if ((mask & ~warp.present) != 0) complain("has a mask with lanes that the block does not have");
    if ((mask & warp.ended) != 0)
      diverge(current_,
              current_ / kWarp * kWarp + static_cast<unsigned>(std::countr_zero(mask & warp.ended)));
    if (std::has_single_bit(mask)) return;
    std::vector<Meeting>& all = warp.meetings;
    const auto found = std::find_if(all.begin(), all.end(), [&](const Meeting& m) { return m.mask == mask; });
    arrive(found != all.end() ? *found : all.emplace_back(mask, std::popcount(mask)), place);
  }

  double exchange(unsigned mask, double value, unsigned from, Place place) {
    Thread& me = threads_[current_];
    me.place = place;
    if (from >= kWarp || (mask >> from & 1) == 0) complain("reads from a lane that is not in the mask");
    me.brought = me.got = value;
    me.from = current_ / kWarp * kWarp + from;
    meet_lanes(mask, place);
    return me.got;
  }

 private:
  static constexpr std::size_t kNowhere = ~std::size_t{0};

  Gpu() : shared_(static_cast<std::byte*>(std::aligned_alloc(1024, kMostSharedBytes))) {
    fibers_.reserve(kMostThreads);
    for (unsigned k = 0; k < kMostThreads; ++k)
      fibers_.emplace_back(stacks_[k], Stacks::bytes(k), [] { instance().run_thread(); });
    forget_fibers();
  }

  // --- On the stack of the caller ---

  void check(const void* kernel, const Grid& grid) {
    const auto within = [](unsigned n, unsigned most) { return n > 0 && n <= most; };
    if (!within(grid.threads, kMostThreads) || !within(grid.blocks.x, kMostBlocksAcross) ||
        !within(grid.blocks.y, kMostBlocksAside) || !within(grid.blocks.z, kMostBlocksAside))
      throw Refusal{Error::kInvalidConfiguration};
    const auto asked = allowed_.find(kernel);
    most_shared_ = asked == allowed_.end() ? kSharedBytes : kMostSharedBytes;
    if (grid.shared > (asked == allowed_.end() ? kSharedBytes : asked->second))
      throw Refusal{Error::kInvalidValue};
    used_ = (grid.shared + 15) / 16 * 16;
    offset_.assign(offset_.size(), kNowhere);
    std::memset(shared_, 0xff, kMostSharedBytes);
    here.block_dim = {grid.threads, 1, 1};
    here.grid_dim = grid.blocks;
  }

  void run_blocks() {
    const auto [x, y, z] = here.grid_dim;
    std::vector<unsigned> blocks;
    order_.fill(blocks, x * y * z);
    for (const unsigned b : blocks) {
      here.block = {b % x, b / x % y, b / x / y};
      run_block(here.block_dim.x);
    }
  }

  void run_block(unsigned num_threads) {
    std::memset(shared_, 0xff, used_);
    threads_.assign(num_threads, {});
    num_ended_ = 0;
    block_meeting_.expected = static_cast<int>(num_threads);
    block_meeting_.arrived.clear();
    warps_.resize((num_threads + kWarp - 1) / kWarp);
    for (unsigned warp = 0; warp < warps_.size(); ++warp) {
      const unsigned lanes = std::min(num_threads - warp * kWarp, kWarp);
      warps_[warp].present = lanes == kWarp ? ~0u : (1u << lanes) - 1;
      warps_[warp].ended = 0;
      for (Meeting& meeting : warps_[warp].meetings) meeting.arrived.clear();
    }
    order_.fill(ready_, num_threads);
    while (!ready_.empty()) {
      for (const unsigned thread : ready_) go_on(thread);
      ready_.clear();
      ready_.swap(next_);
      if (order_.shuffles()) order_.shuffle(ready_);
    }
    if (num_ended_ < num_threads) throw Divergence(who_waits_for_whom());
  }

  // Runs a thread until it waits or ends.
  void go_on(unsigned number) {
    Thread& thread = threads_[number];
    current_ = number;
    here.thread.x = number;
    if (thread.fiber == nullptr) {
      thread.fiber = idle_.back();
      idle_.pop_back();
    }
    thread.fiber->resume();
    if (failure_ != nullptr) {
      next_.clear();
      forget_fibers();
      std::rethrow_exception(std::exchange(failure_, nullptr));
    }
    if (thread.ended) idle_.push_back(thread.fiber);
  }

  void forget_fibers() {
    idle_.clear();
    for (Fiber& fiber : fibers_) {
      fiber.forget();
      idle_.push_back(&fiber);
    }
  }

  // Of a block in which nobody can go on.
  std::string who_waits_for_whom() const {
    const auto missing = [&](const Meeting& meeting, unsigned thread) {
      const auto& arrived = meeting.arrived;
      return std::find(arrived.begin(), arrived.end(), thread) == arrived.end();
    };
    if (!block_meeting_.arrived.empty()) {
      for (unsigned k = 0; k < threads_.size(); ++k)
        if (missing(block_meeting_, k)) return text(block_meeting_.arrived.front(), k);
    }
    for (unsigned warp = 0; warp < warps_.size(); ++warp) {
      for (const Meeting& meeting : warps_[warp].meetings) {
        if (meeting.arrived.empty()) continue;
        for (unsigned lane = 0; lane < kWarp; ++lane)
          if ((meeting.mask >> lane & 1) != 0 && missing(meeting, warp * kWarp + lane))
            return text(meeting.arrived.front(), warp * kWarp + lane);
      }
    }
    return "the emulated GPU lost a thread";
  }

  // --- On the fiber of a thread ---

  void run_thread() {
    try {
      (*body_)();
    } catch (...) {
      fail(std::current_exception());
    }
    Thread& me = threads_[current_];
    me.ended = true;
    ++num_ended_;
    if (!block_meeting_.arrived.empty()) diverge(block_meeting_.arrived.front(), current_);
    Warp& warp = warps_[current_ / kWarp];
    warp.ended |= 1u << current_ % kWarp;
    for (const Meeting& meeting : warp.meetings)
      if (!meeting.arrived.empty() && (meeting.mask >> current_ % kWarp & 1) != 0)
        diverge(meeting.arrived.front(), current_);
  }

  void arrive(Meeting& meeting, Place place) {
    Thread& me = threads_[current_];
    me.place = place;
    if (meeting.arrived.empty()) meeting.place = place;
    meeting.arrived.push_back(current_);
    if (!same(meeting.place, place)) diverge(meeting.arrived.front(), current_);
    if (std::ssize(meeting.arrived) == meeting.expected) release(meeting);
    Fiber::pause();
  }

  void release(Meeting& meeting) {
    for (const unsigned k : meeting.arrived) {
      threads_[k].got = threads_[threads_[k].from].brought;
      next_.push_back(k);
    }
    meeting.arrived.clear();
  }

  // Ends the launch: its threads never go on.
  [[noreturn]] void fail(std::exception_ptr failure) {
    failure_ = std::move(failure);
    Fiber::pause();
    std::terminate();
  }
  [[noreturn]] void diverge(unsigned waiting, unsigned other) {
    fail(std::make_exception_ptr(Divergence(text(waiting, other))));
  }

  [[noreturn]] void complain(const std::string& of_what) {
    fail(std::make_exception_ptr(Divergence(block_text() + where(current_) + ", and " + of_what)));
  }

  std::string text(unsigned waiting, unsigned other) const {
    return block_text() + where(waiting) + ", " + where(other);
  }
  static std::string block_text() {
    const auto [x, y, z] = here.block;
    return concat("the threads of block (", x, ", ", y, ", ", z, ") diverge: ");
  }
  std::string where(unsigned number) const {
    const auto& [fiber, ended, place, brought, got, from] = threads_[number];
    const std::string at = place.line() == 0 ? "" : concat(place.file_name(), ':', place.line());
    if (!ended) return concat("thread ", number, " waits at ", at);
    return concat("thread ", number, " has ended", at.empty() ? "" : ", after it met others at ", at);
  }

  Stacks stacks_;
  std::vector<Fiber> fibers_;
  std::vector<Fiber*> idle_;
  std::mutex mutex_;
  Orderly order_;
  Error error_ = Error::kNone;
  std::map<const void*, std::size_t> allowed_;  // dynamic shared memory, by kernel

  // Of the launch.
  const std::function<void()>* body_ = nullptr;
  std::exception_ptr failure_;
  std::size_t most_shared_ = 0, used_ = 0;
  std::vector<std::size_t> offset_;  // of static variables in shared_
  std::byte* const shared_;

  // Of the block.
  std::vector<Thread> threads_;
  std::vector<unsigned> ready_, next_;  // threads that can go on, now and when all of these have
  unsigned current_ = 0, num_ended_ = 0;
  Meeting block_meeting_;
  std::vector<Warp> warps_;
};

}  // namespace

void set_order(Order order, std::uint64_t seed) { Gpu::instance().order().set(order, seed); }

void run(const void* kernel, const Grid& grid, const std::function<void()>& body) {
  Gpu::instance().run(kernel, grid, body);
}
Error allow_shared(const void* kernel, std::size_t bytes) {
  return Gpu::instance().allow_shared(kernel, bytes);
}
Error take_error() { return Gpu::instance().take_error(); }

std::byte* dynamic_shared() { return Gpu::instance().dynamic_shared(); }
std::byte* static_shared(int variable, std::size_t bytes) {
  return Gpu::instance().static_shared(static_cast<std::size_t>(variable), bytes);
}
int new_variable() {
  static int count = 0;
  return count++;
}

void meet_block(Place place) { Gpu::instance().meet_block(place); }
void meet_lanes(unsigned mask, Place place) { Gpu::instance().meet_lanes(mask, place); }
double exchange(unsigned mask, double value, unsigned from, Place place) {
  return Gpu::instance().exchange(mask, value, from, place);
}

}  // namespace emulation
