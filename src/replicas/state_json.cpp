// state_json.cpp: writes and reads state fields as numbers.
#include "src/replicas/state_json.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>

#include "wd/error.h"
#include "wd/replicas.h"

namespace wd {

namespace {

template <typename T>
void store(std::byte* at, int i, T value) {
  std::memcpy(at + static_cast<std::size_t>(i) * sizeof(T), &value, sizeof(T));
}

template <typename T>
T load(const std::byte* at, int i) {
  T value;
  std::memcpy(&value, at + static_cast<std::size_t>(i) * sizeof(T), sizeof(T));
  return value;
}

template <typename T>
void store_integer(const StateField& field, std::byte* at, int i, double value) {
  using Limits = std::numeric_limits<T>;
  if (std::floor(value) != value || value < static_cast<double>(Limits::min()) ||
      value > static_cast<double>(Limits::max())) {
    throw UsageError(
        concat("state field '", field.name, "': ", value, " is not an integer that it can hold"));
  }
  store(at, i, static_cast<T>(value));
}

void store_number(const StateField& field, std::byte* at, int i, const nlohmann::json& number) {
  if (!number.is_number() && !number.is_boolean()) {
    throw UsageError("state field '" + field.name + "': " + number.dump() + " is not a number");
  }
  const double value = number.is_boolean() ? (number.get<bool>() ? 1.0 : 0.0) : number.get<double>();
  if (!std::isfinite(value)) throw UsageError("state field '" + field.name + "': it must be finite");
  switch (field.type) {
    case FieldType::kFloat:
      if (std::abs(value) > static_cast<double>(std::numeric_limits<float>::max()))
        throw UsageError(concat("state field '", field.name, "': ", value, " is not a float"));
      return store(at, i, static_cast<float>(value));
    case FieldType::kDouble:
      return store(at, i, value);
    case FieldType::kInt:
      return store_integer<std::int32_t>(field, at, i, value);
    case FieldType::kUnsigned:
      return store_integer<std::uint32_t>(field, at, i, value);
  }
}

}  // namespace

void write_fields(std::byte* block, const StateLayout& layout, const nlohmann::json& object) {
  if (!object.is_object())
    throw UsageError("a start must be an object {\"field\": [values], ...}, not " +
                     object.dump().substr(0, 40));
  for (const auto& [name, given] : object.items()) {
    const StateField& field = layout.field(name);
    if (field.scratch) throw UsageError("state field '" + name + "' is working memory and cannot be given");
    const nlohmann::json values = given.is_array() ? given : nlohmann::json::array({given});
    const bool right_count = values.size() == static_cast<std::size_t>(field.count);
    if (!right_count && field.array) {
      throw UsageError(concat("state field '", name, "' is given ", values.size(),
                              " values, but its array has ", field.count));
    }
    if (!right_count) {
      throw UsageError(concat("state field '", name, "' has ", values.size(),
                              " values, but the environment has ", field.count,
                              field.per_agent ? " agents" : " of it"));
    }
    for (int i = 0; i < field.count; ++i)
      store_number(field, block + field.offset, i, values[static_cast<std::size_t>(i)]);
  }
}

std::vector<double> read_field(const std::byte* block, const StateField& field) {
  std::vector<double> values;
  const std::byte* const at = block + field.offset;
  for (int i = 0; i < field.count; ++i) {
    switch (field.type) {
      case FieldType::kFloat:
        values.push_back(load<float>(at, i));
        break;
      case FieldType::kDouble:
        values.push_back(load<double>(at, i));
        break;
      case FieldType::kInt:
        values.push_back(load<std::int32_t>(at, i));
        break;
      case FieldType::kUnsigned:
        values.push_back(load<std::uint32_t>(at, i));
        break;
    }
  }
  return values;
}

}  // namespace wd
