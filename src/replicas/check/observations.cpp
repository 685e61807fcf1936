// observations.cpp: plays randomly and measures the range of every part of the observation, and of streams.
#include <algorithm>
#include <cmath>

#include "src/base/stopwatch.h"
#include "src/replicas/check/checks.h"
#include "src/replicas/check/watchdog.h"
#include "src/replicas/check/world.h"
#include "src/report/format.h"
#include "src/report/table.h"
#include "wd/error.h"

namespace wd {
namespace {

constexpr int kObservedReplicas = 4;
constexpr double kLarge = 1e3;  // networks learn slowly from entries beyond
constexpr int kMaxWarnings = 4;

struct Entry {
  double low = HUGE_VAL, high = -HUGE_VAL, sum = 0.0;
  std::int64_t count = 0;

  void add(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
    sum += value;
    ++count;
  }
  void add(const Entry& entry) {
    low = std::min(low, entry.low);
    high = std::max(high, entry.high);
    sum += entry.sum;
    count += entry.count;
  }
};

// The numbers of these rows of a stream; `active`: of the agents, or null.
void add_stream(const StreamSpec& stream, const std::vector<std::uint8_t>& rows, const std::uint8_t* active,
                Entry& entry) {
  const auto bytes = static_cast<std::size_t>(World::stride(stream));
  for (std::size_t row = 0; row * bytes < rows.size(); ++row) {
    const std::uint8_t* const at = &rows[row * bytes];
    for (int i = 0; i < stream.size() && (active == nullptr || active[row] != 0); ++i)
      entry.add(stream.type == StreamSpec::kUint8 ? at[i] : reinterpret_cast<const float*>(at)[i]);
  }
}

using Entries = std::vector<std::vector<Entry>>;  // by role and entry of its row

void add_rows(const World& world, Entries& entries) {
  for (std::size_t r = 0; r < entries.size(); ++r) {
    const RoleRows& rows = world.rows[r];
    const auto stride = static_cast<std::size_t>(World::stride(world.spec().roles[r]));
    for (std::size_t slot = 0; slot < rows.active.size(); ++slot) {
      if (rows.active[slot] == 0) continue;
      for (std::size_t k = 0; k < entries[r].size(); ++k)
        entries[r][k].add(static_cast<double>(rows.observation[slot * stride + k]));
    }
  }
}

// What fits the column of names.
std::string shortened(const std::string& name) {
  constexpr std::size_t kWidth = 34;
  return name.size() <= kWidth ? name : name.substr(0, kWidth - 3) + "...";
}

std::string number(double value) { return report::format_number("%.4g", value); }

// "minimum -1        mean 0.01      maximum 1".
std::string range_of(const Entry& part) {
  if (part.count == 0) return "no agent was in the game";
  constexpr int kWidth = 11;
  return concat("minimum ", report::padded(number(part.low), -kWidth), "mean ",
                report::padded(number(part.sum / static_cast<double>(part.count)), -kWidth), "maximum ",
                number(part.high));
}

// "entries 0, 3 and 4 more of part 'place' of runner never change (0, 1)".
std::string constants_of(const std::vector<Entry>& entries, std::size_t begin, std::size_t end) {
  constexpr std::size_t kNamed = 3;
  std::vector<std::size_t> constant;
  for (std::size_t k = begin; k < end; ++k)
    if (entries[k].count > 1 && entries[k].low == entries[k].high) constant.push_back(k);
  if (constant.empty()) return {};
  if (constant.size() == 1)
    return concat(end - begin == 1 ? std::string() : concat("entry ", constant[0] - begin, " of "),
                  "it is always ", number(entries[constant[0]].low));
  std::string text =
      concat(constant.size() == end - begin ? "all " : "", constant.size(), " entries never change: ");
  for (std::size_t i = 0; i < std::min(kNamed, constant.size()); ++i)
    text += concat(i == 0 ? "" : ", ", "[", constant[i] - begin, "] = ", number(entries[constant[i]].low));
  return constant.size() > kNamed ? text + ", ..." : text;
}

}  // namespace

ObservationReport check_observations(const Environment& environment, const CheckOptions& options) {
  World world(environment, kObservedReplicas, options.seed);
  const std::vector<Role>& roles = world.spec().roles;
  Entries entries;
  for (const Role& role : roles) entries.emplace_back(static_cast<std::size_t>(role.observation_size()));
  const std::vector<StreamSpec>& streams = world.spec().streams;
  std::vector<Entry> of_streams(streams.size());
  const Stopwatch watch;
  int step = 0;
  for (; step < options.steps && (step < kMinSteps || watch.seconds() < options.seconds); ++step) {
    world.draw_actions(static_cast<std::uint64_t>(step));
    world.step();
    add_rows(world, entries);
    for (std::size_t k = 0; k < streams.size(); ++k) {
      add_stream(streams[k], world.streams[k], nullptr, of_streams[k]);
      for (const RoleRows& rows : world.rows)
        add_stream(streams[k], rows.streams[k], rows.active.data(), of_streams[k]);
    }
  }
  ObservationReport report{{"observations change, none is huge", ""}, {}};
  std::vector<std::string> warnings;
  for (std::size_t r = 0; r < roles.size(); ++r) {
    std::size_t begin = 0;
    for (const ObservationPart& part : roles[r].observation) {
      const std::size_t end = begin + static_cast<std::size_t>(part.size);
      Entry whole;
      for (std::size_t k = begin; k < end; ++k) whole.add(entries[r][k]);
      report.parts.push_back({shortened(concat("  ", roles[r].name, ": ", part.name)), range_of(whole)});
      const std::string what = concat("part '", part.name, "' of ", roles[r].name, ": ");
      if (const std::string found = constants_of(entries[r], begin, end); !found.empty())
        warnings.push_back(concat(what, found, "; if random play comes no further, --steps N plays longer"));
      if (whole.count > 0 && std::max(-whole.low, whole.high) > kLarge)
        warnings.push_back(
            concat(what, "reaches ", number(-whole.low > whole.high ? whole.low : whole.high),
                   ", from which networks learn slowly: divide it, or set model.normalize_input"));
      begin = end;
    }
  }
  for (std::size_t k = 0; k < streams.size(); ++k) {
    const Entry& whole = of_streams[k];
    report.parts.push_back({shortened(concat("  stream ", streams[k].name)), range_of(whole)});
    if (whole.count > 0 && whole.low == whole.high)
      warnings.push_back(
          concat("stream '", streams[k].name, "': every number of it is always ", number(whole.low)));
  }
  const std::string extent = concat(step, " steps of ", kObservedReplicas, " replicas, random actions");
  report.result.warns = !warnings.empty();
  report.result.detail = extent;
  for (std::size_t k = 0; k < warnings.size() && k < kMaxWarnings; ++k)
    report.result.detail += concat("; ", warnings[k]);
  if (warnings.size() > kMaxWarnings)
    report.result.detail += concat("; and ", warnings.size() - kMaxWarnings, " more");
  return report;
}

}  // namespace wd
