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
  struct alignas(16) Halves {
    std::uint16_t bits[8];
  } halves;
  for (int q = 0; q < 8; ++q) halves.bits[q] = to_bfloat16(pack.entry[q]);
  *static_cast<Halves*>(to.data()) = halves;
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
  for (int i = rank / lanes; i < n; i += threads / lanes) {
    const auto row = rows.row(i);
    int c = first_part, k = first_k;
    for (int at = first; at < entries; at += step) {
      Pack<kEntries> pack;
      if (k + kEntries <= size) {
        const auto g = f(i, c);
        for (int q = 0; q < kEntries; ++q) pack.entry[q] = g(k + q);
      } else {
        pack = pack_across<kEntries>(i, m, size, c, k, f);
      }
      if (at + kEntries <= entries) {
        store(row + at, pack);
      } else {  // entries after the parts must not be written
        for (int q = 0; q < kEntries; ++q) {
          if (at + q < entries) row[at + q] = pack.entry[q];
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
