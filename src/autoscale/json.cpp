// json.cpp: autoscale.json, and the orders and answers of probe processes. Each field is named once, for
// writing and for reading. Values that are read are checked, because the file may come from anywhere.
#include "src/base/json.h"

#include <array>
#include <cmath>
#include <limits>

#include "src/autoscale/probe.h"
#include "src/autoscale/report.h"
#include "wd/error.h"

namespace wd::scaling {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kVersion = 3;
constexpr std::int64_t kMaxCount = std::int64_t{1} << 53;     // exactly representable in JSON
constexpr std::int64_t kMaxReplicas = std::int64_t{1} << 26;  // so that their batch does not overflow
constexpr double kAny = std::numeric_limits<double>::lowest();

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

  void count(const char* key, std::int64_t& value, std::int64_t min, std::int64_t max = kMaxCount) {
    if (!reads_) return put(key, value);
    const Json& read = json_.at(key);
    WD_CHECK(read.is_number_unsigned(), key, " is not a count");
    const auto number = read.get<std::uint64_t>();
    WD_CHECK(number >= static_cast<std::uint64_t>(min) && number <= static_cast<std::uint64_t>(max), key,
             " = ", number, " cannot be");
    value = static_cast<std::int64_t>(number);
  }
  void bytes(const char* key, std::uint64_t& value) {
    auto number = static_cast<std::int64_t>(value);
    count(key, number, 0);
    value = static_cast<std::uint64_t>(number);
  }
  void none(const char* key) { put(key, nullptr); }
  // The maximum value, which means no limit, is written as null.
  void limit(const char* key, std::uint64_t& value) {
    constexpr auto kNone = std::numeric_limits<std::uint64_t>::max();
    const bool is_none = reads_ ? json_.at(key).is_null() : value == kNone;
    if (!is_none) return bytes(key, value);
    none(key);
    value = kNone;
  }
  void number(const char* key, double& value, double min = 0.0) {
    if (!reads_) return put(key, value);
    value = number_of(json_.at(key), key, min);
  }
  void numbers(const char* key, std::vector<double>& values) {
    if (!reads_) return put(key, values);
    for (const Json& one : list(key)) values.push_back(number_of(one, key, 0.0));
  }
  // T is bool or std::string.
  template <typename T>
  void plain(const char* key, T& value) {
    if (!reads_) return put(key, value);
    value = json_.at(key).get<T>();
  }
  template <typename Enum, std::size_t n>
  void word(const char* key, Enum& value, const std::array<const char*, n>& words) {
    if (!reads_) return put(key, words[static_cast<std::size_t>(value)]);
    const auto found = std::ranges::find(words, json_.at(key).get<std::string>());
    WD_CHECK(found != words.end(), key, " is not one of its words");
    value = static_cast<Enum>(found - words.begin());
  }
  template <typename T>
  void object(const char* key, T& value) {
    put(key, visit(reads_ ? Fields(json_.at(key)) : Fields(), value));
  }
  // An empty optional is written as null. When read, it may be null or missing.
  template <typename T>
  void object(const char* key, std::optional<T>& value) {
    if (reads_ && !json_.value(key, Json()).is_null()) value.emplace();
    if (value) return object(key, *value);
    none(key);
  }
  template <typename T>
  void objects(const char* key, std::vector<T>& values) {
    Json all = reads_ ? list(key) : Json(Json::array_t(values.size()));
    values.resize(all.size());
    for (std::size_t k = 0; k < values.size(); ++k)
      all[k] = visit(reads_ ? Fields(all[k]) : Fields(), values[k]);
    put(key, all);
  }

 private:
  template <typename T>
  void put(const char* key, const T& value) {
    json_[key] = value;
  }
  const Json& list(const char* key) const {
    WD_CHECK(json_.at(key).is_array(), key, " is not a list");
    return json_.at(key);
  }
  // JSON writes infinite and NaN numbers as null, so they are rejected here.
  static double number_of(const Json& value, const char* name, double min) {
    WD_CHECK(value.is_number(), name, " is not a number");
    const auto read = value.get<double>();
    WD_CHECK(std::isfinite(read) && read >= min, name, " = ", read, " cannot be");
    return read;
  }

