// guarded_memory.cpp: reserves memory without access by mmap(2), and opens parts of it by mprotect(2).
#include "src/replicas/check/guarded_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "wd/error.h"

namespace wd {
namespace {

// 2^31 values of 8 bytes. This is only address space; the thread sanitizer has little of it.
#if defined(__SANITIZE_THREAD__)
constexpr std::size_t kReach = std::size_t{1} << 28;
#else
constexpr std::size_t kReach = std::size_t{1} << 34;
#endif
constexpr std::size_t kMinReach = std::size_t{1} << 20;  // if address space is limited (ulimit -v)

std::byte* reserve(std::size_t bytes) {
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void* const map = ::mmap(nullptr, bytes, PROT_NONE, kFlags, -1, 0);
  return map == MAP_FAILED ? nullptr : static_cast<std::byte*>(map);
}

}  // namespace

std::size_t page_bytes() {
  static const auto bytes = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
}

std::size_t whole_pages(std::size_t bytes) {
  return (bytes + page_bytes() - 1) / page_bytes() * page_bytes();
}

GuardedMemory::GuardedMemory(std::size_t bytes, std::size_t at_page) {
  const std::size_t inside = whole_pages(bytes) + 2 * page_bytes();
  std::size_t reach = kReach;
  for (; map_ == nullptr; reach /= 16) {
    WD_CHECK(reach >= kMinReach, "no address space for the check of indices: ", std::strerror(errno));
    map_bytes_ = inside + 2 * reach;
    map_ = reserve(map_bytes_);
    if (map_ != nullptr) break;
  }
  const std::size_t beyond_page = at_page % page_bytes();
  data_ = map_ + reach + (beyond_page == 0 ? 0 : page_bytes() - beyond_page);
}

GuardedMemory::~GuardedMemory() {
  if (map_ != nullptr) ::munmap(map_, map_bytes_);
}

GuardedMemory::GuardedMemory(GuardedMemory&& other) noexcept
    : map_(std::exchange(other.map_, nullptr)),
      data_(other.data_),
      map_bytes_(other.map_bytes_),
      open_(std::move(other.open_)) {}

void GuardedMemory::open(std::size_t offset, std::size_t bytes) {
  if (bytes == 0) return;
  const auto first = static_cast<std::size_t>(data_ - map_) + offset;
  std::byte* const begin = map_ + first / page_bytes() * page_bytes();
  const std::size_t length = whole_pages(static_cast<std::size_t>(map_ + first + bytes - begin));
  WD_CHECK(::mprotect(begin, length, PROT_READ | PROT_WRITE) == 0,
           "no memory for the check of indices: ", std::strerror(errno));
  open_.push_back({begin, length});
}

void GuardedMemory::set(int byte) {
  for (const Range& range : open_) std::memset(range.begin, byte, range.bytes);
}

bool GuardedMemory::holds(const void* address) const {
  const auto* const at = static_cast<const std::byte*>(address);
  return at >= map_ && at < map_ + map_bytes_;
}

}  // namespace wd
