// emulation.cpp: the limits of a launch, its shared memory, and its blocks, which run one after another.
#include "wd/emulator/emulation.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "src/emulator/block.h"
#include "src/emulator/races.h"
#include "wd/error.h"

namespace wd::emulation {

namespace {

// The error with which a launch is refused.
struct Refusal {
  Error error;
};

class Gpu {
 public:
  static Gpu& instance() {
    static Gpu gpu;
    return gpu;
  }

  Orderly& order() { return order_; }
  Block& block() { return block_; }

  Error allow_shared(const void* kernel, std::size_t bytes) {
    if (bytes > kMaxSharedBytes) return Error::kInvalidValue;
    allowed_[kernel] = bytes;
    return Error::kNone;
  }
  Error take_error() { return std::exchange(error_, Error::kNone); }

  void run(const void* kernel, const Grid& grid, const std::function<void()>& body) {
    const std::lock_guard alone(mutex_);
    try {
      begin(kernel, grid);
      const auto [x, y, z] = grid.blocks;
      WD_CHECK(std::uint64_t{x} * y * z <= ~0u, "the emulated GPU does not run ", x, " x ", y, " x ", z,
               " blocks");
      for (const unsigned b : order_.all(x * y * z)) {
        here.block = {b % x, b / x % y, b / x / y};
        std::memset(shared_, 0xff, grid.shared);
        std::memset(shared_ + kMaxSharedBytes - statics_, 0xff, statics_);
        races_.begin_block(b, grid.threads, shared_, kMaxSharedBytes);
        block_.run(grid.threads, body, order_);
        check_behind_shared();
      }
    } catch (const Refusal& refusal) {
      error_ = refusal.error;
    } catch (...) {
      races_.end_launch();
      throw;
    }
    races_.end_launch();
  }

  void check_shared(const void* address, std::size_t bytes) const {
    const auto offset = static_cast<std::size_t>(static_cast<const std::byte*>(address) - shared_);
    if (offset >= kMaxSharedBytes || offset + bytes <= dynamic_ || offset >= kMaxSharedBytes - statics_)
      return;
    throw BadAccess(wd::concat("thread ", here.thread.x, " of block (", here.block.x, ", ", here.block.y,
                               ", ", here.block.z, ") accesses ", bytes, " bytes at ", offset,
                               " of its shared memory, of which the launch asked for ", dynamic_, " bytes"));
  }

  // check_shared() sees each access, but only where races are looked for. This sees what a block wrote.
  void check_behind_shared() const {
    const std::byte* const begin = shared_ + dynamic_;
    const std::byte* const end = shared_ + std::min(dynamic_ + kGuarded, kMaxSharedBytes - statics_);
    const std::byte* const changed =
        std::find_if(begin, end, [](std::byte b) { return b != std::byte{0xff}; });
    if (changed == end) return;
    throw BadAccess(wd::concat("block (", here.block.x, ", ", here.block.y, ", ", here.block.z,
                               ") wrote to byte ", changed - shared_,
                               " of its shared memory, of which the launch asked for ", dynamic_, " bytes"));
  }

  std::byte* dynamic_shared() const { return shared_; }

  // Static variables are at the end of the memory, in the order in which a launch first uses them.
  std::byte* static_shared(std::size_t variable, std::size_t bytes) {
    if (variable >= offset_.size()) offset_.resize(variable + 1, kNowhere);
    if (offset_[variable] == kNowhere) {
      if (rounded_up(dynamic_) + statics_ + bytes > max_shared_)
        block_.fail(std::make_exception_ptr(Refusal{Error::kInvalidValue}));
      statics_ += rounded_up(bytes);
      offset_[variable] = kMaxSharedBytes - statics_;
    }
    return shared_ + offset_[variable];
  }

 private:
  static constexpr std::size_t kNowhere = ~std::size_t{0};
  static constexpr std::size_t kGuarded = 1024;  // bytes behind dynamic shared memory
  static std::size_t rounded_up(std::size_t bytes) { return (bytes + 15) / 16 * 16; }

  Gpu() : shared_(static_cast<std::byte*>(std::aligned_alloc(1024, kMaxSharedBytes))) {}

  void begin(const void* kernel, const Grid& grid) {
    const auto within = [](unsigned n, unsigned most) { return n > 0 && n <= most; };
    if (!within(grid.threads, kMaxThreads) || !within(grid.blocks.x, kMaxBlocksAcross) ||
        !within(grid.blocks.y, kMaxBlocksAside) || !within(grid.blocks.z, kMaxBlocksAside))
      throw Refusal{Error::kInvalidConfiguration};
    const auto asked = allowed_.find(kernel);
    max_shared_ = asked == allowed_.end() ? kSharedBytes : kMaxSharedBytes;
    if (grid.shared > (asked == allowed_.end() ? kSharedBytes : asked->second))
      throw Refusal{Error::kInvalidValue};
    dynamic_ = grid.shared;
    statics_ = 0;
    offset_.assign(offset_.size(), kNowhere);
    std::memset(shared_, 0xff, kMaxSharedBytes);
    here.block_dim = {grid.threads, 1, 1};
    here.grid_dim = grid.blocks;
    races_.begin_launch();
  }

  std::mutex mutex_;  // there is only one `here`
  Orderly order_;
  Block block_;
  Races& races_ = Races::instance();
  Error error_ = Error::kNone;
  std::map<const void*, std::size_t> allowed_;  // dynamic shared memory, by kernel

  // State of the current launch.
  std::size_t max_shared_ = 0, dynamic_ = 0, statics_ = 0;  // bytes: the limit, and what is used
  std::vector<std::size_t> offset_;                         // of static variables in shared_
  std::byte* const shared_;
};

}  // namespace

namespace {
std::size_t opt_in = kMaxSharedBytes;
}
void set_opt_in_shared(std::size_t bytes) { opt_in = bytes; }
std::size_t opt_in_shared() { return opt_in; }

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

void meet_block(Place place) { Gpu::instance().block().meet_block(place); }
void meet_lanes(unsigned mask, Place place) { Gpu::instance().block().meet_lanes(mask, place); }
double exchange(unsigned mask, double value, unsigned from, Place place) {
  return Gpu::instance().block().exchange(mask, value, from, place);
}
void multiply_add(float* sum, const std::uint32_t* a, const std::uint32_t* b, int numbers, Place place) {
  Gpu::instance().block().multiply_add({sum, a, b}, numbers, place);
}
void at_item(int item, int other, Place place) { Races::instance().at_item(item, other, place); }
void fence() { Races::instance().fence(); }
void fail(std::exception_ptr failure) { Gpu::instance().block().fail(std::move(failure)); }
void check_shared(const void* address, std::size_t bytes) { Gpu::instance().check_shared(address, bytes); }

}  // namespace wd::emulation