  Json json_ = Json::object();
  bool reads_ = false;
};

void fields_of(Fields& fields, Probe& probe) {
  fields.count("num_envs", probe.num_envs, 1, kMaxReplicas);
  fields.count("rollout_steps", probe.rollout_steps, 1,
               kMaxCount / std::max<std::int64_t>(probe.num_envs, 1));
  std::int64_t batch = probe.batch();
  fields.count("train_batch_size", batch, 1);
  WD_CHECK(batch == probe.batch(), "train_batch_size is another product");
}

void fields_of(Fields& fields, Outcome& outcome) {
  fields.word("outcome", outcome.kind, kKindWords);
  fields.bytes("bytes", outcome.bytes);
  fields.number("env_steps_per_s", outcome.env_steps_per_s);
  fields.number("seconds", outcome.seconds);
  fields.plain("detail", outcome.detail);
  fields.numbers("ratios", outcome.ratios);
}

void fields_of(Fields& fields, Trial& one) {
  fields.word("stage", one.stage, kStageWords);
  fields_of(fields, one.probe);
  fields_of(fields, one.outcome);
  fields.bytes("predicted_bytes", one.predicted_bytes);
  fields.object("beside", one.reference);
}

void fields_of(Fields& fields, Limits& limits) {
  fields.limit("memory_bytes", limits.memory_bytes);
  fields.count("max_envs", limits.max_envs, 1);
  fields.count("max_batch", limits.max_batch, 1);
  fields.count("min_batch", limits.min_batch, 1);
  fields.number("max_seconds", limits.max_seconds);
}

void fields_of(Fields& fields, MemoryLine& line) {
  fields.number("fixed_bytes", line.fixed, kAny);
  fields.number("bytes_per_replica", line.per_replica, kAny);
  fields.number("bytes_per_replica_step", line.per_replica_step, kAny);
}

// The result of a search that has chosen a setting.
struct Chosen {
  SearchResult& result;
};

void fields_of(Fields& fields, Chosen& chosen) {
  fields_of(fields, chosen.result.chosen);
  fields.number("env_steps_per_s", chosen.result.env_steps_per_s);
  fields.bytes("bytes", chosen.result.bytes);
  std::string flags = set_flags(chosen.result.chosen);
  fields.plain("flags", flags);
}

void fields_of(Fields& fields, Report& report) {
  SearchResult& result = report.result;
  std::int64_t version = kVersion, workers = report.num_workers;
  fields.count("version", version, 0);
  WD_CHECK(version == kVersion, "is a report of another version");
  fields.plain("env", report.env);
  fields.plain("device", report.device);
  fields.count("num_workers", workers, 1, std::numeric_limits<int>::max());
  report.num_workers = static_cast<int>(workers);
  fields.word("objective", report.objective, kObjectives);
  fields.object("limits", report.limits);
  fields.count("total_steps", report.total_steps, 0);
  fields.word("status", result.status, kStatuses);
  fields.plain("reason", result.reason);
  fields.plain("at_max_batch", result.at_max_batch);
  fields.object("start", result.start);
  if (Chosen chosen{result}; result.status == Status::kChosen) {
    fields.object("chosen", chosen);
  } else {
    fields.none("chosen");
  }
  fields.object("memory", result.memory);
  fields.objects("tries", result.trials);
}

void fields_of(Fields& fields, ProbeOrder& order) {
  fields.object("probe", order.probe);
  fields.number("max_seconds", order.max_seconds);
  fields.number("max_iteration_seconds", order.max_iteration_seconds);
  fields.number("measured_seconds", order.measured_seconds);
  fields.bytes("memory_bytes", order.memory_bytes);
  std::string answer = order.answer.string();
  fields.plain("answer", answer);
  order.answer = answer;
  fields.object("beside", order.reference);
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

std::string outcome_json(const Outcome& outcome) { return written(outcome); }

Outcome parse_outcome(std::string_view text) { return parsed<Outcome>(text, "outcome"); }

std::string order_json(const ProbeOrder& order) { return written(order); }

ProbeOrder parse_order(std::string_view text) { return parsed<ProbeOrder>(text, "order for a probe"); }

}  // namespace wd::scaling
