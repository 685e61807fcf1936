// entities.cu: a row per item, or a thing of a row. On the GPU a block computes the features of a unit's
// table, which it has in shared memory, together with the rows of features.
#include "kernels/entities_body.h"

#ifdef __CUDACC__

#include "kernels/staged_rows.cuh"
#include "wd/detail/for_each.cuh"

namespace wd::cuda {

namespace {

constexpr int kObservers = 128;  // at once, at most

// Finds the nearest things in registers, if there are at most kRanks. Things come in the order of their list,
// and one that is as far as another stays behind it, so the result is that of find_nearest_entities().
//
// The kind and the presence of a thing are the same for all observers of a table: its block skips a thing
// together.
template <int kRanks>
struct NearestInRegisters {
  __device__ void operator()(const TableOfEntities& view, const EntityListShape& list, int kind, int nearest,
                             std::int32_t* found, float*) const {
    float least[kRanks];
    std::int32_t at[kRanks];
#pragma unroll
    for (int r = 0; r < kRanks; ++r) {
      least[r] = __builtin_inff();
      at[r] = -1;
    }
    for (int agent = 0; agent <= list.count; ++agent) {
      const float* const row = view.table + agent * view.stride;
      if (list.kind.exist() && row[list.kind.first] != static_cast<float>(kind)) continue;
      if (list.presence.exist() && row[list.presence.first] == 0.0f) continue;
      if (agent == view.self) continue;
      const int thing = agent < view.self ? agent : agent - 1;
      const float x = view(list.x, thing), y = view(list.y, thing), square = fma(x, x, y * y);
      if (!(square < least[kRanks - 1])) continue;
      // From the rank that it takes, every thing moves one rank down.
      float moved = square;
      std::int32_t moved_at = thing;
      bool behind = false;
#pragma unroll
      for (int r = 0; r < kRanks; ++r) {
        behind = behind || moved < least[r];
        const float other = least[r];
        const std::int32_t other_at = at[r];
        least[r] = behind ? moved : other;
        at[r] = behind ? moved_at : other_at;
        moved = behind ? other : moved;
        moved_at = behind ? other_at : moved_at;
      }
    }
#pragma unroll
    for (int r = 0; r < kRanks; ++r)
      if (r < nearest) found[r] = at[r];
  }
};

// In shared memory: the table [agents, columns], features [observers at once, width]. A thread per observer.
template <typename Find>
__device__ __forceinline__ void entities_of_unit(const EntitiesArgs& args) {
  const ObservationSource& source = args.source;
  const int agents = source.agents, columns = static_cast<int>(source.stride), width = args.shape.width();
  const int thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
  const std::int64_t unit = blockIdx.x;
  auto* const table = reinterpret_cast<float*>(dynamic_shared());
  float* const features = table + agents * columns;
  const float* const from = source.floats + unit * agents * columns;
  for (int i = thread; i < agents * columns; i += threads) table[i] = from[i];
  for (int begin = 0; begin < source.rows_per_unit; begin += threads) {
    const int n = source.rows_per_unit - begin < threads ? source.rows_per_unit - begin : threads;
    const std::int64_t first = unit * source.rows_per_unit + begin;
    meet(Place::current());
    if (thread < n) {
      write_features(TableOfEntities{table, columns, source.agent[begin + thread]}, args.shape,
                     features + thread * staged_stride(width),
                     args.found + (first + thread) * args.shape.slots(), Find());
    }
    meet(Place::current());
    if (args.rounded.pointer != nullptr)
      unstage_rows(features, width, n, args.rounded.from(first));
    else
      unstage_rows(features, width, n, args.features.from(first));
  }
}

// Whether all observers of a table agree which things are of a kind.
bool kinds_are_shared(const EntityShape& shape) {
  for (int l = 0; l < shape.num_lists; ++l)
    if (shape.list[l].kind.relative || shape.list[l].presence.relative) return false;
  return true;
}

}  // namespace

void entities(void* stream, const EntitiesArgs& args) {
  const ObservationSource& source = args.source;
  const int observers = (source.rows_per_unit + 31) / 32 * 32;
  const int threads = observers < kObservers ? observers : kObservers;
  const int at_once = source.rows_per_unit < threads ? source.rows_per_unit : threads;
  const std::size_t floats =
      static_cast<std::size_t>(source.agents) * static_cast<std::size_t>(source.stride) +
      static_cast<std::size_t>(at_once) * static_cast<std::size_t>(staged_stride(args.shape.width()));
  if (source.agents == 0 || floats * 4 > kStagedBytes)
    return for_each<entities_row>(stream, "entities", args.rows, args);
  const std::int64_t units = args.rows / source.rows_per_unit;
  WD_CHECK(units * source.rows_per_unit == args.rows && units <= 0x7fffffff,
           "CUDA kernel entities: ", args.rows, " rows, ", source.rows_per_unit, " per table");
  if (units == 0) return;
  const auto enqueue = [&](const Kernel<EntitiesArgs>& kernel) {
    launch(kernel, {static_cast<unsigned>(units), static_cast<unsigned>(threads), stream, floats * 4}, args);
    check_launch("entities");
  };
  const int nearest = args.shape.nearest;
  if (!kinds_are_shared(args.shape))
    return enqueue(kernel_of<entities_of_unit<NearestInMemory>, kObservers, 8>());
  if (nearest <= 4) return enqueue(kernel_of<entities_of_unit<NearestInRegisters<4>>, kObservers, 8>());
  if (nearest <= 10) return enqueue(kernel_of<entities_of_unit<NearestInRegisters<10>>, kObservers, 8>());
  enqueue(kernel_of<entities_of_unit<NearestInMemory>, kObservers, 8>());
}

void entities_backward(void* stream, const EntitiesBackwardArgs& args) {
  for_each<entities_row_backward>(stream, "entities_backward", args.rows, args);
}

void things(void* stream, const ThingsArgs& args) {
  for_each<thing_of>(stream, "things", args.rows * args.shape.things(), args);
}

void things_backward(void* stream, const ThingsBackwardArgs& args) {
  for_each<things_row_backward>(stream, "things_backward", args.rows, args);
}

}  // namespace wd::cuda

#else

#include "wd/kernel.h"

WD_KERNEL(entities, EntitiesArgs, entities_row, args.rows, 256, "features of entities")
WD_KERNEL(entities_backward, EntitiesBackwardArgs, entities_row_backward, args.rows, 256,
          "gradient of entities")
WD_KERNEL(things, ThingsArgs, thing_of, args.rows* args.shape.things(), 4096, "things of entities")
WD_KERNEL(things_backward, ThingsBackwardArgs, things_row_backward, args.rows, 256, "gradient of things")

#endif
