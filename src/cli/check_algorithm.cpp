// check_algorithm.cpp: trains whole, in two parts and with two workers, and compares the checkpoints.
#include "src/cli/check_algorithm.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <optional>
#include <span>

#include "src/base/atomic_file.h"
#include "src/base/join.h"
#include "src/base/program_name.h"
#include "src/base/run_child.h"
#include "src/base/selective_fields.h"
#include "src/cli/check_python.h"
#include "src/cli/output.h"
#include "src/report/format.h"
#include "wd/error.h"
#include "wd/safetensors.h"

namespace wd::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kReplicas = 8;
// Algorithms that learn from rollouts get long ones, which can be divided into minibatches.
constexpr std::int64_t kLongRollout = 64, kShortRollout = 16;
constexpr int kLongIterations = 4, kShortIterations = 12;
// What two workers may differ by, as a share of what training changed: sums are in another order.
constexpr double kTolerance = 1e-3;
const std::vector<std::string> kParts = {"optimizer", "weights"};  // of a checkpoint, which are compared
constexpr const char* kSmallGames[] = {"cartpole", "pendulum", "simple_spread"};

// Sets the keys that these algorithms have: Adam with a large epsilon does not amplify the last bits of small
// gradients, one epoch less so, and smooth activations have no rows at an edge.
class Calm : public SelectiveFields {
 public:
  void operator()(const char* name, int& value, Range, const char*) override { set(name, value); }
  void operator()(const char* name, std::int64_t& value, Range, const char*) override { set(name, value); }
  void operator()(const char* name, float& value, Range, const char*) override { set(name, value); }
  void operator()(const char* name, double& value, Range, const char*) override { set(name, value); }
  void choice(const char* name, int& value, std::span<const char* const> words, const char*) override {
    if (std::string_view(name) != "activation") return;
    const auto tanh = std::ranges::find(words, std::string_view("tanh"));
    if (tanh != words.end()) value = static_cast<int>(tanh - words.begin());
  }

 private:
  template <typename T>
  static void set(std::string_view name, T& value) {
    if (name == "num_epochs") value = static_cast<T>(1);
    if (name == "adam_epsilon") value = static_cast<T>(1e-3);
  }
};

