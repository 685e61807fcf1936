// json.cpp: autoscale.json, written and read; what is read is checked, since anyone may have written it.
#include "src/base/json.h"

#include <limits>

#include "src/autoscale/json_fields.h"
#include "src/autoscale/report.h"
#include "wd/error.h"

namespace wd::scaling {

Json to_json(const Probe& probe) {
  return {{"num_envs", probe.num_envs},
          {"rollout_steps", probe.rollout_steps},
          {"train_batch_size", probe.batch()}};
}

Probe probe_from(const Json& json) {
  constexpr std::int64_t kMost = std::int64_t{1}
                                 << 26;  // their product is whole in JSON too, and no overflow
  const Probe probe{count(json, "num_envs", 1, kMost), count(json, "rollout_steps", 1)};
  WD_CHECK(probe.rollout_steps <= kMostCount / probe.num_envs, "num_envs times rollout_steps cannot be");
  WD_CHECK(count(json, "train_batch_size", 1) == probe.batch(), "train_batch_size is another product");
  return probe;
}

namespace {

constexpr int kVersion = 3;
constexpr std::uint64_t kNoLimit = std::numeric_limits<std::uint64_t>::max();

// Each in the order of its enum.
constexpr std::array kObjectives{"speed", "memory"};
constexpr std::array kStages{"replicas", "rollout", "smallest"};
constexpr std::array kStatuses{"chosen", "nothing_fits", "failed"};
constexpr std::array kKinds{"fits", "out_of_memory", "too_slow", "failed", "skipped", "cut_short"};

// --- probes and outcomes -----------------------------------------------------------------------------------

Json to_json(const Outcome& outcome) {
  return {{"outcome", word(outcome.kind, kKinds)},
          {"bytes", outcome.bytes},
          {"env_steps_per_s", outcome.env_steps_per_s},
          {"seconds", outcome.seconds},
          {"detail", outcome.detail},
          {"ratios", outcome.ratios}};
}

Outcome outcome_from(const Json& json) {
  Outcome outcome{.kind = from_word<Kind>(json, "outcome", kKinds),
                  .bytes = static_cast<std::uint64_t>(count(json, "bytes", 0)),
                  .env_steps_per_s = number(json, "env_steps_per_s", 0.0),
                  .seconds = number(json, "seconds", 0.0),
                  .detail = text(json, "detail")};
  const Json& ratios = json.at("ratios");
  WD_CHECK(ratios.is_array(), "ratios is no list");
  for (const Json& ratio : ratios) outcome.ratios.push_back(number_of(ratio, "a ratio", 0.0));
  return outcome;
}

Json to_json(const Try& one) {
  Json json{{"stage", word(one.stage, kStages)}};
  json.update(to_json(one.probe));
  json.update(to_json(one.outcome));
  json["predicted_bytes"] = one.predicted_bytes;
  json["beside"] = one.beside ? to_json(*one.beside) : Json(nullptr);
  return json;
}

Try try_from(const Json& json) {
  return {from_word<Stage>(json, "stage", kStages), probe_from(json), outcome_from(json),
          static_cast<std::uint64_t>(count(json, "predicted_bytes", 0)),
          json.at("beside").is_null() ? std::nullopt : std::optional(probe_from(json["beside"]))};
}

// --- the parts of a report ---------------------------------------------------------------------------------

Json to_json(const Limits& limits) {
  return {{"memory_bytes", limits.memory_bytes == kNoLimit ? Json(nullptr) : Json(limits.memory_bytes)},
          {"max_envs", limits.max_envs},
          {"max_batch", limits.max_batch},
          {"min_batch", limits.min_batch},
          {"max_seconds", limits.max_seconds}};
}

Limits limits_from(const Json& json) {
  Limits limits;
  if (!json.at("memory_bytes").is_null())
    limits.memory_bytes = static_cast<std::uint64_t>(count(json, "memory_bytes", 0));
  limits.max_envs = count(json, "max_envs", 1);
  limits.max_batch = count(json, "max_batch", 1);
  limits.min_batch = count(json, "min_batch", 1);
  limits.max_seconds = number(json, "max_seconds", 0.0);
  return limits;
}

Json to_json(const MemoryLine& line) {
  return {{"fixed_bytes", line.fixed},
          {"bytes_per_replica", line.per_replica},
          {"bytes_per_replica_step", line.per_replica_step}};
}

MemoryLine memory_from(const Json& json) {
  constexpr double kAny = std::numeric_limits<double>::lowest();
  return {number(json, "fixed_bytes", kAny), number(json, "bytes_per_replica", kAny),
          number(json, "bytes_per_replica_step", kAny)};
}

Json parsed(std::string_view text) {
  Json json = parse_json<Json>(text);
  WD_CHECK(json.is_object(), "is no JSON object");
  return json;
}

constexpr auto kReplace = Json::error_handler_t::replace;  // what is no UTF-8

}  // namespace

std::string report_json(const Report& report) {
  const SearchResult& result = report.result;
  Json tries = Json::array();
  for (const Try& one : result.tries) tries.push_back(to_json(one));
  Json chosen = nullptr;
  if (result.status == Status::kChosen) {
    chosen = to_json(result.chosen);
    chosen["env_steps_per_s"] = result.env_steps_per_s;
    chosen["bytes"] = result.bytes;
    chosen["flags"] = set_flags(result.chosen);
  }
  const Json json{{"version", kVersion},
                  {"env", report.env},
                  {"device", report.device},
                  {"num_workers", report.num_workers},
                  {"objective", word(report.objective, kObjectives)},
                  {"limits", to_json(report.limits)},
                  {"total_steps", report.total_steps},
                  {"status", word(result.status, kStatuses)},
                  {"reason", result.reason},
                  {"at_max_batch", result.at_max_batch},
                  {"start", to_json(result.start)},
                  {"chosen", chosen},
                  {"memory", to_json(result.memory)},
                  {"tries", tries}};
  constexpr int kIndent = 2;
  return json.dump(kIndent, ' ', false, kReplace) + '\n';
}

Report parse_report(std::string_view written) {
  try {
    const Json json = parsed(written);
    WD_CHECK(json.at("version") == kVersion, "is a report of another version");
    Report report{
        .env = text(json, "env"),
        .device = text(json, "device"),
        .num_workers = static_cast<int>(count(json, "num_workers", 1, std::numeric_limits<int>::max())),
        .objective = from_word<Objective>(json, "objective", kObjectives),
        .limits = limits_from(json.at("limits")),
        .total_steps = count(json, "total_steps", 0)};
    SearchResult& result = report.result;
    result.status = from_word<Status>(json, "status", kStatuses);
    result.reason = text(json, "reason");
    result.at_max_batch = json.at("at_max_batch").get<bool>();
    result.start = probe_from(json.at("start"));
    result.memory = memory_from(json.at("memory"));
    WD_CHECK(json.at("tries").is_array(), "tries is no list");
    for (const Json& one : json.at("tries")) result.tries.push_back(try_from(one));
    if (result.status != Status::kChosen) return report;
    const Json& chosen = json.at("chosen");
    result.chosen = probe_from(chosen);
    result.env_steps_per_s = number(chosen, "env_steps_per_s", 0.0);
    result.bytes = static_cast<std::uint64_t>(count(chosen, "bytes", 0));
    return report;
  } catch (const Json::exception& error) {
    throw std::runtime_error(concat("is no report: ", error.what()));
  }
}

std::string outcome_json(const Outcome& outcome) { return to_json(outcome).dump(-1, ' ', false, kReplace); }

Outcome parse_outcome(std::string_view written) {
  try {
    return outcome_from(parsed(written));
  } catch (const Json::exception& error) {
    throw std::runtime_error(concat("is no outcome: ", error.what()));
  }
}

}  // namespace wd::scaling
