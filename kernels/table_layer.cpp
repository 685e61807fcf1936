// table_layer.cpp: the layer over a table on the CPU: tiles of three units by 32 outputs, whose sums stay in
// registers.
#include "kernels/table_layer.h"

#include <type_traits>

#include "kernels/table_layer_body.h"
#include "wd/detail/parallel.h"
#include "wd/detail/profile.h"
#include "wd/detail/vectors.h"

namespace wd {
namespace {

template <typename LaneType, int kCount>
struct Tile {
  using Lane = LaneType;
  static constexpr int kVectors = kCount;
};
// Calls f(tile, h) for all outputs with the vectors in use; `tile` gives the number of outputs, from h on.
template <typename F>
void for_outputs(int width, const F& f) {
  with_vectors([&](auto bytes) {
    using Narrow = detail::FloatVector<kNarrowVectors>;
    int h = 0;
    if constexpr (bytes == kWideVectors) {
      for (; h + 64 <= width; h += 64) f(Tile<detail::FloatVector<kWideVectors>, 4>{}, h);
    }
    for (; h + 32 <= width; h += 32) f(Tile<Narrow, 4>{}, h);
    for (; h + 8 <= width; h += 8) f(Tile<Narrow, 1>{}, h);
    for (; h < width; ++h) f(Tile<float, 1>{}, h);
  });
}

// Calls f(std::integral_constant<int, n>, first) for consecutive groups of n <= 3 out of `count`.
template <typename F>
void for_groups_of_3(std::int64_t count, F f) {
  std::int64_t first = 0;
  for (; first + 3 <= count; first += 3) f(std::integral_constant<int, 3>{}, first);
  if (count - first == 2) f(std::integral_constant<int, 2>{}, first);
  if (count - first == 1) f(std::integral_constant<int, 1>{}, first);
}

template <typename F>
void for_entries(const TableWeightsArgs& args, std::int64_t rows, F f) {
  parallel_for(rows, 1 + 16384 / args.shape.width, vectorized([&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t r = begin; r < end; ++r)
                   for (int h = 0; h < args.shape.width; ++h) f(args, r, h);
               }));
}

}  // namespace

void table_forward(Queue queue, const TableLayerArgs& args) {
  if (queue.cuda) return cuda::table_forward(queue.stream, args);
  const profile::Scope scope("layer over a table");
  for_outputs(args.shape.width, [&](auto tile, int h) {
    using T = decltype(tile);
    for_groups_of_3(args.units, [&](auto units, std::int64_t unit) {
      forward_tile<typename T::Lane, units(), T::kVectors>(args, unit, units(), h);
    });
  });
}

void table_backward(Queue queue, const TableLayerArgs& args) {
  if (queue.cuda) return cuda::table_backward(queue.stream, args);
  const profile::Scope scope("gradient of the layer over a table");
  const TableShape& shape = args.shape;
  for_outputs(shape.width, [&](auto tile, int h) {
    using T = decltype(tile);
    using Lane = typename T::Lane;
    for (int part = 0; part < shape.parts; ++part) {
      for_groups_of_3(shape.terms(), [&](auto terms, std::int64_t term) {
        shared_gradient_tile<Lane, terms(), T::kVectors>(args, part, static_cast<int>(term), h);
      });
    }
    for (std::int64_t unit = 0; unit < args.units; ++unit) running_sums<Lane, T::kVectors>(args, unit, h);
    for (int k = 0; k + 1 < shape.agents; ++k) {
      for_groups_of_3(shape.table.features, [&](auto terms, std::int64_t f) {
        others_gradient_tile<Lane, terms(), T::kVectors>(args, k, static_cast<int>(f), h);
      });
    }
  });
}

void table_weights(Queue queue, const TableWeightsArgs& args) {
  if (queue.cuda) return cuda::table_weights(queue.stream, args);
  for_entries(args, args.shape.weight_rows(), weight_entry);
}

void table_gradient(Queue queue, const TableWeightsArgs& args) {
  if (queue.cuda) return cuda::table_gradient(queue.stream, args);
  for_entries(args, args.shape.terms(), sum_parts);
  for_entries(args, args.shape.weight_rows(), gradient_entry);
}

}  // namespace wd
