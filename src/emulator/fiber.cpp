// fiber.cpp: fibers that are created by ucontext and switched by setjmp. swapcontext() makes a system call
// for the signal mask each time and takes 700 ns for a round trip instead of 50 (measured on the machine of
// design/0018).
// With _FORTIFY_SOURCE, longjmp() can only go up the stack.
#undef _FORTIFY_SOURCE

#include "src/emulator/fiber.h"

#include <stdexcept>

namespace wd::emulation {

namespace {

std::jmp_buf resumed;
Fiber* running = nullptr;

}  // namespace

void Fiber::resume() {
  running = this;
  if (_setjmp(resumed) != 0) return;
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
  for (;;) {
    running->function_();
    pause();
  }
}

void Fiber::pause() {
  if (_setjmp(running->paused_) == 0) _longjmp(resumed, 1);
}

}  // namespace wd::emulation
