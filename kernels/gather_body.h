// gather_body.h: copies one word of the gathered rows, array by array.
#pragma once

#include "kernels/gather.h"

namespace wd {

struct alignas(16) Word16 {
  std::uint32_t part[4];
};

// Number of words in one row of all arrays together.
template <typename Args>
WD_FN std::int64_t words_of_row(const Args& args) {
  std::int64_t words = 0;
  for (int k = 0; k < args.num_arrays; ++k) words += args.arrays[k].row_bytes / args.arrays[k].word_bytes;
  return words;
}

template <typename Word>
WD_FN void copy_word_as(const GatheredArray& array, std::int64_t from_row, std::int64_t to_row,
                        std::int64_t word) {
  reinterpret_cast<Word*>(array.to + to_row * array.row_bytes)[word] =
      reinterpret_cast<const Word*>(array.from + from_row * array.row_bytes)[word];
}

WD_FN void copy_word(const GatheredArray& array, std::int64_t from_row, std::int64_t to_row,
                     std::int64_t word) {
  if (array.word_bytes == 16) return copy_word_as<Word16>(array, from_row, to_row, word);
  if (array.word_bytes == 4) return copy_word_as<std::uint32_t>(array, from_row, to_row, word);
  return copy_word_as<std::uint8_t>(array, from_row, to_row, word);
}

// Copies word i of rows * words_of_row(): first come all rows of the first array, then those of the second.
WD_FN void gather_word(const GatherArgs& args, std::int64_t i) {
  for (int k = 0; k < args.num_arrays; ++k) {
    const GatheredArray& array = args.arrays[k];
    const std::int64_t words = array.row_bytes / array.word_bytes, all = args.rows * words;
    if (i >= all) {
      i -= all;
      continue;
    }
    const std::int64_t row = i / words;
    return copy_word(array, args.index[row], row, i % words);
  }
}

}  // namespace wd
