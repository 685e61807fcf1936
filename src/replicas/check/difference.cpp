// difference.cpp: describes in words where two replicas first differ.
#include <array>
#include <charconv>
#include <cstring>

#include "src/replicas/check/world.h"
#include "wd/error.h"
#include "wd/replicas.h"

namespace wd {
namespace {

std::size_t size(int n) { return static_cast<std::size_t>(n); }

std::size_t bytes_of(FieldType type) { return type == FieldType::kDouble ? 8 : 4; }

// Returns the index of the first of n elements of `width` bytes that differs, or n.
std::size_t first_difference(const void* a, const void* b, std::size_t n, std::size_t width) {
  const auto* const x = static_cast<const std::byte*>(a);
  const auto* const y = static_cast<const std::byte*>(b);
  if (std::memcmp(x, y, n * width) == 0) return n;
  std::size_t i = 0;
  while (std::memcmp(x + i * width, y + i * width, width) == 0) ++i;
  return i;
}

// Two numbers with different bits, in as many digits as distinguish them.
template <typename T>
std::string both(T a, T b) {
  const auto text = [](T value) {
    std::array<char, 32> digits{};
    return std::string(digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr);
  };
  const std::string x = text(a), y = text(b);
  return concat(x, ", and ", y, x == y ? ", with different bits" : "");
}

// Compares [E, count, width] values of one replica in each world; describes the first difference.
template <typename T>
std::string compare(const char* what, const Role& role, int width, const std::vector<T>& a, int replica_a,
                    const std::vector<T>& b, int replica_b) {
  const std::size_t n = size(role.count) * size(width);
  if (a.empty()) return {};
  const T* const x = a.data() + size(replica_a) * n;
  const T* const y = b.data() + size(replica_b) * n;
  const std::size_t i = first_difference(x, y, n, sizeof(T));
  if (i == n) return {};
  return concat("replica ", replica_a, ", ", role.name, " ", i / size(width), ": ", what,
                width > 1 ? concat(" ", i % size(width)) : "", " is ", both(x[i], y[i]));
}

std::string compare_flag(const char* what, const std::vector<std::uint8_t>& a, int replica_a,
                         const std::vector<std::uint8_t>& b, int replica_b) {
  const int x = a[size(replica_a)], y = b[size(replica_b)];
  return x == y ? "" : concat("replica ", replica_a, ": ", what, " is ", x, ", and ", y);
}

}  // namespace

std::string state_difference(const World& a, int replica_a, const World& b, int replica_b) {
  for (const StateField& field : a.layout().fields) {
    if (field.scratch) continue;
    const std::byte* const x = a.block(replica_a) + field.offset;
    const std::byte* const y = b.block(replica_b) + field.offset;
    const std::size_t i = first_difference(x, y, size(field.count), bytes_of(field.type));
    if (i == size(field.count)) continue;
    const double p = read_field(a.block(replica_a), field)[i], q = read_field(b.block(replica_b), field)[i];
    return concat(
        "replica ", replica_a, ": state field '", field.name, "'",
        field.per_agent ? concat(" of agent ", i)
        : field.array   ? concat(" [", i, "]")
                        : "",
        " is ",
        field.type == FieldType::kFloat ? both(static_cast<float>(p), static_cast<float>(q)) : both(p, q));
  }
  return {};
}

std::string difference(const World& a, int replica_a, const World& b, int replica_b) {
  std::string found = state_difference(a, replica_a, b, replica_b);
  const auto look = [&](auto&& next) {
    if (found.empty()) found = next();
  };
  look([&] { return compare_flag("terminated", a.terminated, replica_a, b.terminated, replica_b); });
  look([&] { return compare_flag("truncated", a.truncated, replica_a, b.truncated, replica_b); });
  look([&] { return compare_flag("reset_step", a.reset_step, replica_a, b.reset_step, replica_b); });
  for (std::size_t k = 0; k < a.spec().streams.size(); ++k) {
    const std::string name = concat("byte of stream '", a.spec().streams[k].name, "'");
    const int bytes = World::stride(a.spec().streams[k]);
    look([&] {
      return compare(name.c_str(), {"replica"}, bytes, a.streams[k], replica_a, b.streams[k], replica_b);
    });
    for (std::size_t r = 0; r < a.rows.size(); ++r)
      look([&] {
        return compare(name.c_str(), a.spec().roles[r], bytes, a.rows[r].streams[k], replica_a,
                       b.rows[r].streams[k], replica_b);
      });
  }
  for (std::size_t r = 0; r < a.rows.size(); ++r) {
    const Role& role = a.spec().roles[r];
    const RoleRows &x = a.rows[r], &y = b.rows[r];
    look([&] { return compare("the reward", role, 1, x.reward, replica_a, y.reward, replica_b); });
    look([&] { return compare("active", role, 1, x.active, replica_a, y.active, replica_b); });
    look([&] {
      return compare("agent_terminated", role, 1, x.agent_terminated, replica_a, y.agent_terminated,
                     replica_b);
    });
    look([&] {
      return compare("observation", role, World::stride(role), x.observation, replica_a, y.observation,
                     replica_b);
    });
    look([&] {
      return compare("action mask", role, role.action.choices(), x.action_mask, replica_a, y.action_mask,
                     replica_b);
    });
  }
  return found;
}

}  // namespace wd
