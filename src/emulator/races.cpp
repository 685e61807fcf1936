// races.cpp: remembers who accessed which byte, and compares.
#include "src/emulator/races.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "wd/emulator/emulation.h"
#include "wd/error.h"

namespace wd::emulation {

namespace {

using wd::concat;

constexpr unsigned kWarp = 32;
// Segments are numbered by 31 bits, and take 64 bytes each.
constexpr std::size_t kMaxSegments = std::size_t{1} << 24;
// Pages take 6.5 kB each, or 31 kB. Those of freed memory go only when there are so many.
constexpr std::size_t kMaxPages = std::size_t{1} << 16;

std::string text(const Place& place) {
  return place.line() == 0 ? "" : concat(place.file_name(), ':', place.line());
}

// Code is 4 GiB around this function.
std::uintptr_t base() {
  return reinterpret_cast<std::uintptr_t>(&Races::instance) - (std::uintptr_t{1} << 31);
}

std::string line_of(std::uint32_t at) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): accesses are kept as numbers
  return emulation::line_of(reinterpret_cast<const void*>(base() + at));
}

std::string describe(const Race::Access& access) {
  std::string who = concat("thread ", access.thread, " of block ", access.block);
  if (access.other >= 0)
    who += concat(", which runs f(", access.item, ", ", access.other, "),");
  else if (access.item >= 0)
    who += concat(", which runs f(", access.item, "),");
  const std::string where = !access.line.empty()    ? concat(" at ", access.line)
                            : !access.phase.empty() ? concat(" in or after the phase at ", access.phase)
                                                    : "";
  return concat(who, ' ', access.what, where);
}

}  // namespace

std::string line_of(const void* instruction) {
  const std::uintptr_t address = reinterpret_cast<std::uintptr_t>(instruction) - 1;  // within the call
  Dl_info info;
  // NOLINTNEXTLINE(performance-no-int-to-ptr): hooks get addresses as numbers
  if (dladdr(reinterpret_cast<void*>(address), &info) == 0 || info.dli_fname == nullptr) return "";
  if (std::strchr(info.dli_fname, '\'') != nullptr) return "";  // the shell would end the path there
  char command[4352];
  std::snprintf(command, sizeof command, "addr2line -i -e '%s' %#zx 2>/dev/null", info.dli_fname,
                address - reinterpret_cast<std::uintptr_t>(info.dli_fbase));
  std::FILE* const pipe = popen(command, "r");
  if (pipe == nullptr) return "";
  // Callers follow the functions that were inlined into them. The first line outside of the contract's own
  // headers is the author's.
  std::string innermost, found;
  char line[4096];
  while (std::fgets(line, sizeof line, pipe) != nullptr) {
    std::string place = line;
    place.erase(std::min(place.find_first_of("\n ("), place.size()));  // "(discriminator 3)"
    if (place.empty() || place[0] == '?') continue;
    if (innermost.empty()) innermost = place;
    if (found.empty() && place.find("/include/wd/") == std::string::npos) found = place;
  }
  pclose(pipe);
  return found.empty() ? innermost : found;
}

Race::Race(const void* address, const Access& first, const Access& second, std::string_view why)
    : std::runtime_error(concat("a race on the byte at ", address, ": ", describe(first), "; ",
                                describe(second), ", ", why)),
      address_(address),
      first_(first),
      second_(second) {}

Races& Races::instance() {
  static Races races;
  return races;
}

void Races::ignore(const void* from, std::size_t bytes) {
  ignored_from_ = reinterpret_cast<std::uintptr_t>(from);
  ignored_to_ = ignored_from_ + bytes;
}

void Races::begin_launch() {
  active = enabled_;
  if (!active) return;
  if (segments_.size() > kMaxSegments || pages_.size() > kMaxPages) {
    segments_.assign(1, {});
    pages_.clear();
    last_page_ = 0;
  }
  first_of_launch_ = static_cast<Id>(segments_.size());
  released_.clear();
}

void Races::begin_block(unsigned block, unsigned num_threads, const void* shared, std::size_t bytes) {
  if (!active) return;
  block_ = block;
  epoch_ = 0;
  first_of_block_ = static_cast<Id>(segments_.size());
  shared_from_ = reinterpret_cast<std::uintptr_t>(shared);
  shared_to_ = shared_from_ + bytes;
  threads_.assign(num_threads, {});
  known_.clear();
}

