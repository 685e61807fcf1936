// json.cpp: autoscale.json, and the orders and answers of probe processes. Each field is named once, for
// writing and for reading. Values that are read are checked, because the file may come from anywhere.
#include "src/base/json.h"

#include <algorithm>
#include <array>
#include <limits>

#include "src/autoscale/probe.h"
#include "src/autoscale/report.h"
#include "wd/error.h"

namespace wd::scaling {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kVersion = 3;
constexpr double kMaxNumber = std::int64_t{1} << 53;    // counts up to it are exact in JSON
constexpr double kMaxReplicas = std::int64_t{1} << 26;  // so that their batch does not overflow

// Each array is in the order of its enum.
constexpr std::array kObjectives{"speed", "memory"};
constexpr std::array kStatuses{"chosen", "nothing_fits", "failed"};

// The fields of an object, in order, for writing or for reading. Reading throws std::runtime_error or
// Json::exception if a value is missing or invalid.
class Fields {
 public:
  Fields() = default;                                               // writes
  explicit Fields(const Json& read) : json_(read), reads_(true) {}  // reads

  // Visits the fields of the value and returns their object.
  template <typename T>
  static Json visit(Fields fields, T& value) {
    fields_of(fields, value);
    return fields.json_;
  }

  // A number that is read must be in [min, max], and a count cannot be negative.
  template <typename T>
  void operator()(const char* key, T& value, double min = 0.0, double max = kMaxNumber) {
    if constexpr (requires { fields_of(*this, value); }) {
      json_[key] = visit(reads_ ? Fields(json_.at(key)) : Fields(), value);
    } else if (!reads_) {
      json_[key] = value;
    } else {
      const Json& read = json_.at(key);
      if constexpr (std::is_arithmetic_v<T> && !std::is_same_v<T, bool>) {
        const bool count = std::is_integral_v<T>;
        WD_CHECK(count ? read.is_number_unsigned() : read.is_number(), key, " is not a ",
                 count ? "count" : "number");
        WD_CHECK(read >= min && read <= max, key, " = ", read.dump(), " cannot be");
      }
      read.get_to(value);
    }
  }
  template <typename Enum, std::size_t n>
  void operator()(const char* key, Enum& value, const std::array<const char*, n>& words) {
    if (!reads_) {
      json_[key] = words[static_cast<std::size_t>(value)];
      return;
    }
    const auto found = std::ranges::find(words, json_.at(key).get<std::string>());
    WD_CHECK(found != words.end(), key, " is not one of its words");
    value = static_cast<Enum>(found - words.begin());
  }
  // An empty optional is written as null, and may be missing.
  template <typename T>
  void operator()(const char* key, std::optional<T>& value) {
    if (reads_ && json_.contains(key) && !json_.at(key).is_null()) value.emplace();
    if (value) return (*this)(key, *value);
    json_[key] = nullptr;
  }
  template <typename T>
  void operator()(const char* key, std::vector<T>& values) {
    const Json list = reads_ ? json_.at(key) : Json(Json::array_t(values.size()));
    WD_CHECK(list.is_array(), key, " is not a list");
    values.resize(list.size());
    json_[key] = Json::array();
    for (std::size_t k = 0; k < values.size(); ++k) {
      Fields one = reads_ ? Fields(Json{{key, list[k]}}) : Fields();
      one(key, values[k]);
      json_[key].push_back(one.json_[key]);
    }
  }

