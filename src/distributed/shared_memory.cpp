// shared_memory.cpp: a sealed memfd with one place per rank and operation, and a futex to wait for others.
#include "src/distributed/shared_memory.h"

#include <ATen/ATen.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>

#include "src/base/descriptor.h"
#include "src/base/host.h"
#include "wd/error.h"

namespace wd {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kLine = 64, kHeadBytes = 4096, kMostBytes = std::size_t{16} << 20;
// A rank that is ahead may begin this many operations before the others have ended the first of them.
constexpr std::uint64_t kOperations = 4;
constexpr std::size_t kTokenBytes = 64;
constexpr int kSeals = F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL;

std::size_t memory_bytes(int size) {
  return kHeadBytes + kOperations * static_cast<std::size_t>(size) * kMostBytes;
}

// Pages take memory when they are first written.
void* map(int descriptor, int size) {
  void* const memory = ::mmap(nullptr, memory_bytes(size), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

Descriptor make_memory(int size) {
  Descriptor memory(::memfd_create("wd_all_reduce", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!memory || ::ftruncate(memory.get(), static_cast<off_t>(memory_bytes(size))) != 0 ||
      ::fcntl(memory.get(), F_ADD_SEALS, kSeals) != 0)
    return {};
  return memory;
}

// Only the same user can open it, and the seals say that it does not shrink under a reader.
Descriptor open_memory(const std::string& path) {
  Descriptor memory(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK));
  return memory && ::fcntl(memory.get(), F_GET_SEALS) == kSeals ? std::move(memory) : Descriptor();
}

// The bits of Gloo's ring, in which the numbers are cut into segments, and each rank has the same number of
// segments in sequence, its chunk. The sum of chunk c begins with the numbers of rank c - 1, and those of
// rank c - 2 and so on are added, the last those of rank c. Source: gloo/allreduce.cc; the sizes
// of segments differ between versions, and are those of the Gloo within torch.
struct Chunks {
  Chunks(std::size_t numbers, std::size_t number_bytes, std::size_t ranks) {
    constexpr std::size_t kMostSegmentBytes = std::size_t{1} << 20;
    const auto up = [](std::size_t value, std::size_t to) { return (value + to - 1) / to * to; };
    const std::size_t bytes = numbers * number_bytes, fewest = 2 * ranks;
    const std::size_t segments =
        up(std::max((bytes + kMostSegmentBytes - 1) / kMostSegmentBytes, fewest), ranks);
    const std::size_t segment = up((bytes + segments - 1) / segments, number_bytes);
    chunk = segments / ranks * segment / number_bytes;
  }
  std::size_t chunk;  // numbers in each but the last ones
};

template <typename T, typename Combine>
void combine_ranks(T* to, std::size_t numbers, const std::vector<const T*>& parts, Combine combine) {
  constexpr std::size_t kBlock = 2048;  // stays in the cache
  const std::size_t ranks = parts.size(), chunk = Chunks(numbers, sizeof(T), ranks).chunk;
  for (std::size_t begin = 0, end = 0; begin < numbers; begin = end) {
    const std::size_t c = begin / chunk;
    end = std::min({numbers, begin + kBlock, (c + 1) * chunk});
    const T* const first = parts[(c + ranks - 1) % ranks];
    std::copy(first + begin, first + end, to + begin);
    for (std::size_t k = 2; k <= ranks; ++k) {
      const T* const more = parts[(c + ranks - k) % ranks];
      for (std::size_t i = begin; i < end; ++i) to[i] = combine(more[i], to[i]);
    }
  }
}

template <typename T>
void combine_ranks(T* to, std::size_t numbers, const std::vector<const T*>& parts, ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
      return combine_ranks(to, numbers, parts, [](T a, T b) { return a + b; });
    case ReduceOp::kMax:
      return combine_ranks(to, numbers, parts, [](T a, T b) { return std::max(a, b); });
    case ReduceOp::kMin:
      return combine_ranks(to, numbers, parts, [](T a, T b) { return std::min(a, b); });
  }
}

}  // namespace

// What a rank tells the others. A rank writes only its own.
struct alignas(kLine) SharedMemory::Rank {
  std::atomic<std::uint64_t> begun, ended;  // number of operations
  std::atomic<std::int32_t> process;        // 0 until the rank has mapped the memory
};

// NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): each number has a cache line of its own
struct SharedMemory::Head {
  std::atomic<std::uint32_t> news;                    // changes when a rank tells something; the futex
  alignas(kLine) std::atomic<std::uint32_t> waiting;  // ranks that have to be woken
  char token[kTokenBytes];
  Rank ranks[kMostRanks];
};

// Which of the other processes have ended.
class SharedMemory::Peers {
 public:
  explicit Peers(int size) : descriptors_(static_cast<std::size_t>(size)) {}
  bool add(int rank, pid_t process) {
    descriptors_[static_cast<std::size_t>(rank)] =
        Descriptor(static_cast<int>(::syscall(SYS_pidfd_open, process, 0)));
    return static_cast<bool>(descriptors_[static_cast<std::size_t>(rank)]);
  }
  bool has_ended(int rank) const {
    pollfd one{descriptors_[static_cast<std::size_t>(rank)].get(), POLLIN, 0};
    return one.fd >= 0 && ::poll(&one, 1, 0) > 0;
  }

