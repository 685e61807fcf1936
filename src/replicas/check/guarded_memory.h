// guarded_memory.h: memory between pages that nobody may touch: an index that leaves its array ends in a
// fault with an address.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace wd {

class GuardedMemory {
 public:
  // Room for offsets from 0 to bytes - 1, of which none can be used yet, and as much on either side as an
  // index of 32 bits reaches. `at_page`: the offset at which a page begins; what lies next to it is found to
  // the byte.
  GuardedMemory(std::size_t bytes, std::size_t at_page);
  ~GuardedMemory();
  GuardedMemory(GuardedMemory&& other) noexcept;
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;

  // These bytes can be used from now on, and so can the rest of their pages.
  void open(std::size_t offset, std::size_t bytes);
  // Sets all bytes of pages that can be used.
  void set(int byte);

  std::byte* data() const { return data_; }  // offset 0
  bool holds(const void* address) const;     // within reach of an index
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

// Of a page.
std::size_t page_bytes();
// Up to a whole page.
std::size_t whole_pages(std::size_t bytes);

}  // namespace wd
