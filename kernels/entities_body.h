// entities_body.h: the features of one row, the same code on both devices.
#pragma once

#include "kernels/entities.h"
#include "wd/detail/bfloat16.h"
#include "wd/math.h"

namespace wd {

// Distances are computed in batches, which a CPU does in vectors.
#ifdef __CUDA_ARCH__
inline constexpr int kDistanceBatch = 1;
#else
inline constexpr int kDistanceBatch = 16;
#endif

// One observer's view: a row of observations.
template <typename Number>
struct RowOfEntities {
  const Number* row;

  WD_FN float operator()(const EntityNumbers& numbers, int k) const {
    return load_number(row + numbers.first + k * numbers.step);
  }
  WD_FN float own(int entry) const { return load_number(row + entry); }
};

// The same from a table: thing k is the k-th other agent.
struct TableOfEntities {
  const float* table;
  std::int64_t stride;
  int self;

  WD_FN float operator()(const EntityNumbers& numbers, int k) const {
    const float value = table[(k < self ? k : k + 1) * stride + numbers.first];
    return numbers.relative ? value - table[self * stride + numbers.first] : value;
  }
  WD_FN float own(int entry) const { return table[self * stride + entry]; }
};

// Calls f with the view of this row.
template <typename F>
WD_FN void with_view(const ObservationSource& source, std::int64_t row, F f) {
  if (source.agents > 0) {
    const std::int64_t unit = row / source.rows_per_unit;
    f(TableOfEntities{source.floats + unit * source.agents * source.stride, source.stride,
                      source.agent[row % source.rows_per_unit]});
  } else if (source.floats != nullptr) {
    f(RowOfEntities<float>{source.floats + row * source.stride});
  } else {
    f(RowOfEntities<std::uint16_t>{source.halves + row * source.stride});
  }
}

// Writes the nearest things of one kind, or -1, in order of distance. Working memory: least[r * stride] for
// each rank, the square of its distance. This is where features will be written, because an array of a GPU's
// thread that is indexed at run time would be in the same memory.
template <typename View>
WD_FN void find_nearest_entities(const View& view, const EntityListShape& list, int kind, int nearest,
                                 std::int32_t* found, float* least, int stride) {
  for (int r = 0; r < nearest; ++r) {
    least[r * stride] = __builtin_inff();
    found[r] = -1;
  }
  for (int begin = 0; begin < list.count; begin += kDistanceBatch) {
    const int n = min(kDistanceBatch, list.count - begin);
    float square[kDistanceBatch];
    for (int b = 0; b < n; ++b) {
      const float x = view(list.x, begin + b), y = view(list.y, begin + b);
      square[b] = fma(x, x, y * y);
    }
    if (list.kind.exist())
      for (int b = 0; b < n; ++b)
        square[b] = view(list.kind, begin + b) == static_cast<float>(kind) ? square[b] : __builtin_inff();
    if (list.presence.exist())
      for (int b = 0; b < n; ++b)
        square[b] = view(list.presence, begin + b) != 0.0f ? square[b] : __builtin_inff();
    for (int b = 0; b < n; ++b) {
      if (!(square[b] < least[(nearest - 1) * stride])) continue;
      int r = nearest - 1;
      for (; r > 0 && square[b] < least[(r - 1) * stride]; --r) {
        least[r * stride] = least[(r - 1) * stride];
        found[r] = found[r - 1];
      }
      least[r * stride] = square[b];
      found[r] = begin + b;
    }
  }
}

// What turns positions into the observer's frame.
template <typename View>
WD_FN SinCos frame_of(const View& view, const EntityShape& shape) {
  SinCos frame{0.0f, 1.0f};
  if (shape.heading_cos >= 0) {
    frame.sin = view.own(shape.heading_sin);
    frame.cos = view.own(shape.heading_cos);
  }
  return frame;
}

// What multiplies a position: f(d) / d with f(d) = 1 / (1 + d / half), for d > 0.
struct Closeness {
  static constexpr float kLeast = 1e-6f;  // added to d, whose direction is unknown at 0
  float distance, factor, slope;          // slope: of the factor by x is slope * x

