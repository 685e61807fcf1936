// options.cpp: checks launch options.
#include "src/launcher/options.h"

#include <cmath>
#include <string_view>

#include "src/base/join.h"
#include "src/base/name.h"
#include "src/launcher/devices.h"
#include "src/launcher/rendezvous.h"
#include "wd/error.h"

namespace wd {
namespace launcher {
namespace {

constexpr int kMaxWorkers = 1024;  // per node
constexpr int kMaxNodes = 65536;
constexpr int kMaxRestarts = 1'000'000;

void check_range(std::string_view option, int value, int min, int max) {
  if (value < min || value > max)
    throw UsageError(concat("--", option, " ", value, ": must be from ", min, " to ", max));
}

void check_seconds(std::string_view option, double value, bool may_be_zero) {
  const double max = 1e9;  // fits into 64 bits in nanoseconds
  if (!std::isfinite(value) || value < 0.0 || value > max || (value == 0.0 && !may_be_zero))
    throw UsageError(concat("--", option, " ", value, ": must be seconds, ", may_be_zero ? "from" : "above",
                            " 0 to ", max));
}

void check_nodes(const LaunchOptions& options) {
  check_range("num_nodes", options.num_nodes, 1, kMaxNodes);
  if (options.node_index < 0 || options.node_index >= options.num_nodes) {
    throw UsageError(concat("--node_index ", options.node_index, ": must be from 0 to ",
                            options.num_nodes - 1, ", another on each of the ", options.num_nodes, " nodes"));
  }
  if (options.num_nodes > 1 && options.rendezvous.empty()) {
    throw UsageError(concat(
        "--num_nodes ", options.num_nodes,
        ": nodes must be told where they meet: --rendezvous tcp://HOST:PORT of node 0, or file:///FOLDER "
        "that all nodes see"));
  }
  parse_rendezvous(options.rendezvous);
  if (!options.run_id.empty()) check_name("--run_id: run", options.run_id);
}

}  // namespace

void check_settings(const LaunchOptions& options) {
  check_range(options.gpus ? "num_gpus" : "num_workers", options.num_workers, 1, kMaxWorkers);
  check_nodes(options);
  check_range("max_restarts", options.max_restarts, 0, kMaxRestarts);
  check_seconds("grace_seconds", options.grace_seconds, true);
  check_seconds("start_seconds", options.start_seconds, false);
  check_seconds("step_seconds", options.step_seconds, false);
  check_seconds("checkpoint_seconds", options.checkpoint_seconds, false);
}

std::vector<std::string> choose_gpus(const LaunchOptions& options) {
  if (!options.gpus) return {};
  const int wanted = options.num_workers;
  Gpus gpus = find_gpus();
  if (gpus.names.empty()) {
    throw UsageError(concat("--num_gpus ", wanted, ": this machine shows no GPU (", gpus.why_none,
                            "); use --num_workers ", wanted, " --device cpu"));
  }
  const int there = static_cast<int>(gpus.names.size());
  if (wanted > there) {
    throw UsageError(concat("--num_gpus ", wanted, ": this machine shows ", there, " (", join(gpus.names),
                            "); use --num_gpus ", there));
  }
  gpus.names.resize(static_cast<std::size_t>(wanted));
  return gpus.names;
}

}  // namespace launcher

void check(const LaunchOptions& options) {
  launcher::check_settings(options);
  launcher::choose_gpus(options);
}

}  // namespace wd
