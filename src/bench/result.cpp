// result.cpp: computes rates from windows, achieved work from rates, and shares of the ceilings.
#include "src/bench/result.h"

#include "src/base/json.h"
#include "src/report/format.h"
#include "src/report/table.h"
#include "wd/error.h"

namespace wd::bench {
namespace {

constexpr double kGiga = 1e9, kTera = 1e12;

Json rate(double seconds, const Work& work, double steps, const Ceilings& ceilings) {
  Json json = Json::object();
  if (!(seconds > 0.0)) return json;
  const double bytes = work.bytes * steps / seconds, flop = work.flop * steps / seconds;
  if (work.bytes > 0.0) {
    json["GB_per_s"] = bytes / kGiga;
    json["share_of_copy"] = bytes / ceilings.copy_bytes_per_s;
    if (ceilings.store_bytes_per_s) json["share_of_store"] = bytes / *ceilings.store_bytes_per_s;
  }
  if (work.flop > 0.0) {
    json["TFLOP_per_s"] = flop / kTera;
    json["share_of_fp32"] = flop / ceilings.fp32_flop_per_s;
    if (ceilings.tf32_flop_per_s) json["share_of_tf32"] = flop / *ceilings.tf32_flop_per_s;
    if (ceilings.bf16_flop_per_s) json["share_of_bf16"] = flop / *ceilings.bf16_flop_per_s;
  }
  return json;
}

std::string number(double value) { return report::format_number("%.4g", value); }

std::string percent(const Json& json, const char* key) {
  if (!json.contains(key)) return "-";
  return report::format_number("%.1f %%", 100.0 * json[key].get<double>());
}

std::string cell(const Json& json, const char* key) {
  return json.contains(key) ? number(json[key].get<double>()) : "-";
}

}  // namespace

Json to_json(const Result& result, const Ceilings& ceilings) {
  const auto steps = static_cast<double>(result.steps_in_round * result.num_envs);  // per round
  const double rounds_to_units = result.by_step ? static_cast<double>(result.steps_in_round) : 1.0;
  std::vector<double> rates;
  double seconds = 0.0;
  std::int64_t rounds = 0;
  for (const Window& window : result.windows) {
    rates.push_back(steps / window.round_seconds());
    seconds += window.seconds;
    rounds += window.rounds;
  }
  const Spread speed = spread(rates);
  Json json{{"env", result.env},
            {"mode", result.mode},
            {"device", result.device},
            {"device_name", result.device_name},
            {"num_envs", result.num_envs},
            {"rollout_steps", result.rollout_steps},
            {"agents", result.agents},
            {"seconds", seconds},
            {"windows", result.windows.size()},
            {"env_steps", rounds * result.steps_in_round * result.num_envs},
            {"env_steps_per_s", speed.median},
            {"env_steps_per_s_least", speed.least},
            {"env_steps_per_s_most", speed.most},
            {"agent_steps_per_s", speed.median * static_cast<double>(result.agents)},
            {"ms_per", result.round},
            {"ms_per_round", 1e3 * steps / speed.median / rounds_to_units}};
  Json ms = Json::object(), achieved = Json::object(), work = Json::object();
  Work all;
  for (const PhaseWork& phase : result.phases) {
    std::vector<double> times;
    for (const Window& window : result.windows)
      times.push_back(window.phases[static_cast<std::size_t>(phase.phase)] /
                      static_cast<double>(window.rounds));
    const double median = spread(times).median;
    ms[phase.name] = 1e3 * median / rounds_to_units;
    all = all + phase.work;
    work[phase.name] = {{"bytes", phase.work.bytes}, {"flop", phase.work.flop}};
    achieved[phase.name] = rate(median, phase.work, steps, ceilings);
  }
  work["all"] = {{"bytes", all.bytes}, {"flop", all.flop}};
  achieved["all"] = rate(steps / speed.median, all, steps, ceilings);
  json["ms"] = std::move(ms);
  json["work_per_env_step"] = std::move(work);
  json["achieved"] = std::move(achieved);
  json["ceilings"] = to_json(ceilings);
  if (result.launches) {
    const auto per_step = static_cast<double>(result.steps_in_round);
    json["launches_per_step"] = static_cast<double>(result.launches->calls) / per_step;
    json["kernels_per_step"] = static_cast<double>(result.launches->kernels) / per_step;
  }
  json["peak_memory_bytes"] = result.peak_bytes;
  return json;
}

std::string to_text(const Json& json) {
  const auto real = [&](const char* key) { return json[key].get<double>(); };
  const double round = real("ms_per_round");
  std::string text = concat(json["env"].get<std::string>(), ", ", json["mode"].get<std::string>(), ", ",
                            json["num_envs"].dump(), " replicas x ", json["agents"].dump(), " agents, ",
                            json["rollout_steps"].dump(), " steps a rollout, ",
                            json["device_name"].get<std::string>(), "\n\n");
  std::vector<std::vector<std::string>> rows = {
      {"speed", concat(report::format_count(real("env_steps_per_s")), " env/s, ",
                       report::format_count(real("agent_steps_per_s")), " agent/s")},
      {"", concat("median of ", json["windows"].dump(), " windows, ",
                  report::format_count(real("env_steps_per_s_least")), " to ",
                  report::format_count(real("env_steps_per_s_most")), " env/s")},
      {"peak memory", report::format_bytes(json["peak_memory_bytes"].get<std::uint64_t>())}};
  if (json.contains("launches_per_step")) {
    rows.push_back({"launches", concat(number(real("launches_per_step")), " a step, ",
                                       number(real("kernels_per_step")), " kernels")});
  }
  text += report::table(rows, 0) + '\n';
  const Json& ceilings = json["ceilings"];
  const char* const product = ceilings.contains("bf16_TFLOP_per_s") ? "share_of_bf16" : "share_of_fp32";
  rows = {{"phase", concat("ms per ", json["ms_per"].get<std::string>()), "share", "GB/s", "of a copy",
           "TFLOP/s", product == std::string("share_of_bf16") ? "of bf16 products" : "of fp32 products"}};
  const auto add = [&](const std::string& name, double ms, const Json& achieved) {
    rows.push_back({name, number(ms), percent({{"share", round > 0.0 ? ms / round : 0.0}}, "share"),
                    cell(achieved, "GB_per_s"), percent(achieved, "share_of_copy"),
                    cell(achieved, "TFLOP_per_s"), percent(achieved, product)});
  };
  for (const auto& [phase, ms] : json["ms"].items()) add(phase, ms.get<double>(), json["achieved"][phase]);
  add("all", round, json["achieved"]["all"]);
  rows.push_back(
      {"ceiling", "", "", cell(ceilings, "copy_GB_per_s"), "",
       cell(ceilings, product == std::string("share_of_bf16") ? "bf16_TFLOP_per_s" : "fp32_TFLOP_per_s")});
  return text + report::table(rows, 0);
}

Json to_json(const Ceilings& ceilings) {
  Json json{{"copy_GB_per_s", ceilings.copy_bytes_per_s / kGiga},
            {"fp32_TFLOP_per_s", ceilings.fp32_flop_per_s / kTera}};
  if (ceilings.tf32_flop_per_s) json["tf32_TFLOP_per_s"] = *ceilings.tf32_flop_per_s / kTera;
  if (ceilings.bf16_flop_per_s) json["bf16_TFLOP_per_s"] = *ceilings.bf16_flop_per_s / kTera;
  if (ceilings.store_bytes_per_s) json["store_GB_per_s"] = *ceilings.store_bytes_per_s / kGiga;
  return json;
}

Ceilings parse_ceilings(const std::string& text) {
  const Json json = parse_json<Json>(text);
  const auto read = [&](const char* key) {
    WD_CHECK(json.is_object() && json.contains(key) && json[key].is_number() && json[key].get<double>() > 0.0,
             "ceilings without ", key, ": ", text);
    return json[key].get<double>();
  };
  Ceilings ceilings{read("copy_GB_per_s") * kGiga, read("fp32_TFLOP_per_s") * kTera};
  if (json.contains("tf32_TFLOP_per_s")) ceilings.tf32_flop_per_s = read("tf32_TFLOP_per_s") * kTera;
  if (json.contains("bf16_TFLOP_per_s")) ceilings.bf16_flop_per_s = read("bf16_TFLOP_per_s") * kTera;
  if (json.contains("store_GB_per_s")) ceilings.store_bytes_per_s = read("store_GB_per_s") * kGiga;
  return ceilings;
}

}  // namespace wd::bench
