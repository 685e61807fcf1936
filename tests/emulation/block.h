// block.h: the threads of one block as fibers, and where they meet.
#pragma once

#include <exception>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "tests/emulation/emulation.h"
#include "tests/emulation/fiber.h"

namespace emulation {

// What comes next, in the order that was asked for.
class Orderly {
 public:
  void set(Order order, std::uint64_t seed);
  // Numbers 0 .. n - 1.
  std::vector<unsigned> all(unsigned n);
  // Adds threads that have met to those that can go on, of which the last goes first: so they go as far
  // as they can before others move at all. Shuffled, they may also come after all others.
  void add(std::vector<unsigned>& met, std::vector<unsigned>& ready);

 private:
  Order order_ = Order::kForward;
  std::mt19937_64 random_;
};

class Block {
 public:
  Block();

  // Runs body() in so many threads. Throws Divergence, and what body() throws.
  void run(unsigned num_threads, const std::function<void()>& body, Orderly& order);

  // --- For the threads that run ---
  void meet_block(Place place) { arrive(all_, place); }
  void meet_lanes(unsigned mask, Place place);
  double exchange(unsigned mask, double value, unsigned from, Place place);
  // Ends the block: its threads never go on. run() throws the failure.
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
    std::vector<Meeting> meetings{};  // one a mask
  };
  struct Thread {
    Fiber* fiber = nullptr;  // from its beginning to its end
    bool ended = false;
    Place place{};                    // where it met others last, or waits
    double brought = 0.0, got = 0.0;  // in an exchange
    unsigned from = 0;
  };

  void begin(unsigned num_threads);
  void forget_fibers();
  void go_on(unsigned thread);
  void run_thread();
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
  std::vector<unsigned> ready_;  // threads that can go on, the next one last
  unsigned current_ = 0, num_ended_ = 0;
  Meeting all_;
  std::vector<Warp> warps_;
};

}  // namespace emulation
