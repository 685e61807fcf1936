// bench.cpp: `wdtrain bench`: measures steps per second of the environment alone, of acting in it, or of
// training.
#include <algorithm>
#include <cstdlib>
#include <optional>

#include "src/base/atomic_file.h"
#include "src/base/host_memory.h"
#include "src/base/json.h"
#include "src/base/log.h"
#include "src/base/program_name.h"
#include "src/base/run_child.h"
#include "src/base/suggest.h"
#include "src/bench/sweep.h"
#include "src/bench/table.h"
#include "src/bench/workloads.h"
#include "src/cli/output.h"
#include "src/cli/setup.h"
#include "src/device/out_of_memory.h"
#include "src/report/plain_error.h"

namespace wd::cli {
namespace {

using bench::Json;

// Environment variable with one setting of a sweep for the process that measures it: {"KEY": "VALUE", ...},
// and the ceilings if they are known.
constexpr const char* kSettingVariable = "WD_BENCH_SETTING";
constexpr Range kReplicas = {1, 1e7}, kSteps = {1, 1e6};

// The work to measure: the options, overridden by one setting of a sweep.
struct BenchRequest {
  ConfigSources sources;
  std::string mode = "env";
  std::int64_t num_envs = 0, rollout_steps = 0;  // 0: not given
  double seconds = 5.0, memory_gb = 0.0;

  void set(const std::string& key, const std::string& value) {
    if (key == "mode") {
      mode = value;
    } else if (key == "num_envs") {
      num_envs = parse_integer("--num_envs", value, kReplicas);
    } else if (key == "rollout_steps") {
      rollout_steps = parse_integer("--rollout_steps", value, kSteps);
    } else {
      sources.overrides.push_back({key, value, "--sweep"});
    }
  }

  void check() const {
    if (mode != "env" && mode != "act" && mode != "train") {
      throw UsageError("--mode " + mode + ": must be env, act or train" +
                       suggestion(mode, {"env", "act", "train"}));
    }
  }

  // Puts the replicas and the steps of a rollout into the configuration.
  void shape_batch() {
    const auto is_batch = [](const Override& one) { return one.path == "trainer.train_batch_size"; };
    const bool batch = std::ranges::any_of(sources.overrides, is_batch);
    if (batch && rollout_steps > 0)
      throw UsageError(
          "--rollout_steps and --train_batch_size exclude each other: a batch is replicas times steps");
    if (num_envs == 0 && rollout_steps == 0) return;
    if (!batch) {
      const TrainerSettings configured = load_environment(sources).config.trainer;
      const std::int64_t replicas = num_envs > 0 ? num_envs : configured.num_envs;
      const std::int64_t steps = rollout_steps > 0 ? rollout_steps : configured.rollout_steps();
      sources.overrides.push_back(
          {"trainer.train_batch_size", std::to_string(replicas * steps), "--rollout_steps"});
    }
    if (num_envs > 0)
      sources.overrides.push_back({"trainer.num_envs", std::to_string(num_envs), "--num_envs"});
  }
};

struct BenchArguments {
  BenchRequest order;
  std::string json = "-";
  std::vector<std::string> sweep;
  bool to_json = false;

