// fiber.cpp: fibers that are created by ucontext and switched by setjmp. swapcontext() makes a system call
// for the signal mask each time and takes 700 ns for a round trip instead of 50 (measured on the machine of
// design/0018).
// With _FORTIFY_SOURCE, longjmp() can only go up the stack.
#undef _FORTIFY_SOURCE

#include "src/emulator/fiber.h"

#include <stdexcept>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace wd::emulation {

namespace {

std::jmp_buf resumed;
Fiber* running = nullptr;

struct Stack {
  const void* bottom = nullptr;
  std::size_t bytes = 0;
};
Stack caller;  // of resume()

// AddressSanitizer must know which stack is in use.
#ifdef __SANITIZE_ADDRESS__
void leave_for(const Stack& stack, void** kept) {
  __sanitizer_start_switch_fiber(kept, stack.bottom, stack.bytes);
}
void arrive_at_fiber(void* kept) { __sanitizer_finish_switch_fiber(kept, &caller.bottom, &caller.bytes); }
void arrive_at_caller(void* kept) { __sanitizer_finish_switch_fiber(kept, nullptr, nullptr); }
void forget_frames(void* stack, std::size_t bytes) { __asan_unpoison_memory_region(stack, bytes); }
#else
void leave_for(const Stack&, void**) {}
void arrive_at_fiber(void*) {}
void arrive_at_caller(void*) {}
void forget_frames(void*, std::size_t) {}
#endif

}  // namespace

void Fiber::resume() {
  running = this;
  void* kept = nullptr;
  leave_for({stack_, bytes_}, &kept);
  if (_setjmp(resumed) != 0) return arrive_at_caller(kept);
  if (begun_) _longjmp(paused_, 1);
  begin();
}

void Fiber::begin() {
  begun_ = true;
  ucontext_t context;
  if (getcontext(&context) != 0) throw std::runtime_error("getcontext() failed");
  context.uc_stack.ss_sp = stack_;
  context.uc_stack.ss_size = bytes_;
  context.uc_link = nullptr;
  makecontext(&context, enter, 0);
  setcontext(&context);
}

void Fiber::enter() {
  arrive_at_fiber(nullptr);
  for (;;) {
    running->function_();
    pause();
  }
}

void Fiber::pause() {
  void* kept = nullptr;
  leave_for(caller, &kept);
  if (_setjmp(running->paused_) == 0) _longjmp(resumed, 1);
  arrive_at_fiber(kept);
}

void Fiber::forget() {
  begun_ = false;
  forget_frames(stack_, bytes_);
}

}  // namespace wd::emulation
