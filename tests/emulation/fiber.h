// fiber.h: a function with a stack of its own, which runs until it pauses, and later goes on from there.
#pragma once

#include <ucontext.h>

#include <csetjmp>
#include <cstddef>

namespace emulation {

// What a fiber that is forgotten had on its stack is not destroyed.
class Fiber {
 public:
  using Function = void (*)();

  Fiber(std::byte* stack, std::size_t bytes, Function function)
      : stack_(stack), bytes_(bytes), function_(function) {}

  // Goes on where the fiber paused; calls the function if that has returned, or never began. Returns when the
  // fiber pauses or the function returns. Not to be called on a fiber.
  void resume();
  // Goes back to resume(), and returns with the next resume(). Called on the fiber that runs.
  static void pause();
  // The next resume() begins anew, whatever the fiber was about.
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