void Races::met(const std::vector<unsigned>& met) {
  if (!active) return;
  if (met.empty()) {
    ++epoch_;
    for (Thread& thread : threads_) {
      thread.segment = 0;
      thread.item = thread.other = -1;
      if (thread.blocks.empty()) continue;
      merge(known_, thread.blocks);
      thread.blocks.clear();
    }
    return;
  }
  std::array<std::uint32_t, kWarp> seen{};
  for (const unsigned number : met) {
    Thread& thread = threads_[number];
    ++thread.seen[number % kWarp];
    for (unsigned lane = 0; lane < kWarp; ++lane) seen[lane] = std::max(seen[lane], thread.seen[lane]);
  }
  Blocks blocks;
  for (const unsigned number : met) merge(blocks, threads_[number].blocks);
  for (const unsigned number : met) {
    Thread& thread = threads_[number];
    thread.seen = seen;
    thread.blocks = blocks;
    thread.segment = 0;
    thread.item = thread.other = -1;
  }
}

void Races::merge(Blocks& into, const Blocks& from) {
  for (const auto& [block, seen] : from) {
    Seen& target = into[block];
    target.epoch = std::max(target.epoch, seen.epoch);
    for (const auto& [thread, id] : seen.threads) {
      Id& last = target.threads[thread];
      last = std::max(last, id);
    }
  }
}

void Races::fence() {
  if (!active) return;
  Thread& thread = running();
  thread.fenced = known_;
  merge(thread.fenced, thread.blocks);
  Seen& own = thread.fenced[block_];
  own.epoch = epoch_;
  own.threads[static_cast<std::uint16_t>(here.thread.x)] = static_cast<Id>(segments_.size() - 1);
  thread.segment = 0;
}

void Races::at_item(int item, int other, Place phase) {
  if (!active) return;
  Thread& thread = running();
  thread.item = item;
  thread.other = other;
  thread.phase = phase;
  thread.segment = 0;
}

Races::Item Races::item() {
  if (!active) return {};
  const Thread& thread = running();
  return {thread.item, thread.other};
}

Races::Thread& Races::running() { return threads_[here.thread.x]; }

Races::Id Races::segment() {
  Thread& thread = running();
  if (thread.segment == 0) {
    thread.segment = static_cast<Id>(segments_.size());
    segments_.push_back({block_, epoch_, thread.seen[here.thread.x % kWarp],
                         static_cast<std::uint16_t>(here.thread.x), thread.item, thread.other, thread.phase});
  }
  return thread.segment;
}

Races::Page& Races::page_of(std::uintptr_t address) {
  const std::uintptr_t page = address / kPage;
  if (page == last_page_) return *last_;
  std::unique_ptr<Page>& found = pages_[page];
  if (found == nullptr) found = std::make_unique<Page>();
  last_page_ = page;
  last_ = found.get();
  return *last_;
}

// visit(cell, address) for each cell of these bytes.
template <typename Visit>
void Races::cells_of(std::uintptr_t from, std::size_t bytes, Visit visit) {
  const std::uintptr_t to = from + bytes;
  while (from < to) {
    Page& page = page_of(from);
    const std::size_t word = from % kPage / kWord;
    const bool whole = from % kWord == 0 && to - from >= kWord;
    if (!page.split[word] && whole) {
      visit(page.words[word], from);
      from += kWord;
      continue;
    }
    if (page.bytes == nullptr) page.bytes = std::make_unique<std::array<Cell, kPage>>();
    if (!page.split[word]) {
      page.split[word] = true;
      std::fill_n(page.bytes->begin() + static_cast<std::ptrdiff_t>(word * kWord), kWord, page.words[word]);
    }
    const std::uintptr_t end = std::min(to, from / kWord * kWord + kWord);
    for (; from < end; ++from) visit((*page.bytes)[from % kPage], from);
  }
}

void Races::access(const void* address, std::size_t bytes, AccessKind how, const void* caller) {
  const auto from = reinterpret_cast<std::uintptr_t>(address);
  if (from >= ignored_from_ && from < ignored_to_) return;
  const Id id = segment();
  const auto at = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(caller) - base());
  cells_of(from, bytes, [&](Cell& cell, std::uintptr_t where) {
    if (how == AccessKind::kRead && (cell.write == id || cell.read[0] == id)) return;
    visit(cell, how, id, at, where);
  });
}

