// row_packs.h: one thread's share of writing observation rows together with others, 16 bytes at a time.
#pragma once

#include "wd/env.h"

namespace wd::detail {

// Entries of a row that fill 16 bytes.
template <int kEntries>
struct alignas(16) Pack {
  float entry[kEntries];
};

WD_FN void store(float* to, const Pack<4>& pack) { *reinterpret_cast<Pack<4>*>(to) = pack; }

// Rows of float32 take packs of 4, rows of bfloat16 packs of 8.
WD_FN void store(ObservationRow to, const Pack<4>& pack) { store(static_cast<float*>(to.data()), pack); }
WD_FN void store(ObservationRow to, const Pack<8>& pack) {
  struct alignas(16) Pairs {
    std::uint32_t bits[4];
  } pairs;
  for (int p = 0; p < 4; ++p) pairs.bits[p] = to_bfloat16_pair(pack.entry[2 * p], pack.entry[2 * p + 1]);
  *static_cast<Pairs*>(to.data()) = pairs;
}

// Entries from k of part c on that reach into the next parts; 0 past the last part.
template <int kEntries, typename F>
WD_FN Pack<kEntries> pack_across(int i, int m, int size, int c, int k, F f) {
  Pack<kEntries> pack;
  for (int q = 0; q < kEntries; ++q) {
    pack.entry[q] = c < m ? f(i, c)(k) : 0.0f;
    if (++k == size) k = 0, ++c;
  }
  return pack;
}

// The words of a pack: one entry in float32, two in bfloat16.
template <int kEntries>
struct WordOf;
template <>
struct WordOf<4> {
  using Type = float;
  template <typename G>
  WD_FN static float of(int k, const G& g) {
    return g(k);
  }
};
template <>
struct WordOf<8> {
  using Type = std::uint32_t;
  template <typename G>
  WD_FN static std::uint32_t of(int k, const G& g) {
    return to_bfloat16_pair(g(k), g(k + 1));
  }
};
template <typename Word>
struct alignas(16) FourWords {
  Word word[4];
};

// The order in which a thread computes the words of a pack: word (w + turn) % 4 comes w-th. Neighboring
// threads compute packs that are 4 or 8 entries apart, mostly from consecutive numbers in shared memory.
// Without turns, 4 or 8 of 32 threads would read from the same bank at once; with them, 1 or 2.
template <int kEntries>
WD_FN int turn_of(int rank) {
  return rank / (32 / kEntries) % 4;
}

// Stores entries k .. k + kEntries - 1 of one part.
template <int kEntries, typename G>
WD_FN void store_within(void* to, int turn, int k, const G& g) {
  using Word = typename WordOf<kEntries>::Type;
  Word computed[4], half_turned[4];
  for (int w = 0; w < 4; ++w) computed[w] = WordOf<kEntries>::of(k + (w + turn) % 4 * (kEntries / 4), g);
  for (int w = 0; w < 4; ++w) half_turned[w] = (turn & 1) != 0 ? computed[(w + 3) % 4] : computed[w];
  FourWords<Word> pack;
  for (int w = 0; w < 4; ++w) pack.word[w] = (turn & 2) != 0 ? half_turned[(w + 2) % 4] : half_turned[w];
  *static_cast<FourWords<Word>*>(to) = pack;
}
WD_FN void* address_of(float* entry) { return entry; }
WD_FN void* address_of(ObservationRow entry) { return entry.data(); }

// Writes the share of thread `rank` of `threads`, a power of two or a multiple of 32, in
// team.write_parts(rows, n, m, size, f) (wd/detail/team.h). Up to 32 neighboring threads share a row, so that
// they write neighboring packs. The loops contain no division.
template <int kEntries, typename Rows, typename F>
WD_FN void write_packs(int rank, int threads, const Rows& rows, int n, int m, int size, F f) {
  const int entries = m * size;
  if (entries <= 0) return;
  int lanes = 1;
  while (lanes < 32 && lanes < threads && lanes * kEntries < entries) lanes *= 2;
  const int step = lanes * kEntries, first = rank % lanes * kEntries;
  const int step_parts = step / size, step_k = step - step_parts * size;
  const int first_part = first / size, first_k = first - first_part * size;
  const int turn = turn_of<kEntries>(rank);
  for (int i = rank / lanes; i < n; i += threads / lanes) {
    const auto row = rows.row(i);
    int c = first_part, k = first_k;
    for (int at = first; at < entries; at += step) {
      if (k + kEntries <= size && at + kEntries <= entries) {
        store_within<kEntries>(address_of(row + at), turn, k, f(i, c));
      } else {
        const Pack<kEntries> pack = pack_across<kEntries>(i, m, size, c, k, f);
        if (at + kEntries <= entries) {
          store(row + at, pack);
        } else {  // entries after the parts must not be written
          for (int q = 0; q < kEntries; ++q) {
            if (at + q < entries) row[at + q] = pack.entry[q];
          }
        }
      }
      c += step_parts;
      k += step_k;
      if (k >= size) {
        k -= size;
        ++c;
      }
    }
  }
}

}  // namespace wd::detail
