// gather_data.h: gathers rows of arrays of every width, on either device.
#pragma once

#include <numeric>
#include <vector>

#include "kernels/gather.h"

namespace wd {

// Bytes per row, copied in words of 16, 4 and 1.
inline constexpr std::int64_t kGatheredBytes[] = {48, 4, 1, 7, 20, 16};

// All gathered rows, array after array. Row r of an array of w bytes holds (31 r + byte) mod 251.
template <typename Memory>
std::vector<std::uint8_t> run_gather(Memory memory, std::int64_t source_rows,
                                     const std::vector<std::int64_t>& index) {
  GatherArgs args;
  args.rows = static_cast<std::int64_t>(index.size());
  args.index = memory.put(index);
  std::vector<std::uint8_t*> results;
  for (const std::int64_t bytes : kGatheredBytes) {
    std::vector<std::uint8_t> from(static_cast<std::size_t>(source_rows * bytes));
    for (std::int64_t i = 0; i < source_rows * bytes; ++i)
      from[static_cast<std::size_t>(i)] = static_cast<std::uint8_t>((31 * (i / bytes) + i % bytes) % 251);
    results.push_back(memory.template make<std::uint8_t>(index.size() * static_cast<std::size_t>(bytes) + 1));
    args.add(memory.put(from), results.back(), bytes);
  }
  gather(memory.queue(), args);
  std::vector<std::uint8_t> all;
  for (std::size_t k = 0; k < results.size(); ++k) {
    const auto rows = memory.get(results[k], index.size() * static_cast<std::size_t>(kGatheredBytes[k]) + 1);
    all.insert(all.end(), rows.begin(), rows.end());
  }
  return all;
}

// Indices that repeat and run backward.
inline std::vector<std::int64_t> gather_index(std::int64_t source_rows, int rows) {
  std::vector<std::int64_t> index(static_cast<std::size_t>(rows));
  for (std::size_t i = 0; i < index.size(); ++i)
    index[i] = source_rows - 1 - static_cast<std::int64_t>(i * i) % source_rows;
  return index;
}

}  // namespace wd
