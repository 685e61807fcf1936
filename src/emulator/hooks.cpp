// hooks.cpp: the functions that code compiled with -fsanitize=thread calls at each access. Compiled without
// it.
#include <cstddef>
#include <cstdint>
#include <exception>
#include <utility>

#include "src/emulator/races.h"
#include "wd/emulator/emulation.h"
#include "wd/error.h"

namespace wd::emulation {

namespace {

// On the fiber of a thread: what check() throws ends the launch.
template <typename Check>
void checked(Check check) {
  std::exception_ptr thrown;
  try {
    check();
  } catch (...) {
    thrown = std::current_exception();
  }
  if (thrown != nullptr) fail(std::move(thrown));
}

void check_alignment(const void* address, std::size_t bytes) {
  if (reinterpret_cast<std::uintptr_t>(address) % bytes == 0) return;
  throw BadAccess(wd::concat("thread ", here.thread.x, " of block (", here.block.x, ", ", here.block.y, ", ",
                             here.block.z, ") accesses ", bytes, " bytes at ", address,
                             ", which is not a multiple of ", bytes));
}

// `aligned`: the type is aligned to its size, so a GPU uses one access for it.
void at_access(const void* address, std::size_t bytes, bool writes, bool aligned, const void* caller) {
  if (!Races::active) return;
  checked([&] {
    if (aligned) check_alignment(address, bytes);
    check_shared(address, bytes);
    Races::instance().access(address, bytes, writes ? AccessKind::kWrite : AccessKind::kRead, caller);
  });
}

}  // namespace

void at_atomic(const void* address, std::size_t bytes, const void* caller) {
  if (!Races::active) return;
  checked([&] {
    check_alignment(address, bytes);
    check_shared(address, bytes);
    Races::instance().atomic(address, bytes, caller);
  });
}

void at_read_of_l2(const void* address, std::size_t bytes, const void* caller) {
  if (!Races::active) return;
  checked([&] {
    check_alignment(address, bytes);
    check_shared(address, bytes);
    Races::instance().access(address, bytes, AccessKind::kReadOfL2, caller);
  });
}

}  // namespace wd::emulation

// The compiler calls these names.
#define WD_HOOK(name, bytes, writes, aligned)                                               \
  void __tsan_##name##bytes(void* address) {                                                \
    wd::emulation::at_access(address, bytes, writes, aligned, __builtin_return_address(0)); \
  }
#define WD_HOOKS(bytes)                        \
  WD_HOOK(read, bytes, false, true)            \
  WD_HOOK(write, bytes, true, true)            \
  WD_HOOK(unaligned_read, bytes, false, false) \
  WD_HOOK(unaligned_write, bytes, true, false) \
  WD_HOOK(volatile_read, bytes, false, true)   \
  WD_HOOK(volatile_write, bytes, true, true)

// Atomics of C++, which host code in the same sources uses. Device code uses those of CUDA.
// NOLINTBEGIN(bugprone-macro-parentheses): T is a type
#define WD_ATOMIC(bits, T)                                                                                   \
  T __tsan_atomic##bits##_load(const volatile T* from, int) { return __atomic_load_n(from, 5); }             \
  void __tsan_atomic##bits##_store(volatile T* to, T value, int) { __atomic_store_n(to, value, 5); }         \
  T __tsan_atomic##bits##_exchange(volatile T* to, T value, int) {                                           \
    return __atomic_exchange_n(to, value, 5);                                                                \
  }                                                                                                          \
  T __tsan_atomic##bits##_fetch_add(volatile T* to, T value, int) {                                          \
    return __atomic_fetch_add(to, value, 5);                                                                 \
  }                                                                                                          \
  T __tsan_atomic##bits##_fetch_sub(volatile T* to, T value, int) {                                          \
    return __atomic_fetch_sub(to, value, 5);                                                                 \
  }                                                                                                          \
  T __tsan_atomic##bits##_fetch_or(volatile T* to, T value, int) { return __atomic_fetch_or(to, value, 5); } \
  T __tsan_atomic##bits##_fetch_and(volatile T* to, T value, int) {                                          \
    return __atomic_fetch_and(to, value, 5);                                                                 \
  }                                                                                                          \
  int __tsan_atomic##bits##_compare_exchange_strong(volatile T* to, T* expected, T value, int, int) {        \
    return static_cast<int>(__atomic_compare_exchange_n(to, expected, value, false, 5, 5));                  \
  }                                                                                                          \
  int __tsan_atomic##bits##_compare_exchange_weak(volatile T* to, T* expected, T value, int, int) {          \
    return static_cast<int>(__atomic_compare_exchange_n(to, expected, value, true, 5, 5));                   \
  }
// NOLINTEND(bugprone-macro-parentheses)

extern "C" {
// NOLINTBEGIN(bugprone-reserved-identifier)
WD_HOOKS(1)
WD_HOOKS(2)
WD_HOOKS(4)
WD_HOOKS(8)
WD_HOOKS(16)
void __tsan_read_range(void* address, std::size_t bytes) {
  wd::emulation::at_access(address, bytes, false, false, __builtin_return_address(0));
}
void __tsan_write_range(void* address, std::size_t bytes) {
  wd::emulation::at_access(address, bytes, true, false, __builtin_return_address(0));
}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_init() {}
WD_ATOMIC(8, char)
WD_ATOMIC(16, short)
WD_ATOMIC(32, int)
WD_ATOMIC(64, long)
// NOLINTEND(bugprone-reserved-identifier)
}
