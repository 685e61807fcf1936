// entities_data.h: runs features of entities and pooled embeddings with their gradients, on either device.
#pragma once

#include <string>
#include <vector>

#include "kernels/entities.h"
#include "kernels/pool.h"
#include "tests/kernels/random_data.h"
#include "wd/detail/bfloat16.h"

namespace wd {

struct EntitiesData {
  std::string name;
  EntityShape shape;
  std::int64_t rows = 0;
  int row_size = 0, stride = 0;    // of a row, or of an agent in a table
  std::vector<int> agent = {};     // ids of the agents that have rows of a table; none: rows
  int agents = 0;                  // of a table
  bool halves = false;             // bfloat16
  std::vector<float> observation;  // [rows, stride] or [units, agents, stride]

  std::int64_t feature_stride() const { return shape.width() + 3; }
  std::int64_t thing_stride() const { return shape.thing_width() + 1; }
};

// What an agent sees of others, of whom some are equally near, and of landmarks if it reads rows.
// `skipped`: of a table the agents from 1 on have rows, except every skipped-th.
inline EntitiesData random_entities(Draws& draws, const std::string& name, int nearest, bool knows_heading,
                                    std::int64_t rows, int num_others = 9, int skipped = 2) {
  const int kOthers = num_others, kAgents = kOthers + 1;
  constexpr int kLandmarks = 4, kFeatures = 6;
  EntitiesData data{.name = name, .shape = {}, .rows = rows};
  const bool as_table = name == "table";
  const auto numbers = [&](int feature, bool relative) {
    return as_table ? EntityNumbers{feature, 1, relative} : EntityNumbers{feature * kOthers, 1, false};
  };
  EntityShape& shape = data.shape;
  EntityListShape& others = shape.list[shape.num_lists++];
  others = {.count = kOthers, .kinds = 2, .num_features = 1};
  others.x = numbers(0, true);
  others.y = numbers(1, true);
  others.heading = numbers(2, true);
  others.kind = numbers(3, false);
  others.presence = numbers(4, false);
  others.feature[0] = numbers(5, false);
  const int own = as_table ? kFeatures : kFeatures * kOthers;
  shape.nearest = nearest;
  shape.half_distance = 0.3f;
  shape.num_own = 2;
  shape.own_begin[0] = own;
  shape.own_count[0] = 3;
  shape.own_begin[1] = own + 4;
  shape.own_count[1] = 1;
  if (knows_heading) {
    shape.heading_cos = own + 1;
    shape.heading_sin = own + 2;
  }
  data.row_size = own + 5;
  if (!as_table) {
    EntityListShape& landmarks = shape.list[shape.num_lists++];
    landmarks.count = kLandmarks;
    landmarks.x = {data.row_size, 2, false};
    landmarks.y = {data.row_size + 1, 2, false};
    data.row_size += 2 * kLandmarks;
  }
  data.stride = data.row_size + 2;
  std::int64_t stored = rows;
  if (as_table) {
    data.agents = kAgents;
    for (int agent = 1; agent < kAgents; ++agent)
      if (agent % skipped != 0) data.agent.push_back(agent);
    data.rows = rows * static_cast<std::int64_t>(data.agent.size());
    stored = rows * kAgents;
  }
  data.halves = name == "bfloat16";
  data.observation = draws.uniforms(stored * data.stride, -1.0f, 1.0f);
  for (std::int64_t row = 0; row < stored; ++row) {
    float* const entry = data.observation.data() + row * data.stride;
    const auto set = [&](const EntityNumbers& column, int k, float value) {
      entry[column.first + (as_table ? 0 : k)] = value;
    };
    for (int k = 0; k < (as_table ? 1 : kOthers); ++k) {
      set(others.x, k, 0.25f * static_cast<float>(draws.below(5) - 2));
      set(others.y, k, 0.25f * static_cast<float>(draws.below(5) - 2));
      set(others.kind, k, draws.one_in(2) ? 1.0f : 0.0f);
      set(others.presence, k, draws.one_in(3) ? 0.0f : 1.0f);
    }
    if (shape.num_lists == 1) continue;
    const EntityListShape& landmarks = shape.list[1];
    for (int k = 0; k < 2 * kLandmarks; ++k)
      entry[landmarks.x.first + k] = 0.125f * static_cast<float>(draws.below(9) - 4);
  }
  return data;
}

inline std::vector<EntitiesData> random_entities(Draws& draws) {
  std::vector<EntitiesData> all;
  for (const char* const name : {"float32", "bfloat16", "table"})
    for (const int nearest : {1, 3, kMaxNearestEntities})
      for (const std::int64_t rows : {1, 200})
        all.push_back(random_entities(draws, name, nearest, nearest != 3, rows));
  // More rows of a table than a block has threads; and a table that does not fit into its shared memory.
  for (const int nearest : {2, 4, 7, 11})
    all.push_back(random_entities(draws, "table", nearest, true, 3, 160, 7));
  all.push_back(random_entities(draws, "table", 3, true, 1, 900, 7));
  return all;
}

struct EntitiesResult {
  std::vector<float> features, things, grad;
  std::vector<std::int32_t> found;
  std::vector<std::uint8_t> exists;
  std::vector<std::uint16_t> rounded{};  // the features in bfloat16
};

template <typename Memory>
EntitiesResult run_entities(Memory memory, const EntitiesData& data) {
  const EntityShape& shape = data.shape;
  ObservationSource source;
  source.stride = data.stride;
  std::vector<std::uint16_t> rounded;
  if (data.halves) {
    for (const float value : data.observation) rounded.push_back(to_bfloat16(value));
    source.halves = memory.put(rounded);
  } else {
    source.floats = memory.put(data.observation);
  }
  if (!data.agent.empty()) {
    source.agents = data.agents;
    source.rows_per_unit = static_cast<int>(data.agent.size());
    source.agent = memory.put(std::vector<std::int32_t>(data.agent.begin(), data.agent.end()));
  }
  const auto rows = static_cast<std::size_t>(data.rows);
  const std::size_t feature_numbers = rows * static_cast<std::size_t>(data.feature_stride()),
                    slots = rows * static_cast<std::size_t>(shape.slots()),
                    things_of_all = rows * static_cast<std::size_t>(shape.things()),
                    thing_numbers = things_of_all * static_cast<std::size_t>(data.thing_stride());
  EntitiesArgs args;
  args.shape = shape;
  args.source = source;
  args.rows = data.rows;
  args.features = {memory.put(std::vector<float>(feature_numbers, 7.0f)), data.feature_stride()};
  args.found = memory.template make<std::int32_t>(slots);
  entities(memory.queue(), args);
  EntitiesArgs in_halves = args;
  in_halves.features.pointer = memory.template make<float>(feature_numbers);
  in_halves.rounded = {memory.put(std::vector<std::uint16_t>(feature_numbers, 7)), data.feature_stride()};
  entities(memory.queue(), in_halves);
  const ThingsArgs all{.shape = shape,
                       .source = source,
                       .rows = data.rows,
                       .things = {memory.put(std::vector<float>(thing_numbers, 7.0f)), data.thing_stride()},
                       .exists = memory.template make<std::uint8_t>(things_of_all)};
  things(memory.queue(), all);
  EntitiesResult result;
  result.features = memory.get(args.features.pointer, feature_numbers);
  result.rounded = memory.get(in_halves.rounded.pointer, feature_numbers);
  result.found = memory.get(args.found, slots);
  result.things = memory.get(all.things.pointer, thing_numbers);
  result.exists = memory.get(all.exists, things_of_all);
  if (source.agents > 0) return result;  // tables have no gradient
  const std::size_t observed = rows * static_cast<std::size_t>(data.stride);
  float* const grad = memory.put(std::vector<float>(observed, 7.0f));
  entities_backward(memory.queue(), {.shape = shape,
                                     .source = source,
                                     .rows = data.rows,
                                     .feature_grad = args.features,
                                     .found = args.found,
                                     .grad = {grad, data.stride},
                                     .row_size = data.row_size});
  things_backward(memory.queue(), {.shape = shape,
                                   .source = source,
                                   .rows = data.rows,
                                   .thing_grad = all.things,
                                   .exists = all.exists,
                                   .grad = {grad, data.stride}});
  result.grad = memory.get(grad, observed);
  return result;
}

struct PoolData {
  PoolShape shape;
  std::int64_t rows = 0, stride = 0;
  std::vector<float> embedding, pooled_grad;  // [rows, things, stride], [rows, columns + 1]
  std::vector<std::uint8_t> exists;           // [rows, things]
};

inline std::vector<PoolShape> pool_shapes() {
  return {{.things = 9, .width = 17, .mean = true, .max = true, .heads = 2},
          {.things = 1, .width = 16, .max = true},
          {.things = 33, .width = 5, .heads = 3},
          {.things = 4, .width = 32, .mean = true}};
}

// Some rows are alone, and some embeddings are equal.
inline PoolData random_pool(Draws& draws, const PoolShape& shape, std::int64_t rows) {
  PoolData data{.shape = shape, .rows = rows, .stride = shape.width + shape.heads + 2};
  data.embedding = draws.uniforms(rows * shape.things * data.stride, -2.0f, 2.0f);
  for (float& number : data.embedding)
    if (draws.one_in(4)) number = 1.5f;
  data.pooled_grad = draws.uniforms(rows * (shape.columns() + 1), -1.0f, 1.0f);
  for (std::int64_t row = 0; row < rows; ++row) {
    const bool alone = draws.one_in(5);
    for (int j = 0; j < shape.things; ++j) data.exists.push_back(!alone && draws.one_in(2) ? 1 : 0);
  }
  return data;
}

struct PoolResult {
  std::vector<float> weight, pooled, grad;
  std::vector<std::int32_t> largest;
};

template <typename Memory>
PoolResult run_pool(Memory memory, const PoolData& data) {
  const PoolShape& shape = data.shape;
  const auto rows = static_cast<std::size_t>(data.rows);
  const std::size_t weights = rows * static_cast<std::size_t>(shape.heads * shape.things),
                    embedded = rows * static_cast<std::size_t>(shape.width);
  const PoolArgs args{
      .shape = shape,
      .rows = data.rows,
      .embedding = {memory.put(data.embedding), data.stride},
      .exists = memory.put(data.exists),
      .weight = memory.put(std::vector<float>(weights + 1, 7.0f)),
      .largest = memory.put(std::vector<std::int32_t>(embedded, -7)),
      .pooled = {memory.put(std::vector<float>(data.pooled_grad.size(), 7.0f)), shape.columns() + 1}};
  if (shape.heads > 0) attention_weights(memory.queue(), args);
  pool(memory.queue(), args);
  const PoolBackwardArgs backward{
      .shape = shape,
      .rows = data.rows,
      .embedding = args.embedding,
      .exists = args.exists,
      .weight = args.weight,
      .largest = args.largest,
      .pooled_grad = {memory.put(data.pooled_grad), args.pooled.stride},
      .grad = {memory.put(std::vector<float>(data.embedding.size(), 7.0f)), data.stride}};
  if (shape.heads > 0) attention_backward(memory.queue(), backward);
  pool_backward(memory.queue(), backward);
  return {memory.get(args.weight, weights), memory.get(args.pooled.pointer, data.pooled_grad.size()),
          memory.get(backward.grad.pointer, data.embedding.size()), memory.get(args.largest, embedded)};
}

}  // namespace wd
