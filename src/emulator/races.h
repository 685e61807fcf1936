// races.h: finds accesses of two threads to the same byte that no barrier orders.
//
// Device sources are compiled with -fsanitize=thread, so that every access calls a hook (hooks.cpp). The
// hooks are ours: libtsan is not linked. CUDA's order is simpler than that of threads, and messages can use
// its terms.
//
// Two accesses to one byte are ordered if they are
// - of the same thread, and not of two items of one phase (which other block sizes give to different
//   threads);
// - of the same block, with __syncthreads() between;
// - of the same warp, with a __syncwarp() or a shuffle of both lanes between;
// - of different blocks, with a __threadfence() after the first, an atomic by the same thread after that,
//   and an atomic to the same address by the second before.
// Otherwise they race if at least one writes and at least one is not atomic. A plain read of what another
// block has written in the same launch is refused in any order: it may find an older value in the cache of
// its multiprocessor (L1). __ldcg() reads past that. For each byte the last write and two reads by different
// threads are kept, which finds every race of barriers of the block.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <source_location>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace wd::emulation {

using Place = std::source_location;

// Two threads race. what() names both threads, what they did, and where.
class Race : public std::runtime_error {
 public:
  struct Access {
    std::string what;  // "writes"
    unsigned block = 0, thread = 0;
    int item = -1, other = -1;  // of the phase: f(item) or f(item, other); -1: none
    std::string phase;          // file:line of the phase, or of the last barrier; may be empty
    std::string line;           // file:line of the access; empty if there is no addr2line
  };
  Race(const void* address, const Access& first, const Access& second, std::string_view why);

  const void* address() const { return address_; }
  const Access& first() const { return first_; }
  const Access& second() const { return second_; }

 private:
  const void* address_;
  Access first_, second_;
};

// file:line of the instruction before this one, outside of the contract's own headers; empty if there is no
// addr2line or it does not know.
std::string line_of(const void* instruction);

enum class AccessKind { kRead, kReadOfL2, kWrite };

class Races {
 public:
  // One for the process.
  static Races& instance();

  // From the next launch on. Accesses cost about 30 ns each while races are looked for.
  void enable(bool on) { enabled_ = on; }
  // Accesses within are not looked at: stacks of fibers.
  void ignore(const void* from, std::size_t bytes);

  // --- For the emulation ---
  void begin_launch();
  // `shared`: memory that each block finds new.
  void begin_block(unsigned block, unsigned num_threads, const void* shared, std::size_t bytes);
  void end_launch() { active = false; }
  // These threads of the block, or all if there are none, have met.
  void met(const std::vector<unsigned>& threads);
  void fence();
  // The running thread begins an item of a phase, or ends its items: -1.
  void at_item(int item, int other, Place phase);

  // The item of the running thread: {-1, -1} outside of phases, and while no races are looked for.
  struct Item {
    int item = -1, other = -1;
  };
  Item item();

  // --- For the hooks ---
  static inline bool active = false;  // a launch runs, and races are looked for
  // `caller`: an instruction of the kernel. They throw Race.
  void access(const void* address, std::size_t bytes, AccessKind how, const void* caller);
  void atomic(const void* address, std::size_t bytes, const void* caller);

 private:
  // What accesses between two events of a thread have in common. Numbered by time.
  struct Segment {
    std::uint32_t block, epoch;  // barriers of the block before it
    std::uint32_t clock;         // meetings of the lane before it
    std::uint16_t thread;
    int item, other;
    Place phase;
  };
  using Id = std::uint32_t;  // of a segment; bit 31: the access is atomic; 0: none
  static constexpr Id kAtomic = Id{1} << 31;
  struct Cell {
    Id write = 0, read[2] = {0, 0};
    std::uint32_t write_at = 0, read_at[2] = {0, 0};  // code, relative to base_
  };
  // A word of 4 bytes has one cell until a part of it is accessed, and one per byte from then on.
  static constexpr std::size_t kWord = 4, kWords = 256, kPage = kWord * kWords;
  struct Page {
    std::array<Cell, kWords> words{};
    std::array<bool, kWords> split{};
    std::unique_ptr<std::array<Cell, kPage>> bytes{};
  };

  // What happened before in another block: all up to an epoch, and of one thread up to a segment.
  struct Seen {
    std::uint32_t epoch = 0;
    std::map<std::uint16_t, Id> threads{};
  };
  using Blocks = std::map<std::uint32_t, Seen>;
  struct Thread {
    Id segment = 0;                        // 0: the next access begins one
    std::array<std::uint32_t, 32> seen{};  // clocks of the warp's lanes
    int item = -1, other = -1;
    Place phase{};
    Blocks blocks{}, fenced{};
  };

  Thread& running();
  Id segment();
  template <typename Visit>
  void cells_of(std::uintptr_t from, std::size_t bytes, Visit visit);
  void visit(Cell& cell, AccessKind how, Id id, std::uint32_t at, std::uintptr_t address);
  bool ordered(Id earlier, Id id) const;
  static void merge(Blocks& into, const Blocks& from);
  [[noreturn]] void report(std::uintptr_t address, Id earlier, AccessKind earlier_how,
                           std::uint32_t earlier_at, Id id, AccessKind how, std::uint32_t at) const;
  Race::Access access_of(Id id, AccessKind how, std::uint32_t at) const;
  Page& page_of(std::uintptr_t address);

  bool enabled_ = false;
  std::uintptr_t ignored_from_ = 0, ignored_to_ = 0, shared_from_ = 0, shared_to_ = 0;
  std::vector<Segment> segments_{Segment{}};
  Id first_of_launch_ = 1, first_of_block_ = 1;
  std::uint32_t block_ = 0, epoch_ = 0;
  std::vector<Thread> threads_;
  Blocks known_;                                         // to all threads of the block
  std::unordered_map<std::uintptr_t, Blocks> released_;  // by address of an atomic
  std::unordered_map<std::uintptr_t, std::unique_ptr<Page>> pages_;
  std::uintptr_t last_page_ = 0;  // the page that was looked up last, and where it is
  Page* last_ = nullptr;
};

}  // namespace wd::emulation
