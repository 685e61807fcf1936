// block.h: runs the threads of one block as fibers and synchronizes them.
#pragma once

#include <exception>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "src/emulator/fiber.h"
#include "wd/emulator/emulation.h"

namespace wd::emulation {

// Chooses what runs next, in the requested order.
class Orderly {
 public:
  void set(Order order, std::uint64_t seed);
  // The numbers 0 .. n - 1, in order.
  std::vector<unsigned> all(unsigned n);
  // Adds threads that have met to the runnable threads, whose last element runs first: they run as far as
  // they can before other threads run. In shuffled order they may also be added behind all others.
  void add(std::vector<unsigned>& met, std::vector<unsigned>& ready);

 private:
  Order order_ = Order::kForward;
  std::mt19937_64 random_;
};

class Block {
 public:
  Block();

  // Runs body() in `num_threads` threads. Throws Divergence, and any exception of body().
  void run(unsigned num_threads, const std::function<void()>& body, Orderly& order);

  // --- Called by the threads of the block ---
  void meet_block(Place place) { arrive(all_, place); }
  void meet_lanes(unsigned mask, Place place);
  double exchange(unsigned mask, double value, unsigned from, Place place);
  // What a lane has of three matrices, on its own stack.
  struct Factors {
    float* sum = nullptr;
    const std::uint32_t *a = nullptr, *b = nullptr;
  };
  void multiply_add(Factors mine, int numbers, Place place);
  // Ends the block: its threads never continue. run() throws the failure.
  [[noreturn]] void fail(std::exception_ptr failure);

 private:
  struct Meeting {
    unsigned mask = 0;  // of lanes; 0: all threads of the block
    unsigned expected = 0;
    Place place{};
    std::vector<unsigned> arrived{};  // threads
  };
  struct Warp {
    unsigned present = 0;             // lanes
    std::vector<Meeting> meetings{};  // one per mask
  };
  struct Thread {
    Fiber* fiber = nullptr;  // from the thread's beginning to its end
    bool ended = false;
    Place place{};                    // of the last or the current meeting
    double brought = 0.0, got = 0.0;  // in an exchange
    unsigned from = 0;
    Factors factors{};
  };

  void begin(unsigned num_threads);
  void forget_fibers();
  void go_on(unsigned thread);
  void run_thread();
  Meeting& meeting_of(unsigned mask);
  void multiply_warp(unsigned first, int numbers);
  void arrive(Meeting& meeting, Place place);
  void release(Meeting& meeting);

  [[noreturn]] void complain(const char* of_what);
  void complain_of_waiting(const Meeting& meeting, unsigned first, unsigned count) const;
  std::string divergence(unsigned waiting, unsigned other) const;
  std::string where(unsigned thread) const;

  std::vector<Fiber> fibers_;
  std::vector<Fiber*> idle_;
  const std::function<void()>* body_ = nullptr;
  Orderly* order_ = nullptr;
  std::exception_ptr failure_;
  std::vector<Thread> threads_;
  std::vector<unsigned> ready_;  // runnable threads; the last one runs next
  unsigned current_ = 0, num_ended_ = 0;
  Meeting all_;
  std::vector<Warp> warps_;
};

}  // namespace wd::emulation
