// emulation.h: a GPU on the CPU. Runs the blocks of a grid one after another and the threads of a block as
// fibers of the calling thread. Rejects everything that a GPU would reject, hang in or leave undefined.
//
// Device sources see it through the headers in wd/emulator/cuda, and tests through this header
// (docs/design/0018-emulated-gpu.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <source_location>
#include <stdexcept>
#include <typeinfo>

namespace wd::emulation {

// Limits of sm_90.
inline constexpr unsigned kMaxThreads = 1024;  // per block
inline constexpr unsigned kMaxBlocksAcross = 0x7fffffff;
inline constexpr unsigned kMaxBlocksAside = 65535;         // in y and in z
inline constexpr std::size_t kSharedBytes = 48 << 10;      // per block, dynamic and static
inline constexpr std::size_t kMaxSharedBytes = 227 << 10;  // per kernel that requested more

// The order of blocks, and of threads between two meetings: ascending, descending or random. Threads that
// have met continue immediately even if other threads have not started yet: a warp runs ahead as far as it
// can.
enum class Order { kForward, kBackward, kShuffled };
// Applies to all later launches. The seed starts a new sequence of random orders.
void set_order(Order order, std::uint64_t seed = 1);

// Thrown if the threads of a block do not meet: on a GPU they would hang or exchange undefined values. The
// message says which threads are where.
class Divergence : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// An access that a GPU refuses: to shared memory that the block does not have, or to an address that is not a
// multiple of the size of the access.
class BadAccess : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// --- Used by the emulation's CUDA headers ----------------------------------------------------------------

using Place = std::source_location;

enum class Error { kNone = 0, kInvalidValue = 1, kInvalidConfiguration = 9 };  // values of cudaError_t

struct Index {
  unsigned x = 0, y = 0, z = 0;
};

struct Grid {
  Index blocks;
  unsigned threads;    // per block
  std::size_t shared;  // bytes of dynamic shared memory
};

// The running thread.
struct Here {
  Index thread, block, block_dim, grid_dim;
};
inline Here here;

// Runs body() in every thread of the grid. A launch beyond the limits does not run; take_error() reports the
// error. `kernel` is the address that was passed to allow_shared().
void run(const void* kernel, const Grid& grid, const std::function<void()>& body);
// Runs the work when its stream reaches it, or immediately if `stream` is null (src/emulator/streams.h).
// `arguments`: a type that tells kernels apart.
void enqueue(void* stream, std::function<void()> work, const std::type_info& arguments);
Error allow_shared(const void* kernel, std::size_t bytes);
// What the device says that a kernel may request; kMaxSharedBytes at first.
void set_opt_in_shared(std::size_t bytes);
std::size_t opt_in_shared();
Error take_error();

// Memory of the block of the running thread. All bits are 1 when a block begins: NaN, -1, true.
std::byte* dynamic_shared();
std::byte* static_shared(int variable, std::size_t bytes);
int new_variable();

// The shared variable identified by `Tag`.
template <typename T, typename Tag>
[[gnu::no_sanitize("thread")]] T& shared(Tag) {
  static const int variable = new_variable();
  return *reinterpret_cast<T*>(static_shared(variable, sizeof(T)));
}

// Returns when all threads of the block, or all lanes of the mask, have reached this place.
void meet_block(Place place);
void meet_lanes(unsigned mask, Place place);
// Returns the value that lane `from` passed.
double exchange(unsigned mask, double value, unsigned from, Place place);
// The lanes of a warp multiply matrices, whose words they have (wd/detail/launch.cuh), `numbers` in a word: 1
// float32 or 2 bfloat16. Terms are added one after another.
void multiply_add(float* sum, const std::uint32_t* a, const std::uint32_t* b, int numbers, Place place);
// The running thread begins item f(item), or f(item, other), of a phase.
void at_item(int item, int other, Place place);
void fence();
// An atomic operation is about to happen. `caller`: an instruction of the kernel.
void at_atomic(const void* address, std::size_t bytes, const void* caller);
// A load that does not use the multiprocessor's own cache.
void at_read_of_l2(const void* address, std::size_t bytes, const void* caller);
// Ends the launch: run() throws the failure. Called by a thread that runs.
[[noreturn]] void fail(std::exception_ptr failure);
// Throws BadAccess if these bytes are shared memory which the block does not have.
void check_shared(const void* address, std::size_t bytes);

}  // namespace wd::emulation
