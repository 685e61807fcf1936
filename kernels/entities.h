// entities.h: what an agent sees of the things around it: the nearest of each kind, in its own frame, from
// rows of observations or from a table of all agents.
//
// An observation is lists of things (wd/spec.h, Entities) and the observer's own entries. A row of features
// is
//  [own entries | for each list, kind and rank: place x, y, cosine and sine of the heading (if the list has
//  one), further features, 1 | ...]
// where ranks are by distance, ties go to the thing that comes first in its list, and the features of ranks
// without a thing are 0. The place is the direction to the thing, of length 1 / (1 + distance /
// half_distance): near things are told apart by direction, and far ones fade to 0, as if they did not exist.
// If the observer knows its heading, x points ahead and y to the left.
#pragma once

#include <cstdint>

#include "wd/kernels/rows.h"
#include "wd/math.h"
#include "wd/queue.h"
#include "wd/spec.h"

namespace wd {

inline constexpr int kMaxOwnRanges = 12;

// The numbers of a list's things: in a row, entry first + k * step; in a table, feature `first`, which is
// relative to the observer's own if `relative` is set. first -1: there is no such number.
struct EntityNumbers {
  int first = -1, step = 1;
  bool relative = false;

  WD_FN bool exist() const { return first >= 0; }
};

struct EntityListShape {
  int count = 0, kinds = 1, num_features = 0;
  EntityNumbers x, y, heading, kind, presence;
  EntityNumbers feature[kMaxEntityFeatures];

  // Numbers of one thing in a row of features.
  WD_FN int width() const { return features_begin() + num_features + 1; }
  WD_FN int features_begin() const { return heading.exist() ? 4 : 2; }
};

struct EntityShape {
  int num_lists = 0, nearest = 0, num_own = 0;
  float half_distance = 1.0f;
  EntityListShape list[kMaxEntityLists];
  // The observer's own entries: ranges of a row, or of the columns of a table.
  int own_begin[kMaxOwnRanges] = {}, own_count[kMaxOwnRanges] = {};
  int heading_cos = -1, heading_sin = -1;  // entries of the observer's heading; -1: unknown

  WD_FN int own() const {
    int sum = 0;
    for (int k = 0; k < num_own; ++k) sum += own_count[k];
    return sum;
  }
  // Ranks in a row: how many things it shows at most.
  WD_FN int slots() const {
    int sum = 0;
    for (int l = 0; l < num_lists; ++l) sum += list[l].kinds * nearest;
    return sum;
  }
  WD_FN int width() const {
    int sum = own();
    for (int l = 0; l < num_lists; ++l) sum += list[l].kinds * nearest * list[l].width();
    return sum;
  }

  // All things of all lists, each as a row of its own: place x, y, cosine and sine of the heading (if a list
  // has one), further features (as many as the list with the most has), and 1 for its kind (if there are
  // several). Numbers that a list lacks are 0.
  WD_FN int things() const {
    int sum = 0;
    for (int l = 0; l < num_lists; ++l) sum += list[l].count;
    return sum;
  }
  WD_FN int kinds() const {
    int sum = 0;
    for (int l = 0; l < num_lists; ++l) sum += list[l].kinds;
    return sum;
  }
  WD_FN int thing_features_begin() const {
    bool any = false;
    for (int l = 0; l < num_lists; ++l) any = any || list[l].heading.exist();
    return any ? 4 : 2;
  }
  WD_FN int thing_kinds_begin() const {
    int most = 0;
    for (int l = 0; l < num_lists; ++l) most = max(most, list[l].num_features);
    return thing_features_begin() + most;
  }
  WD_FN int thing_width() const { return thing_kinds_begin() + (kinds() > 1 ? kinds() : 0); }
};

// Where observations are: rows in float32 or bfloat16, `stride` apart; or tables [units, agents, stride],
// each of which describes `rows_per_unit` rows.
struct ObservationSource {
  const float* floats = nullptr;
  const std::uint16_t* halves = nullptr;
  std::int64_t stride = 0;
  int agents = 0;                       // N of a table; 0: rows
  int rows_per_unit = 1;                // A
  const std::int32_t* agent = nullptr;  // [A] ids of the agents that rows belong to
};

struct EntitiesArgs {
  EntityShape shape;
  ObservationSource source;
  std::int64_t rows = 0;
  Rows<float> features;           // [rows, width()]
  Rows<std::uint16_t> rounded{};  // the same in bfloat16: instead, and `features` is working memory; or null
  std::int32_t* found = nullptr;  // [rows, slots()]: the thing at each rank, or -1
};

// The gradient of rows of observations.
struct EntitiesBackwardArgs {
  EntityShape shape;
  ObservationSource source;  // of rows
  std::int64_t rows = 0;
  Rows<const float> feature_grad;  // [rows, width()]
  const std::int32_t* found = nullptr;
  Rows<float> grad;  // [rows, row_size], overwritten
  int row_size = 0;
};

struct ThingsArgs {
  EntityShape shape;
  ObservationSource source;
  std::int64_t rows = 0;
  Rows<float> things;              // [rows * things(), thing_width()]
  std::uint8_t* exists = nullptr;  // [rows, things()]
};

// Adds to the gradient of rows of observations.
struct ThingsBackwardArgs {
  EntityShape shape;
  ObservationSource source;  // of rows
  std::int64_t rows = 0;
  Rows<const float> thing_grad;  // [rows * things(), thing_width()]
  const std::uint8_t* exists = nullptr;
  Rows<float> grad;  // [rows, row_size]
};

// All enqueue on CUDA.
WD_DECLARE_KERNEL(entities, EntitiesArgs)
WD_DECLARE_KERNEL(entities_backward, EntitiesBackwardArgs)
WD_DECLARE_KERNEL(things, ThingsArgs)
WD_DECLARE_KERNEL(things_backward, ThingsBackwardArgs)

}  // namespace wd
