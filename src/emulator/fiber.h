// fiber.h: a function with its own stack, which runs until it pauses and can be resumed there.
#pragma once

#include <ucontext.h>

#include <csetjmp>
#include <cstddef>

namespace wd::emulation {

// Objects on the stack of a forgotten fiber are not destroyed.
class Fiber {
 public:
  using Function = void (*)();

  Fiber(std::byte* stack, std::size_t bytes, Function function)
      : stack_(stack), bytes_(bytes), function_(function) {}

  // Continues where the fiber paused; calls the function if it has returned or has not started. Returns when
  // the fiber pauses or the function returns. Must not be called on a fiber.
  void resume();
  // Switches back to resume(), and returns at the next resume(). Called on the running fiber.
  static void pause();
  // The next resume() starts over, whatever the fiber's state.
  void forget();

 private:
  static void enter();
  // It does not return, so AddressSanitizer must not mark its frame.
  [[gnu::noinline, gnu::no_sanitize_address]] void begin();

  std::byte* stack_;
  std::size_t bytes_;
  Function function_;
  bool begun_ = false;
  std::jmp_buf paused_;
};

}  // namespace wd::emulation
