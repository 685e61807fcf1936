// parallel.cpp: the thread pool. Idle threads spin briefly and then sleep, and no thread waits for one that
// has no work.
//
// The OpenMP pool that torch and MKL use spins at barriers, and each thread has a fixed share of the work.
// With other programs on the same cores, an iteration took ten times longer with it
// (docs/design/0006-thread-pool.md).
#include "wd/detail/parallel.h"

#include <ATen/Parallel.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "src/base/thread.h"
#include "wd/detail/profile.h"

namespace wd {

namespace {

thread_local bool inside_loop = false;

// One loop. Idle threads claim ranges of it.
struct Loop {
  std::int64_t n, range;
  void (*body)(void* context, std::int64_t begin, std::int64_t end);
  void* context;
  profile::Scope* scope;  // of the thread that began the loop; null if no profile is collected
  std::atomic<std::int64_t> next{0};
  std::exception_ptr error;
  std::mutex error_mutex;

  void work() {
    inside_loop = true;
    for (std::int64_t begin = next.fetch_add(range); begin < n; begin = next.fetch_add(range)) {
      try {
        body(context, begin, std::min(n, begin + range));
      } catch (...) {
        const std::lock_guard lock(error_mutex);
        if (!error) error = std::current_exception();
      }
    }
    inside_loop = false;
  }
};

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// Returns true as soon as the condition holds, or false if it does not hold within some microseconds.
template <typename Condition>
bool spin_until(Condition condition) {
  constexpr int kSpins = 2000;
  for (int i = 0; i < kSpins; ++i) {
    if (condition()) return true;
    relax();
  }
  return false;
}

class Pool {
 public:
  explicit Pool(int threads) {
    for (int i = 1; i < threads; ++i) threads_.push_back(start_thread([this] { serve(); }));
  }
  ~Pool() {
    {
      const std::lock_guard lock(mutex_);
      closing_ = true;
      ++posted_;
    }
    wake_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  int size() const { return static_cast<int>(threads_.size()) + 1; }

  void run(Loop& loop) {
    {
      const std::lock_guard lock(mutex_);
      loop_ = &loop;
      ++posted_;
    }
    wake_.notify_all();
    loop.work();
    {
      const std::lock_guard lock(mutex_);
      loop_ = nullptr;  // threads that wake up from here on find no work
    }
    if (!spin_until([&] { return busy_.load() == 0; })) {
      for (int busy = busy_.load(); busy != 0; busy = busy_.load()) busy_.wait(busy);
    }
    if (loop.error) std::rethrow_exception(loop.error);
  }

 private:
  void serve() {
    at::init_num_threads();
    // Autograd dispatch costs two thirds of the time of a small operation.
    const at::AutoDispatchBelowADInplaceOrView no_autograd;
    std::uint64_t seen = 0;
    while (true) {
      spin_until([&] { return posted_.load() != seen; });
      std::unique_lock lock(mutex_);
      // wait() without a limit needs gcc 12's libstdc++, and systems with glibc 2.34 have that of gcc 11.
      while (!wake_.wait_for(lock, std::chrono::hours(1), [&] { return posted_.load() != seen; })) continue;
      seen = posted_.load();
      if (closing_) return;
      Loop* const loop = loop_;
      if (loop == nullptr) continue;
      ++busy_;
      lock.unlock();
      {
        const profile::Scope share(loop->scope);
        loop->work();
      }
      if (--busy_ == 0) busy_.notify_all();
    }
  }

  std::vector<std::thread> threads_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::atomic<std::uint64_t> posted_{0};  // number of loops so far
  std::atomic<int> busy_{0};              // pool threads that work on loop_
  Loop* loop_ = nullptr;
  bool closing_ = false;
};

// The pool is never destroyed. At exit its threads sleep, and joining them could wait for a loop that exit()
// interrupted.
std::unique_ptr<Pool>& pool() {
  static auto& pool = *new std::unique_ptr<Pool>();
  return pool;
}

Pool& started_pool() {
  if (!pool()) set_num_threads(available_processors());
  return *pool();
}

}  // namespace

void parallel_for(std::int64_t n, std::int64_t grain,
                  void (*body)(void* context, std::int64_t begin, std::int64_t end), void* context) {
  if (n <= 0) return;
  if (inside_loop || n <= grain) return body(context, 0, n);
  Pool& threads = started_pool();
  if (threads.size() == 1) return body(context, 0, n);
  constexpr std::int64_t kRangesPerThread = 4;  // slack for threads that start late
  const std::int64_t share =
      (n + threads.size() * kRangesPerThread - 1) / (threads.size() * kRangesPerThread);
  Loop loop{n, std::max(grain, share), body, context, profile::Scope::current(), {}, {}, {}};
  threads.run(loop);
}

LoopsAlone::LoopsAlone() {
  at::init_num_threads();
  inside_loop = true;
}
LoopsAlone::~LoopsAlone() { inside_loop = false; }

int available_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof(set), &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}

// Starts none: they start with the first loop.
int num_threads() {
  if (pool()) return pool()->size();
  at::set_num_threads(1);
  return available_processors();
}

void set_num_threads(int threads) {
  at::set_num_threads(1);
  if (pool() && pool()->size() == threads) return;
  pool() = std::make_unique<Pool>(std::max(1, threads));
}

void share_threads(int wanted, int local_workers) {
  if (wanted > 0) return set_num_threads(wanted);
  if (local_workers > 1) set_num_threads(std::max(1, num_threads() / local_workers));
}

}  // namespace wd