void Races::atomic(const void* address, std::size_t bytes, const void* caller) {
  const auto from = reinterpret_cast<std::uintptr_t>(address);
  const auto at = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(caller) - base());
  const Id id = segment() | kAtomic;
  cells_of(from, bytes,
           [&](Cell& cell, std::uintptr_t where) { visit(cell, AccessKind::kWrite, id, at, where); });
  Thread& thread = running();
  Blocks& released = released_[from];
  merge(released, thread.fenced);
  merge(thread.blocks, released);
  thread.segment = 0;
}

bool Races::ordered(Id earlier, Id id) const {
  if ((earlier & id & kAtomic) != 0) return true;
  const Segment& before = segments_[earlier & ~kAtomic];
  const Segment& now = segments_[id & ~kAtomic];
  const Thread& thread = threads_[here.thread.x];
  if (before.block != now.block) {
    const auto knows = [&](const Blocks& blocks) {
      const auto found = blocks.find(before.block);
      if (found == blocks.end()) return false;
      if (before.epoch < found->second.epoch) return true;
      const auto last = found->second.threads.find(before.thread);
      return last != found->second.threads.end() && (earlier & ~kAtomic) <= last->second;
    };
    return knows(known_) || knows(thread.blocks);
  }
  if (before.epoch < now.epoch) return true;
  if (before.thread == now.thread) {
    const bool other_item = before.item != now.item || before.other != now.other;
    return before.clock < now.clock || !other_item || before.item < 0 || now.item < 0;
  }
  return before.thread / kWarp == now.thread / kWarp && thread.seen[before.thread % kWarp] > before.clock;
}

void Races::visit(Cell& cell, AccessKind how, Id id, std::uint32_t at, std::uintptr_t address) {
  const Id first = address >= shared_from_ && address < shared_to_ ? first_of_block_ : first_of_launch_;
  const auto is_old = [&](Id earlier) { return (earlier & ~kAtomic) < first; };
  if (is_old(cell.write)) cell.write = 0;
  if (is_old(cell.read[0])) cell.read[0] = 0;
  if (is_old(cell.read[1])) cell.read[1] = 0;
  const bool of_other_block =
      cell.write != 0 && segments_[cell.write & ~kAtomic].block != segments_[id & ~kAtomic].block;
  if (cell.write != 0 && cell.write != id &&
      (!ordered(cell.write, id) || (of_other_block && how == AccessKind::kRead)))
    report(address, cell.write, AccessKind::kWrite, cell.write_at, id, how, at);
  if (how == AccessKind::kWrite) {
    for (const int k : {0, 1})
      if (cell.read[k] != 0 && cell.read[k] != id && !ordered(cell.read[k], id))
        report(address, cell.read[k], AccessKind::kReadOfL2, cell.read_at[k], id, how, at);
    cell.write = id;
    cell.write_at = at;
    cell.read[0] = cell.read[1] = 0;
    return;
  }
  // The second slot is for another thread, or another item, than the first.
  const auto same_work = [&](Id earlier) {
    const Segment& a = segments_[earlier & ~kAtomic];
    const Segment& b = segments_[id & ~kAtomic];
    return a.thread == b.thread && a.block == b.block && a.item == b.item && a.other == b.other;
  };
  const int slot = cell.read[0] == 0 || same_work(cell.read[0]) || ordered(cell.read[0], id) ? 0 : 1;
  cell.read[slot] = id;
  cell.read_at[slot] = at;
}

Race::Access Races::access_of(Id id, AccessKind how, std::uint32_t at) const {
  const Segment& segment = segments_[id & ~kAtomic];
  return {(id & kAtomic) != 0         ? "changes it atomically"
          : how == AccessKind::kWrite ? "writes it"
                                      : "reads it",
          segment.block,
          segment.thread,
          segment.item,
          segment.other,
          text(segment.phase),
          line_of(at)};
}

void Races::report(std::uintptr_t address, Id earlier, AccessKind earlier_how, std::uint32_t earlier_at,
                   Id id, AccessKind how, std::uint32_t at) const {
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  throw Race(reinterpret_cast<const void*>(address), access_of(earlier, earlier_how, earlier_at),
             access_of(id, how, at),
             ordered(earlier, id) ? "through the L1 cache, which may hold an older value: use __ldcg()"
                                  : "without a barrier between");
}

}  // namespace wd::emulation
