// entities_test.cpp: which things are found, compared with a stable sort of distances that float computes
// exactly.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/kernels/entities_data.h"
#include "tests/kernels/memory.h"

namespace wd {
namespace {

// The numbers of thing k in a row of `data`.
class Things {
 public:
  Things(const EntitiesData& data, std::int64_t row) : data_(data), row_(row) {}

  float operator()(const EntityNumbers& numbers, int k) const {
    if (data_.agent.empty()) return at(row_ * data_.stride + numbers.first + std::int64_t{k} * numbers.step);
    const auto slots = static_cast<std::int64_t>(data_.agent.size());
    const std::int64_t unit = row_ / slots, self = data_.agent[static_cast<std::size_t>(row_ % slots)];
    const auto of_agent = [&](std::int64_t agent) {
      return at((unit * data_.agents + agent) * data_.stride + numbers.first);
    };
    return of_agent(k < self ? k : k + 1) - (numbers.relative ? of_agent(self) : 0.0f);
  }

 private:
  float at(std::int64_t entry) const {
    const float value = data_.observation[static_cast<std::size_t>(entry)];
    return data_.halves ? from_bfloat16(to_bfloat16(value)) : value;
  }

  const EntitiesData& data_;
  std::int64_t row_;
};

std::vector<std::int32_t> expected_things(const EntitiesData& data, std::int64_t row) {
  const Things value(data, row);
  std::vector<std::int32_t> all;
  for (int l = 0; l < data.shape.num_lists; ++l) {
    const EntityListShape& list = data.shape.list[l];
    for (int kind = 0; kind < list.kinds; ++kind) {
      std::vector<std::int32_t> things;
      for (int k = 0; k < list.count; ++k)
        if ((!list.presence.exist() || value(list.presence, k) != 0.0f) &&
            (!list.kind.exist() || value(list.kind, k) == static_cast<float>(kind)))
          things.push_back(k);
      std::ranges::stable_sort(things, {}, [&](int k) {
        const double x = value(list.x, k), y = value(list.y, k);
        return x * x + y * y;
      });
      things.resize(static_cast<std::size_t>(data.shape.nearest), -1);
      all.insert(all.end(), things.begin(), things.end());
    }
  }
  return all;
}

TEST(EntitiesKernel, FindsTheNearestAndOfEqualOnesTheFirst) {
  Draws draws(31);
  for (const EntitiesData& data : random_entities(draws)) {
    SCOPED_TRACE(testing::Message() << data.name << ", " << data.shape.nearest << " nearest");
    const std::vector<std::int32_t> found = run_entities(HostMemory(), data).found;
    std::vector<std::int32_t> expected;
    for (std::int64_t row = 0; row < data.rows; ++row) {
      const std::vector<std::int32_t> things = expected_things(data, row);
      expected.insert(expected.end(), things.begin(), things.end());
    }
    EXPECT_EQ(found, expected);
  }
}

}  // namespace
}  // namespace wd