  WD_FN Closeness(float x, float y, float half) {
    distance = sqrt(fma(x, x, y * y));
    const float here = 1.0f / (distance + kLeast), near = 1.0f / (half + distance);
    factor = half * here * near;
    slope = distance > 0.0f ? -factor * (here + near) / distance : 0.0f;
  }
};

// Writes the place of thing k, and its heading if the list has one.
template <typename View>
WD_FN void write_place(const View& view, const EntityListShape& list, SinCos frame, float half, int k,
                       float* place, float* heading) {
  float x = view(list.x, k), y = view(list.y, k);
  const float closeness = Closeness(x, y, half).factor;
  x *= closeness;
  y *= closeness;
  place[0] = fma(x, frame.cos, y * frame.sin);
  place[1] = fma(y, frame.cos, -(x * frame.sin));
  if (!list.heading.exist()) return;
  const SinCos direction = sincos(2.0f * kPi * view(list.heading, k));
  heading[0] = direction.cos;
  heading[1] = direction.sin;
}

// Writes the features of thing k, list.width() numbers.
template <typename View>
WD_FN void write_entity(const View& view, const EntityListShape& list, SinCos frame, float half, int k,
                        float* to) {
  write_place(view, list, frame, half, k, to, to + 2);
  to += list.features_begin();
  for (int f = 0; f < list.num_features; ++f) *to++ = view(list.feature[f], k);
  *to = 1.0f;
}

// Finds them in working memory, as many ranks as there are.
struct NearestInMemory {
  template <typename View>
  WD_FN void operator()(const View& view, const EntityListShape& list, int kind, int nearest,
                        std::int32_t* found, float* features) const {
    find_nearest_entities(view, list, kind, nearest, found, features, list.width());
  }
};

// Writes a row of features, and which things it shows. find(view, list, kind, nearest, found, features) finds
// the nearest of a kind; it may use their features as working memory.
template <typename View, typename Find>
WD_FN void write_features(const View& view, const EntityShape& shape, float* to, std::int32_t* found,
                          Find find) {
  for (int r = 0; r < shape.num_own; ++r)
    for (int k = 0; k < shape.own_count[r]; ++k) *to++ = view.own(shape.own_begin[r] + k);
  const SinCos frame = frame_of(view, shape);
  for (int l = 0; l < shape.num_lists; ++l) {
    const EntityListShape& list = shape.list[l];
    const int width = list.width();
    for (int kind = 0; kind < list.kinds; ++kind) {
      find(view, list, kind, shape.nearest, found, to);
      for (int r = 0; r < shape.nearest; ++r, ++found, to += width) {
        if (*found >= 0) {
          write_entity(view, list, frame, shape.half_distance, *found, to);
        } else {
          for (int f = 0; f < width; ++f) to[f] = 0.0f;
        }
      }
    }
  }
}

WD_FN void entities_row(const EntitiesArgs& args, std::int64_t row) {
  float* const to = args.features[row];
  std::int32_t* const found = args.found + row * args.shape.slots();
  with_view(args.source, row,
            [&](const auto& view) { write_features(view, args.shape, to, found, NearestInMemory()); });
  if (args.rounded.pointer == nullptr) return;
  for (int k = 0; k < args.shape.width(); ++k) store_number(args.rounded[row] + k, to[k]);
}

// Adds the gradient of thing k's numbers to `grad`, a row of observations, and that of the frame to
// `frame_grad`, from the gradients of its place, heading and features.
template <typename View>
WD_FN void add_entity_gradient(const View& view, const EntityListShape& list, SinCos frame, float half, int k,
                               const float* place, const float* heading, const float* features, float* grad,
                               SinCos& frame_grad) {
  const auto entry = [&](const EntityNumbers& numbers) -> float& {
    return grad[numbers.first + k * numbers.step];
  };
  const float x = view(list.x, k), y = view(list.y, k);
  const Closeness closeness(x, y, half);
  const float ahead = place[0], left = place[1];
  const float by_x = ahead * frame.cos - left * frame.sin, by_y = ahead * frame.sin + left * frame.cos;
  const float by_distance = closeness.slope * (by_x * x + by_y * y);
  entry(list.x) += closeness.factor * by_x + by_distance * x;
  entry(list.y) += closeness.factor * by_y + by_distance * y;
  frame_grad.cos += closeness.factor * (ahead * x + left * y);
  frame_grad.sin += closeness.factor * (ahead * y - left * x);
  if (list.heading.exist()) {
    const SinCos direction = sincos(2.0f * kPi * view(list.heading, k));
    entry(list.heading) += 2.0f * kPi * (heading[1] * direction.cos - heading[0] * direction.sin);
  }
  for (int f = 0; f < list.num_features; ++f) entry(list.feature[f]) += features[f];
}

WD_FN void entities_row_backward(const EntitiesBackwardArgs& args, std::int64_t row) {
  const EntityShape& shape = args.shape;
  float* const grad = args.grad[row];
  const float* from = args.feature_grad[row];
  const std::int32_t* found = args.found + row * shape.slots();
  for (int k = 0; k < args.row_size; ++k) grad[k] = 0.0f;
  for (int r = 0; r < shape.num_own; ++r)
    for (int k = 0; k < shape.own_count[r]; ++k) grad[shape.own_begin[r] + k] = *from++;
  with_view(args.source, row, [&](const auto& view) {
    const SinCos frame = frame_of(view, shape);
    SinCos frame_grad{0.0f, 0.0f};
    for (int l = 0; l < shape.num_lists; ++l) {
      const EntityListShape& list = shape.list[l];
      for (int s = 0; s < list.kinds * shape.nearest; ++s, ++found, from += list.width())
        if (*found >= 0)
          add_entity_gradient(view, list, frame, shape.half_distance, *found, from, from + 2,
                              from + list.features_begin(), grad, frame_grad);
    }
    if (shape.heading_cos < 0) return;
    grad[shape.heading_cos] += frame_grad.cos;
    grad[shape.heading_sin] += frame_grad.sin;
  });
}

// Item: a thing of a row.
WD_FN void thing_of(const ThingsArgs& args, std::int64_t item) {
  const EntityShape& shape = args.shape;
  const std::int64_t row = item / shape.things();
  int k = static_cast<int>(item % shape.things()), l = 0, kinds = 0;
  for (; k >= shape.list[l].count; ++l) {
    k -= shape.list[l].count;
    kinds += shape.list[l].kinds;
  }
  const EntityListShape& list = shape.list[l];
  float* const to = args.things[item];
  for (int f = 0; f < shape.thing_width(); ++f) to[f] = 0.0f;
  with_view(args.source, row, [&](const auto& view) {
    const int kind = list.kind.exist() ? static_cast<int>(view(list.kind, k)) : 0;
    const bool exists =
        (!list.presence.exist() || view(list.presence, k) != 0.0f) && kind >= 0 && kind < list.kinds;
    args.exists[item] = exists ? 1 : 0;
    if (!exists) return;
    write_place(view, list, frame_of(view, shape), shape.half_distance, k, to, to + 2);
    for (int f = 0; f < list.num_features; ++f)
      to[shape.thing_features_begin() + f] = view(list.feature[f], k);
    if (shape.kinds() > 1) to[shape.thing_kinds_begin() + kinds + kind] = 1.0f;
  });
}

// Item: a row, to whose gradient it adds.
WD_FN void things_row_backward(const ThingsBackwardArgs& args, std::int64_t row) {
  const EntityShape& shape = args.shape;
  float* const grad = args.grad[row];
  const std::uint8_t* exists = args.exists + row * shape.things();
  const float* from = args.thing_grad[row * shape.things()];
  with_view(args.source, row, [&](const auto& view) {
    const SinCos frame = frame_of(view, shape);
    SinCos frame_grad{0.0f, 0.0f};
    for (int l = 0; l < shape.num_lists; ++l)
      for (int k = 0; k < shape.list[l].count; ++k, ++exists, from += args.thing_grad.stride)
        if (*exists != 0)
          add_entity_gradient(view, shape.list[l], frame, shape.half_distance, k, from, from + 2,
                              from + shape.thing_features_begin(), grad, frame_grad);
    if (shape.heading_cos < 0) return;
    grad[shape.heading_cos] += frame_grad.cos;
    grad[shape.heading_sin] += frame_grad.sin;
  });
}

}  // namespace wd
