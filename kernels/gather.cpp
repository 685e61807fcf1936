// gather.cpp: gathering on the CPU, with rows divided among threads.
#include "kernels/gather.h"

#include <cstring>

#include "wd/detail/parallel.h"
#include "wd/detail/profile.h"
#include "wd/error.h"

namespace wd {
namespace {

// Short rows are copied by a few instructions, which cost less than the call of a general copy.
template <std::size_t kBytes>
void copy_rows(const GatheredArray& array, const std::int64_t* index, std::int64_t begin, std::int64_t end) {
  for (std::int64_t i = begin; i < end; ++i)
    std::memcpy(array.to + i * static_cast<std::int64_t>(kBytes),
                array.from + index[i] * static_cast<std::int64_t>(kBytes), kBytes);
}

void copy_rows(const GatheredArray& array, const std::int64_t* index, std::int64_t begin, std::int64_t end) {
  switch (array.row_bytes) {
    case 1:
      return copy_rows<1>(array, index, begin, end);
    case 4:
      return copy_rows<4>(array, index, begin, end);
    case 16:
      return copy_rows<16>(array, index, begin, end);
    default:
      break;
  }
  for (std::int64_t i = begin; i < end; ++i)
    std::memcpy(array.to + i * array.row_bytes, array.from + index[i] * array.row_bytes,
                static_cast<std::size_t>(array.row_bytes));
}

bool is_multiple(const void* from, const void* to, std::int64_t row_bytes, std::uintptr_t bytes) {
  return (reinterpret_cast<std::uintptr_t>(from) | reinterpret_cast<std::uintptr_t>(to) |
          static_cast<std::uintptr_t>(row_bytes)) %
             bytes ==
         0;
}

}  // namespace

GatheredArray GatheredArray::of(const void* from, void* to, std::int64_t row_bytes) {
  const int word = is_multiple(from, to, row_bytes, 16) ? 16 : is_multiple(from, to, row_bytes, 4) ? 4 : 1;
  return {static_cast<const std::byte*>(from), static_cast<std::byte*>(to), row_bytes, word};
}

void GatherArgs::add(const void* from, void* to, std::int64_t row_bytes) {
  WD_CHECK(num_arrays < kMaxGathered, "more than ", kMaxGathered, " arrays are gathered at once");
  arrays[num_arrays++] = GatheredArray::of(from, to, row_bytes);
}

void gather(Queue queue, const GatherArgs& args) {
  if (queue.cuda) return cuda::gather(queue.stream, args);
  const profile::Scope scope("gather minibatch");
  std::int64_t bytes = 1;
  for (int k = 0; k < args.num_arrays; ++k) bytes += args.arrays[k].row_bytes;
  parallel_for(args.rows, 1 + 131072 / bytes, [&](std::int64_t begin, std::int64_t end) {
    for (int k = 0; k < args.num_arrays; ++k) copy_rows(args.arrays[k], args.index, begin, end);
  });
}

void gather(Queue queue, const GatherArgs& first, const GatherArgs& second) {
  if (queue.cuda) return cuda::gather_both(queue.stream, first, second);
  gather(queue, first);
  gather(queue, second);
}

}  // namespace wd
