// fiber.h: a function with a stack of its own, that runs until it pauses and goes on from there.
#pragma once

#include <ucontext.h>

#include <csetjmp>
#include <cstddef>

namespace emulation {

// Of threads that never go on, stacks are simply forgotten: their frames must not own anything.
class Fiber {
 public:
  // run(), again and again; each time it returns, it must have been told by resume() to begin.
  using Function = void (*)();

  Fiber(std::byte* stack, std::size_t bytes, Function function)
      : stack_(stack), bytes_(bytes), function_(function) {}

  // Goes on where the fiber paused, or begins. Returns when it pauses. Not called on a fiber.
  void resume();
  // Goes back to resume(), and returns with the next one. Called on the fiber that runs.
  static void pause();
  // The next resume() begins anew.
  void forget() { begun_ = false; }

 private:
  static void enter();
  [[gnu::noinline]] void begin();

  std::byte* stack_;
  std::size_t bytes_;
  Function function_;
  bool begun_ = false;
  std::jmp_buf paused_;
};

}  // namespace emulation