 private:
  Json json_ = Json::object();
  bool reads_ = false;
};

void fields_of(Fields& fields, Probe& probe) {
  fields("num_envs", probe.num_envs, 1, kMaxReplicas);
  fields("rollout_steps", probe.rollout_steps, 1,
         kMaxNumber / std::max(1.0, static_cast<double>(probe.num_envs)));
  std::int64_t batch = probe.batch();
  fields("train_batch_size", batch);
  WD_CHECK(batch == probe.batch(), "train_batch_size is another product");
}

void fields_of(Fields& fields, ProbeEnd& outcome) {
  fields("outcome", outcome.kind, kKindWords);
  fields("bytes", outcome.bytes);
  fields("env_steps_per_s", outcome.env_steps_per_s);
  fields("seconds", outcome.seconds);
  fields("detail", outcome.detail);
  fields("ratios", outcome.ratios);
}

void fields_of(Fields& fields, Trial& one) {
  fields("stage", one.stage, kStageWords);
  fields_of(fields, one.probe);
  fields_of(fields, one.outcome);
  fields("predicted_bytes", one.predicted_bytes);
  fields("beside", one.reference);
}

void fields_of(Fields& fields, Limits& limits) {
  std::optional<std::uint64_t> memory = limits.memory_bytes;
  if (memory == Limits().memory_bytes) memory.reset();  // no limit
  fields("memory_bytes", memory);
  limits.memory_bytes = memory.value_or(Limits().memory_bytes);
  fields("max_envs", limits.max_envs, 1);
  fields("max_batch", limits.max_batch, 1);
  fields("min_batch", limits.min_batch, 1);
  fields("max_seconds", limits.max_seconds);
}

void fields_of(Fields& fields, MemoryLine& line) {
  fields("fixed_bytes", line.fixed, -kMaxNumber);
  fields("bytes_per_replica", line.per_replica, -kMaxNumber);
  fields("bytes_per_replica_step", line.per_replica_step, -kMaxNumber);
}

// The result of a search that has chosen a setting.
struct Chosen {
  SearchResult& result;
};

void fields_of(Fields& fields, Chosen& chosen) {
  fields_of(fields, chosen.result.chosen);
  fields("env_steps_per_s", chosen.result.env_steps_per_s);
  fields("bytes", chosen.result.bytes);
  std::string flags = set_flags(chosen.result.chosen);
  fields("flags", flags);
}

void fields_of(Fields& fields, Report& report) {
  SearchResult& result = report.result;
  int version = kVersion;
  fields("version", version);
  WD_CHECK(version == kVersion, "is a report of another version");
  fields("env", report.env);
  fields("device", report.device);
  fields("num_workers", report.num_workers, 1, std::numeric_limits<int>::max());
  fields("objective", report.objective, kObjectives);
  fields("limits", report.limits);
  fields("total_steps", report.total_steps);
  fields("status", result.status, kStatuses);
  fields("reason", result.reason);
  fields("at_max_batch", result.at_max_batch);
  fields("start", result.start);
  std::nullptr_t none = nullptr;
  if (Chosen chosen{result}; result.status == Status::kChosen) {
    fields("chosen", chosen);
  } else {
    fields("chosen", none);
  }
  fields("memory", result.memory);
  fields("tries", result.trials);
}

void fields_of(Fields& fields, ProbeOrder& order) {
  fields("probe", order.probe);
  fields("max_seconds", order.max_seconds);
  fields("max_iteration_seconds", order.max_iteration_seconds);
  fields("measured_seconds", order.measured_seconds);
  fields("memory_bytes", order.memory_bytes);
  std::string answer = order.answer.string();
  fields("answer", answer);
  order.answer = answer;
  fields("beside", order.reference);
}

// Takes the value by copy: writing and reading share one list of fields, which needs to modify them.
template <typename T>
std::string written(T value, int indent = -1) {
  return dump(Fields::visit(Fields(), value), indent);
}

template <typename T>
T parsed(std::string_view text, const char* what) {
  const Json json = parse_json<Json>(text);
  WD_CHECK(json.is_object(), "is no JSON object");
  try {
    T value;
    Fields::visit(Fields(json), value);
    return value;
  } catch (const Json::exception& error) {
    throw std::runtime_error(concat("is no ", what, ": ", error.what()));
  }
}

}  // namespace

std::string report_json(const Report& report) { return written(report, 2) + '\n'; }
Report parse_report(std::string_view text) { return parsed<Report>(text, "report"); }

std::string outcome_json(const ProbeEnd& outcome) { return written(outcome); }
ProbeEnd parse_outcome(std::string_view text) { return parsed<ProbeEnd>(text, "outcome"); }

std::string order_json(const ProbeOrder& order) { return written(order); }
ProbeOrder parse_order(std::string_view text) { return parsed<ProbeOrder>(text, "order for a probe"); }

}  // namespace wd::scaling
