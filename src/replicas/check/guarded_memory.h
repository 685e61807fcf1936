// guarded_memory.h: memory between inaccessible pages, so that an index that leaves its array causes a fault
// with an address.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace wd {

class GuardedMemory {
 public:
  // Reserves room for offsets from 0 to bytes - 1, none of which can be used yet, and on either side as much
  // as a 32-bit index can reach. `at_page`: the offset at which a page begins; accesses next to it are
  // detected to the byte.
  GuardedMemory(std::size_t bytes, std::size_t at_page);
  ~GuardedMemory();
  GuardedMemory(GuardedMemory&& other) noexcept;
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;

  // Makes these bytes usable, and with them the rest of their pages.
  void open(std::size_t offset, std::size_t bytes);
  // Sets all bytes of the usable pages.
  void set(int byte);

  std::byte* data() const { return data_; }  // offset 0
  bool holds(const void* address) const;     // true if the address is within reach of an index
  std::int64_t offset_of(const void* address) const { return static_cast<const std::byte*>(address) - data_; }

 private:
  struct Range {
    std::byte* begin;
    std::size_t bytes;
  };
  std::byte *map_ = nullptr, *data_ = nullptr;
  std::size_t map_bytes_ = 0;
  std::vector<Range> open_;
};

// Size of a page in bytes.
std::size_t page_bytes();
// Rounds up to whole pages.
std::size_t whole_pages(std::size_t bytes);

}  // namespace wd
