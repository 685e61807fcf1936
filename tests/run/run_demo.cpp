// run_demo.cpp: a fake training run, for Python tests of its files and its display. WD_DEMO_DIR names the run
// folder, WD_DEMO_INTERVALS is the number of intervals, and WD_DEMO_MS is the duration of each.
#include <array>
#include <cmath>
#include <thread>

#include "src/base/streams.h"
#include "src/run/run.h"
#include "tests/run/temporary_folder.h"

namespace wd {
namespace {

std::string setting(const char* name, const std::string& otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr ? otherwise : value;
}

MetricsRow demo_row(const StepCounts& counts) {
  MetricsRow row(counts);
  const auto x = static_cast<double>(counts.iteration);
  row.add("tagger/policy_loss", std::sin(x) / 3.0);
  row.add("tagger/mean_return", counts.iteration < 3 ? std::nan("") : x);
  row.add("env/tags", 1e-9 * x);
  row.add("time/update_s", 0.25);
  return row;
}

}  // namespace

// Not a gtest, because, as in wdtrain, nothing may be printed before the streams are made safe, and only the
// run may print.
int demo() {
  const test::TemporaryFolder folder;
  const int intervals = std::stoi(setting("WD_DEMO_INTERVALS", "5"));
  const std::chrono::milliseconds each(std::stoi(setting("WD_DEMO_MS", "0")));
  RunOptions options;
  options.env = "demo";
  options.device = "cpu";
  options.run_dir = setting("WD_DEMO_DIR", (folder.path / "run").string());
  options.total_steps = 10'000 * intervals;
  Run run(options);
  run.write_config("name: demo\n");
  Progress progress;
  for (int i = 1; i <= intervals; ++i) {
    std::this_thread::sleep_for(each);
    progress.counts = {.iteration = i, .env_steps = 10'000 * i, .agent_steps = 50'000 * i};
    progress.wall_s = std::chrono::duration<double>(each).count() * i;
    progress.mean_return = {{"tagger", 1.5 * i}, {"runner", -2.25 * i}};
    run.log(demo_row(progress.counts));
    run.display(progress);
  }
  const std::array<float, 6> weights{0.5f, -1.5f, 3.25f, 1e-30f, 7.0f, -0.0f};
  const std::array<std::int64_t, 2> counts{-1, 1LL << 40};
  const std::vector<TensorView> tensors{{"counts", "I64", {2}, std::as_bytes(std::span(counts))},
                                        {"layer.weight", "F32", {2, 3}, std::as_bytes(std::span(weights))}};
  const bool saved = run.save_weights("tagger", tensors, {{"env", "demo"}});
  run.finish(RunStatus::kFinished, "total_steps", progress);
  return saved ? 0 : 1;
}

}  // namespace wd

int main() {
  wd::survive_closed_streams();
  return wd::demo();
}