 private:
  std::vector<Descriptor> descriptors_;
};

SharedMemory::SharedMemory(void* memory, int rank, int size, std::chrono::milliseconds timeout)
    : memory_(memory), rank_(rank), size_(size), timeout_(timeout), peers_(std::make_unique<Peers>(size)) {
  static_assert(sizeof(Head) <= kHeadBytes && std::atomic<std::uint64_t>::is_always_lock_free);
}

SharedMemory::~SharedMemory() { ::munmap(memory_, memory_bytes(size_)); }

SharedMemory::Rank& SharedMemory::rank(int r) const { return static_cast<Head*>(memory_)->ranks[r]; }

std::byte* SharedMemory::part(std::uint64_t operation, int r) const {
  const std::size_t place =
      operation % kOperations * static_cast<std::size_t>(size_) + static_cast<std::size_t>(r);
  return static_cast<std::byte*>(memory_) + kHeadBytes + place * kMostBytes;
}

// Announced is "TOKEN PATH"; the token within the memory shows that the path leads to it here too.
std::unique_ptr<SharedMemory> SharedMemory::open(const Store& store, int rank, int size,
                                                 std::chrono::milliseconds timeout,
                                                 const std::function<void()>& meet) {
  constexpr const char* kPlace = "place";
  const auto make = [&](void* memory) {
    return std::unique_ptr<SharedMemory>(memory == nullptr ? nullptr
                                                           : new SharedMemory(memory, rank, size, timeout));
  };
  Descriptor descriptor;
  std::unique_ptr<SharedMemory> shared;
  if (rank == 0) {
    const std::string token = random_token().substr(0, kTokenBytes);
    descriptor = make_memory(size);
    shared = make(descriptor ? map(descriptor.get(), size) : nullptr);
    if (shared) std::copy(token.begin(), token.end(), static_cast<Head*>(shared->memory_)->token);
    const std::string place = concat(token, " /proc/", ::getpid(), "/fd/", descriptor.get());
    store->set(kPlace, std::vector<std::uint8_t>(place.begin(), place.end()));
  } else {
    const std::vector<std::uint8_t> bytes = store->get(kPlace);
    const std::string text(bytes.begin(), bytes.end()), token = text.substr(0, text.find(' '));
    descriptor = open_memory(text.substr(std::min(token.size() + 1, text.size())));
    shared = make(descriptor ? map(descriptor.get(), size) : nullptr);
    if (shared && std::string_view(static_cast<Head*>(shared->memory_)->token, token.size()) != token)
      shared.reset();
  }
  if (shared) shared->rank(rank).process.store(::getpid());
  meet();
  for (int r = 0; r < size && shared; ++r) {
    const pid_t process = shared->rank(r).process.load();
    if (r != rank && (process == 0 || !shared->peers_->add(r, process))) shared.reset();
  }
  return shared;
}

bool SharedMemory::takes(const at::Tensor& tensor) {
  const at::ScalarType type = tensor.scalar_type();
  return tensor.is_cpu() && (type == at::kFloat || type == at::kDouble || type == at::kLong) &&
         tensor.nbytes() > 0 && tensor.nbytes() <= kMostBytes;
}

// Wakes the ranks that wait. Follows a store to this rank's numbers.
void SharedMemory::tell() const {
  Head& head = *static_cast<Head*>(memory_);
  head.news.fetch_add(1);
  if (head.waiting.load() == 0) return;
  constexpr int kAll = 1 << 30;
  ::syscall(SYS_futex, &head.news, FUTEX_WAKE, kAll, nullptr, nullptr, 0);
}

// Waits until arrived(rank) is true of all ranks.
template <typename Condition>
void SharedMemory::wait_for_all(const Condition& arrived) {
  constexpr int kYields = 100;               // short waits without the system call of a futex
  constexpr long kLookAtPeers = 50'000'000;  // [ns]
  const Clock::time_point end = Clock::now() + timeout_;
  Head& head = *static_cast<Head*>(memory_);
  for (int r = 0; r < size_; ++r) {
    for (int k = 0; k < kYields && !arrived(rank(r)); ++k) std::this_thread::yield();
    while (!arrived(rank(r))) {
      // It may have arrived just before it ended.
      WD_CHECK(!peers_->has_ended(r) || arrived(rank(r)), "rank ", r, " has ended");
      WD_CHECK(Clock::now() < end, "rank ", r, " did not arrive within ",
               std::chrono::duration<double>(timeout_).count(), " s");
      head.waiting.fetch_add(1);
      const std::uint32_t news = head.news.load();
      const timespec most{0, kLookAtPeers};
      if (!arrived(rank(r))) ::syscall(SYS_futex, &head.news, FUTEX_WAIT, news, &most, nullptr, 0);
      head.waiting.fetch_sub(1);
    }
  }
}

std::uint64_t SharedMemory::begin(const at::Tensor& tensor, ReduceOp op) {
  const std::uint64_t operation = operations_;
  // The place of an operation is used again when every rank has ended it.
  if (operation >= kOperations) {
    const std::uint64_t ended = operation - kOperations + 1;
    while (!under_way_.empty() && under_way_.front().operation < ended) end(under_way_.front().operation);
    wait_for_all([&](const Rank& one) { return one.ended.load() >= ended; });
  }
  std::memcpy(part(operation, rank_), tensor.const_data_ptr(), tensor.nbytes());
  under_way_.push_back({operation, tensor, op});
  rank(rank_).begun.store(++operations_);
  tell();
  return operation;
}

void SharedMemory::end(std::uint64_t operation) {
  const auto found = std::find_if(under_way_.begin(), under_way_.end(),
                                  [&](const Begun& begun) { return begun.operation == operation; });
  if (found == under_way_.end()) return;  // ended before, to begin others
  finish(*found);
  under_way_.erase(found);
  rank(rank_).ended.store(under_way_.empty() ? operations_ : under_way_.front().operation);
  tell();
}

void SharedMemory::finish(const Begun& begun) {
  wait_for_all([&](const Rank& one) { return one.begun.load() > begun.operation; });
  const auto combine = [&]<typename T>(T* to) {
    std::vector<const T*> parts;
    for (int r = 0; r < size_; ++r) parts.push_back(reinterpret_cast<const T*>(part(begun.operation, r)));
    combine_ranks(to, static_cast<std::size_t>(begun.tensor.numel()), parts, begun.op);
  };
  switch (begun.tensor.scalar_type()) {
    case at::kFloat:
      return combine(begun.tensor.mutable_data_ptr<float>());
    case at::kDouble:
      return combine(begun.tensor.mutable_data_ptr<double>());
    default:
      return combine(begun.tensor.mutable_data_ptr<std::int64_t>());
  }
}

}  // namespace wd