  bool parse(const CommandLine& line) {
    Arguments arguments(
        line, "bench",
        "Measure the speed of the environment with random actions, of acting, or of training, and compare it "
        "with the limits of the machine.");
    ConfigOptions config;
    config.add_word(arguments);
    config.add_to(arguments,
                  {{"--seed", "trainer.seed"}, {"--train_batch_size", "trainer.train_batch_size"}});
    arguments.option("--mode", order.mode, "env | act | train",
                     "env: step with random actions; act: roll out policies; train: iterate");
    arguments.number("--num_envs", order.num_envs, kReplicas, "INT",
                     "replicas of the environment; the rollout length is kept");
    arguments.number("--rollout_steps", order.rollout_steps, kSteps, "INT",
                     "steps per rollout; the number of replicas is kept");
    arguments.number("--seconds", order.seconds, above(0.0, 1e6), "NUMBER",
                     "length of a measurement (5), after a warm-up of a tenth of it");
    arguments.repeatable(
        "--sweep", sweep, "KEY=FIRST..LAST|A,B,C",
        "measure each value, doubling from FIRST or as listed, in a separate process; a second "
        "--sweep: all combinations");
    arguments.optional_value("--json", json, to_json, "FILE",
                             "write results as JSON to a file; - or no value: to stdout");
    arguments.number("--memory_gb", order.memory_gb, above(0.0, 1e6), "NUMBER",
                     "on the CPU, with --sweep: a setting that asks for more is reported as out of memory");
    if (!arguments.parse()) return false;
    config.take_word(arguments);
    order.sources = config.sources();
    return true;
  }
};

// `ceilings` are given if they are already known.
Json measure(BenchRequest order, std::optional<bench::Ceilings> ceilings) {
  order.check();
  const bool env = order.mode == "env";
  // Without training there is no batch that must be a multiple of the number of replicas.
  if (!env) order.shape_batch();
  const Experiment setup = load_setup(order.sources);
  if (order.memory_gb > 0.0) {
    if (setup.device.is_cuda())
      throw UsageError("--memory_gb is for the CPU: a GPU's memory is its own limit");
    limit_memory(static_cast<std::uint64_t>(order.memory_gb * 1e9));
  }
  const std::int64_t replicas = env && order.num_envs > 0 ? order.num_envs : setup.config.trainer.num_envs;
  logging::info(concat("bench: ", setup.environment->name(), ", mode ", order.mode, ", ", replicas,
                       " replicas, ", describe(setup.device)));
  const bench::Setting setting{setup.config, *setup.environment, setup.device, order.seconds};
  const bench::Result result = env ? bench::bench_environment(setting, static_cast<int>(replicas),
                                                              static_cast<int>(order.rollout_steps))
                               : order.mode == "act" ? bench::bench_act(setting)
                                                     : bench::bench_train(setting);
  return bench::to_json(result, ceilings ? *ceilings : bench::measure_ceilings(setup.device));
}

// Runs in the process of one setting and prints the result to stdout.
int measure_setting(BenchRequest order, const std::string& variable) {
  const Json json = parse_json<Json>(variable);
  for (const auto& [key, value] : json["settings"].items()) order.set(key, value.get<std::string>());
  std::optional<bench::Ceilings> ceilings;
  if (json.contains("ceilings")) ceilings = bench::parse_ceilings(json["ceilings"].dump());
  try {
    print(measure(std::move(order), ceilings).dump() + "\n");
    return 0;
  } catch (const std::exception& error) {
    if (!ran_out_of_memory(error)) throw;
    logging::error(plain_message(error));
    return kOutOfMemoryCode;
  }
}

bench::Row measure_apart(const std::vector<bench::Sweep>& sweeps, const std::vector<std::string>& values,
                         const Json& ceilings) {
  bench::Row row;
  Json setting{{"settings", Json::object()}};
  for (std::size_t k = 0; k < sweeps.size(); ++k) setting["settings"][sweeps[k].key] = values[k];
  row.values = values;
  if (!ceilings.is_null()) setting["ceilings"] = ceilings;
  const OomWatch memory;
  const Ended ended = run_child(own_command(), {{kSettingVariable, setting.dump()}});
  row.take(ended, memory.may_have_killed());
  return row;
}

int sweep(const BenchArguments& arguments) {
  std::vector<bench::Sweep> sweeps;
  for (const std::string& text : arguments.sweep) {
    sweeps.push_back(bench::parse_sweep(text));
    const auto same = [&](const bench::Sweep& one) { return one.key == sweeps.back().key; };
    if (std::ranges::count_if(sweeps, same) > 1)
      throw UsageError("--sweep: " + sweeps.back().key + " is there twice");
  }
  const auto settings = bench::combinations(sweeps);
  for (const auto& values : settings) {  // report invalid settings before anything is measured
    BenchRequest one = arguments.order;
    for (std::size_t k = 0; k < sweeps.size(); ++k) one.set(sweeps[k].key, values[k]);
    one.check();
    if (one.mode != "env") one.shape_batch();
    load_environment(one.sources);
  }
  const bool table = !arguments.to_json || arguments.json != "-";
  const bench::Table columns(sweeps);
  if (table) print(columns.heading());
  std::vector<bench::Row> rows;
  Json ceilings;
  for (const auto& values : settings) {
    rows.push_back(measure_apart(sweeps, values, ceilings));
    if (rows.back().measured() && ceilings.is_null()) ceilings = rows.back().result["ceilings"];
    if (table) print(columns.line(rows.back()));
  }
  if (arguments.to_json) write_result(arguments.json, bench::sweep_json(sweeps, rows).dump(1) + "\n");
  const bool any = std::ranges::any_of(rows, &bench::Row::measured);
  if (!any) logging::error("no setting could be measured");
  return any ? 0 : 1;
}

}  // namespace

int bench(const CommandLine& line) {
  BenchArguments arguments;
  if (!arguments.parse(line)) return 0;
  if (const char* const setting = std::getenv(kSettingVariable))
    return measure_setting(arguments.order, setting);
  if (!arguments.sweep.empty()) return sweep(arguments);
  if (arguments.order.memory_gb > 0.0) throw UsageError("--memory_gb is for --sweep");
  const Json result = measure(arguments.order, {});
  if (arguments.to_json) write_result(arguments.json, result.dump() + "\n");
  if (!arguments.to_json || arguments.json != "-") print(bench::to_text(result));
  return 0;
}

}  // namespace wd::cli