class Folder {
 public:
  Folder() : path_((fs::temp_directory_path() / "wd_check_XXXXXX").string()) {
    WD_CHECK(::mkdtemp(path_.data()) != nullptr, path_, ": cannot make this folder: ", std::strerror(errno));
  }
  ~Folder() {
    std::error_code error;
    fs::remove_all(path_, error);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  fs::path operator/(const std::string& name) const { return fs::path(path_) / name; }

 private:
  std::string path_;
};

// The line of stderr that says why: the last that has "error:", or the last one.
std::string reason_in(const std::string& text) {
  std::string last, error;
  for (const std::string& line : split(text, '\n')) {
    if (!line.empty()) last = line;
    if (const std::size_t found = line.find("error: "); found != std::string::npos)
      error = line.substr(found + 7);
  }
  return !error.empty() ? error : !last.empty() ? last : "it ended without a message";
}

// Runs this program's training. Returns why it failed, or nothing.
std::string run_training(const std::vector<std::string>& arguments) {
  std::vector<std::string> words = {own_command().front(), "train"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  words.insert(words.end(), {"--device", "cpu", "--quiet"});
  const Ended ended = run_child(words, {});
  return ended.exit_code == 0 ? "" : reason_in(ended.err);
}

struct Stored {
  std::string dtype;
  std::vector<std::byte> bytes;

  bool is_float() const { return dtype == "F32" || dtype == "F64"; }
  double at(std::size_t k) const {
    if (dtype == "F64") return read<double>(k);
    return static_cast<double>(read<float>(k));
  }
  std::size_t size() const { return bytes.size() / dtype_bytes(dtype); }

 private:
  template <typename T>
  T read(std::size_t k) const {
    T value;
    std::memcpy(&value, bytes.data() + k * sizeof(T), sizeof(T));
    return value;
  }
};

using Tensors = std::map<std::string, Stored>;  // by "FILE: NAME", such as "optimizer/shared: first_moment"

// What these parts of a checkpoint hold.
Tensors read_checkpoint(const fs::path& folder, const std::vector<std::string>& parts) {
  Tensors tensors;
  for (const std::string& part : parts) {
    if (!fs::exists(folder / part)) continue;
    for (const auto& file : fs::directory_iterator(folder / part)) {
      const SafetensorsReader reader(file.path());
      for (const TensorInfo& info : reader.tensors()) {
        Stored stored{info.dtype, std::vector<std::byte>(info.bytes)};
        reader.read_part(info.name, 0, stored.bytes);
        tensors.emplace(concat(part, "/", file.path().stem().string(), ": ", info.name), std::move(stored));
      }
    }
  }
  return tensors;
}

// Sums of squares of differences, and of changes since the beginning.
struct Distance {
  double difference = 0.0, change = 0.0;

  void add(const Stored& a, const Stored& b, const Stored& start) {
    for (std::size_t k = 0; k < a.size(); ++k) {
      difference += std::pow(a.at(k) - b.at(k), 2);
      change += std::pow(a.at(k) - start.at(k), 2);
    }
  }
  double ratio() const { return change > 0.0 ? std::sqrt(difference / change) : 0.0; }
};

class AlgorithmCheck {
 public:
  explicit AlgorithmCheck(Experiment setup) : setup_(std::move(setup)) {
    Config& config = setup_.config;
    bool is_short = false;
    Calm calm;
    for (PolicySettings& policy : config.policies) {
      policy.algorithm->learn_at_once();
      policy.algorithm->describe(calm);
      policy.model.describe(calm);
      is_short = is_short || policy.algorithm->traits().short_iterations;
    }
    iterations_ = is_short ? kShortIterations : kLongIterations;
    batch_ = kReplicas * (is_short ? kShortRollout : kLongRollout);
    TrainerSettings& trainer = config.trainer;
    trainer.num_envs = kReplicas;
    trainer.train_batch_size = batch_;
    trainer.total_steps = batch_ * iterations_;
    trainer.intervals = kIntervalsIterations;
    trainer.staggered_resets = false;
    trainer.stop_return.reset();
    trainer.max_seconds = 0.0;
    config.saving.checkpoint_freq = 1;
    config.saving.keep_last = iterations_ + 1;
    config.saving.run_dir.clear();
    config.eval.every = 0;
    write_file_atomically(folder_ / "config.yaml", print_config(config, setup_.describe(), false),
                          Durability::kReplace);
  }

  bool run() {
    if (!show(learns())) return false;
    const bool resumed = show(resumes());
    return show(shares()) && resumed;
  }

 private:
  std::string train_in(const char* name, std::vector<std::string> more) const {
    more.insert(more.begin(),
                {"--config", (folder_ / "config.yaml").string(), "--run_dir", (folder_ / name).string()});
    return run_training(more);
  }

  Tensors tensors(const char* run, int iteration, const std::vector<std::string>& parts) const {
    return read_checkpoint(folder_ / run / "checkpoints" / report::format_number("%08.0f", iteration), parts);
  }

  CheckResult learns() {
    CheckResult result{"it learns", ""};
    if (const std::string reason = train_in("whole", {}); !reason.empty())
      return {result.name, concat("training in ", setup_.config.name, " fails: ", reason), false};
    const Tensors start = tensors("whole", 0, {"weights"});
    for (int k = 1; k <= iterations_ && first_ == 0; ++k) {
      const Tensors after = tensors("whole", k, {"weights"});
      for (const auto& [name, stored] : start)
        if (after.at(name).bytes != stored.bytes) first_ = k;
    }
    const std::string extent = concat(setup_.config.name, ": ", iterations_, " iterations of ", batch_,
                                      " steps, ", kReplicas, " replicas");
    if (first_ != 0) return {result.name, extent};
    return {result.name,
            concat(extent,
                   " change no weight: make AlgorithmSettings::learn_at_once() let it learn from the "
                   "first iteration on, or set what delays it, by --set"),
            false};
  }

  CheckResult resumes() const {
    CheckResult result{"resumed equals uninterrupted", ""};
    const int half = iterations_ / 2;
    std::string reason = train_in("parts", {"--total_steps", std::to_string(batch_ * half)});
    if (reason.empty())
      reason = run_training(
          {"--resume", (folder_ / "parts").string(), "--total_steps", std::to_string(batch_ * iterations_)});
    if (!reason.empty())
      return {result.name, concat("training in two parts, the second with --resume, fails: ", reason), false};
    const Tensors whole = tensors("whole", iterations_, kParts),
                  resumed = tensors("parts", iterations_, kParts);
    std::vector<std::string> differ, named;
    for (const auto& [name, stored] : whole) {
      const auto other = resumed.find(name);
      if (other == resumed.end() || other->second.bytes != stored.bytes) differ.push_back(name);
      if (name.starts_with("optimizer/")) named.push_back(name.substr(name.find(": ") + 2));
    }
    if (differ.empty())
      return {result.name, concat(report::counted(std::ssize(whole), "tensor"), " after ", half, " and ",
                                  iterations_ - half, " iterations, bit by bit")};
    std::ranges::sort(named);
    named.erase(std::ranges::unique(named).begin(), named.end());
    return {result.name,
            concat(differ.size(), " of ", whole.size(), " tensors differ after ", half, " and ",
                   iterations_ - half, " iterations (", differ.front(),
                   differ.size() > 1 ? ", " + differ[1] + (differ.size() > 2 ? ", ..." : "") : std::string(),
                   "): the second part read something that the checkpoint does not hold. "
                   "Algorithm::state() names ",
                   named.empty() ? "nothing" : join(named, ", "),
                   "; add what else begin_prepare(), begin_update() and steps read and change, with the "
                   "moments of its optimizer: a network, a running mean, a count"),
            false};
  }

  CheckResult shares() const {
    CheckResult result{"two workers equal one", ""};
    const std::string reason =
        train_in("shared", {"--num_workers", "2", "--total_steps", std::to_string(batch_ * first_)});
    if (!reason.empty())
      return {result.name, concat("training with two workers fails, with one it does not: ", reason), false};
    const Tensors start = tensors("whole", 0, kParts), one = tensors("whole", first_, kParts),
                  two = tensors("shared", first_, kParts);
    std::map<std::string, Distance> all;  // by "weights/shared" or "optimizer/shared: first_moment"
    for (const auto& [name, stored] : one) {
      const auto other = two.find(name), before = start.find(name);
      if (!stored.is_float() || other == two.end() || before == start.end()) continue;
      if (other->second.bytes.size() != stored.bytes.size() ||
          before->second.bytes.size() != stored.bytes.size())
        continue;
      const bool whole_policy = name.starts_with("weights/");
      all[whole_policy ? name.substr(0, name.find(": ")) : name].add(stored, other->second, before->second);
    }
    const auto ratio = [](const auto& named) { return named.second.ratio(); };
    const auto worst = std::ranges::max_element(all, {}, ratio);
    const double most = worst == all.end() ? 0.0 : worst->second.ratio();
    const std::string after = concat(" after ", report::counted(first_, "iteration"));
    if (most <= kTolerance)
      return {result.name,
              concat("within ", report::format_number("%.1g", most), " of what training changed", after)};
    return {
        result.name,
        concat(worst->first, " differs by ", report::format_number("%.2g", most), " of what training changed",
               after, ", where ", kTolerance,
               " is allowed: sum gradients, and each sum, mean or count of rows that learning depends on, "
               "over all workers (wd::Learned, group_.all_reduce()), and draw random numbers by the number "
               "of the replica among those of all workers"),
        false};
  }

  Experiment setup_;
  Folder folder_;
  int iterations_ = 0;
  std::int64_t batch_ = 0;  // environment steps of an iteration
  int first_ = 0;           // the first iteration that changes weights
};

Experiment load_for_algorithm(ConfigSources sources) {
  sources.overrides.push_back({"trainer.device", "cpu", "check --algorithm"});
  if (!sources.env.empty() || !sources.file.empty()) return load_setup(sources);
  std::optional<UsageError> first;
  for (const char* game : kSmallGames) {
    sources.env = game;
    try {
      return load_setup(sources);
    } catch (const UsageError& error) {
      if (!first) first = error;
    }
  }
  throw UsageError(*first);
}

}  // namespace

bool check_algorithm(ConfigSources sources) {
  Experiment setup = load_for_algorithm(std::move(sources));
  for (const PolicySettings& policy : setup.config.policies) {
    if (policy.algorithm->traits().learns_from == LearnsFrom::kRecordings)
      throw UsageError(concat("check --algorithm ", policy.algorithm->name(),
                              ": it learns from recordings alone, and this check plays"));
  }
  return AlgorithmCheck(std::move(setup)).run();
}

}  // namespace wd::cli
