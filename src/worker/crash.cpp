// crash.cpp: writes where a worker was when it crashed, or when its launcher asked, into its slot from a
// signal handler; without a launcher, to stderr and error.json.
//
// backtrace() and dladdr() are not async-signal-safe according to the standard: they may take the loader's
// lock. The worker is lost anyway, and the launcher does not wait for anything that this writes.
#include <dlfcn.h>
#include <execinfo.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "src/worker/last_words.h"
#include "src/worker/status.h"
#include "src/worker/text.h"
#include "wd/heartbeat.h"

namespace wd::heartbeat {
namespace {

using launcher::Text;
using launcher::WorkerStatus;

constexpr int kMaxFrames = 64;
constexpr std::size_t kStackBytes = 64 * 1024;  // for stack overflows of the main thread

WorkerStatus* slot = nullptr;
std::atomic<pid_t> crashing{0};  // the thread that reports

// Writes "libwd.so.0+0x1234 NAME", as addr2line and c++filt accept it; the name is missing if the symbol is
// not exported.
void add_frame(Text& text, void* address) {
  Dl_info info{};
  if (::dladdr(address, &info) == 0 || info.dli_fname == nullptr) {
    text.add_hex(reinterpret_cast<std::uintptr_t>(address));
    text.add("\n");
    return;
  }
  const std::string_view path = info.dli_fname;
  text.add(path.substr(path.rfind('/') + 1));
  text.add("+");
  text.add_hex(reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(info.dli_fbase));
  if (info.dli_sname != nullptr) {
    text.add(" ");
    text.add(info.dli_sname);
  }
  text.add("\n");
}

std::uintptr_t interrupted_at([[maybe_unused]] const void* context) {
#if defined(__x86_64__)
  return static_cast<std::uintptr_t>(static_cast<const ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP]);
#elif defined(__aarch64__)
  return static_cast<const ucontext_t*>(context)->uc_mcontext.pc;
#else
  return 0;
#endif
}

// Writes the frames below the handler's own.
void write_backtrace(const void* context) {
  std::array<void*, kMaxFrames> frames{};
  const int count = ::backtrace(frames.data(), kMaxFrames);
  auto* const end = frames.begin() + count;
  const std::uintptr_t there = interrupted_at(context);
  auto* first = std::find_if(
      frames.begin(), end, [there](void* frame) { return reinterpret_cast<std::uintptr_t>(frame) == there; });
  if (first == end) first = frames.begin();
  Text text(slot->backtrace.data(), slot->backtrace.size());
  for (; first != end; ++first) add_frame(text, *first);
}

std::string_view name_of(int signal) {
  switch (signal) {
    case SIGSEGV:
      return "segmentation fault";
    case SIGBUS:
      return "bus error";
    case SIGILL:
      return "illegal instruction";
    case SIGFPE:
      return "arithmetic fault";
    default:
      return "aborted";
  }
}

// `memory` holds the returned text.
std::string_view message_of(int signal, const siginfo_t& info, std::array<char, 128>& memory) {
  {
    Text text(memory.data(), memory.size());
    text.add(name_of(signal));
    if (info.si_code > 0) {  // raised by the processor, not by raise() or kill()
      text.add(" at ");
      text.add_hex(reinterpret_cast<std::uintptr_t>(info.si_addr));
    }
  }
  return memory.data();
}

// Ends the process as the signal does by default, so that its exit status names the signal.
[[noreturn]] void die_of(int signal) {
  ::signal(signal, SIG_DFL);
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, signal);
  ::pthread_sigmask(SIG_UNBLOCK, &one, nullptr);
  ::raise(signal);
  ::_exit(128 + signal);
}

void on_crash(int signal, siginfo_t* info, void* context) {
  pid_t nobody = 0;
  if (!crashing.compare_exchange_strong(nobody, ::gettid())) {
    while (nobody != ::gettid()) ::pause();  // another thread's crash is being reported
    die_of(signal);                          // the report itself crashed
  }
  std::array<char, 128> memory{};
  const std::string_view message = message_of(signal, *info, memory);
  launcher::report_failure(*slot, message, false);
  write_backtrace(context);
  slot->has_backtrace.store(1);
  if (launcher::launched_status() == nullptr) launcher::write_last_words(message, signal);
  die_of(signal);
}

void on_question(int, siginfo_t*, void* context) {
  const int cause = errno;
  write_backtrace(context);
  slot->has_backtrace.store(1);
  errno = cause;
}

void handle(int signal, void (*handler)(int, siginfo_t*, void*), int flags) {
  struct sigaction action{};
  action.sa_sigaction = handler;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | flags;
  sigemptyset(&action.sa_mask);
  ::sigaction(signal, &action, nullptr);
}

}  // namespace

void watch_crashes() {
  slot = &launcher::worker_status();
  std::array<void*, 1> frame{};
  ::backtrace(frame.data(), 1);  // loads the unwinder, which must not happen in a handler

  static std::array<char, kStackBytes> memory;
  stack_t stack{};
  stack.ss_sp = memory.data();
  stack.ss_size = memory.size();
  ::sigaltstack(&stack, nullptr);
  for (const int signal : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT}) handle(signal, on_crash, SA_NODEFER);
  if (launcher::launched_status() != nullptr) handle(SIGQUIT, on_question, SA_RESTART);
}

}  // namespace wd::heartbeat
