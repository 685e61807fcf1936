// python.cpp: an environment in Python: its parameters, its processes, and the replicas that they step.
#include "src/outside/python.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>

#include "src/base/binary_path.h"
#include "src/base/json.h"
#include "src/base/log.h"
#include "src/base/name.h"
#include "src/base/printable.h"
#include "src/outside/python_process.h"
#include "wd/detail/parallel.h"
#include "wd/error.h"

namespace wd {
namespace outside {
namespace {

constexpr int kMostProcesses = 1024;
constexpr int kMaxSteps = (1 << 24) - 1;
// Microseconds that either side waits before it sleeps: less if others need the processor.
constexpr int kSpin = 50, kCrowdedSpin = 5;
// A process that fails this often, each time within so many steps of its start, is given up.
constexpr int kMostFailures = 5, kSoon = 100;
constexpr const char* kRestartHint = "\nenv.on_failure=restart would go on with a new process";

enum class OnFailure { kStop, kRestart };

struct Settings {
  JsonObject kwargs;
  std::vector<std::string> wrappers, statistics;
  bool one_role = false;
  std::string python;
  int processes = 0, time_limit = 0;
  OnFailure on_failure = OnFailure::kStop;
  double start_seconds = 120.0, step_seconds = 60.0;

  void describe(Fields& field) {
    field("kwargs", kwargs,
          "arguments of the function that makes the environment, as a section or as JSON: {\"continuous\": "
          "true}");
    field("wrappers", wrappers,
          "classes that wrap it, the first one innermost: [minigrid.wrappers.FlatObsWrapper]");
    field("one_role", one_role,
          "whether agents with different spaces are one role: observations are filled up with zeros and say "
          "which agent it is, and choices that an agent does not have are masked");
    field("statistics", statistics,
          "numbers in `info` at the end of an episode that are reported as env/NAME; empty: those that an "
          "episode of random actions shows");
    field("time_limit", time_limit, {0, kMaxSteps},
          "steps after which an episode is cut off; 0: the environment's own limit");
    field("processes", processes, {0, kMostProcesses},
          "processes of Python, which share the replicas; 0: as many as this worker may use processors");
    field.choice(
        "on_failure", on_failure, {"stop", "restart"},
        "what follows if a process ends, hangs or raises an exception: training stops, or the process "
        "starts anew, and its replicas begin new episodes");
    field("start_seconds", start_seconds, above(0, 1e6),
          "time that a process has to make its environments [s]");
    field("step_seconds", step_seconds, above(0, 1e6),
          "time that a process has for one step of its replicas [s]");
    field(
        "python", python,
        "path of the interpreter; empty: $WDTRAIN_PYTHON, else that of the active environment, else python3");
  }
};

// Of use_python().
struct Host {
  std::string python, modules;
  std::function<void()> look;
};
std::mutex host_mutex;
Host last_host;

Host host() {
  const std::lock_guard lock(host_mutex);
  return last_host;
}

std::string find_python(const std::string& wanted) {
  if (!wanted.empty()) return wanted;
  if (const char* const named = std::getenv("WDTRAIN_PYTHON"); named != nullptr && *named != '\0')
    return named;
  if (const std::string own = host().python; !own.empty()) return own;
  for (const char* const variable : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    const char* const prefix = std::getenv(variable);
    if (prefix == nullptr || *prefix == '\0') continue;
    const std::filesystem::path file = std::filesystem::path(prefix) / "bin" / "python";
    if (!find_in_path(file).empty()) return file;
  }
  // The build lies in the project, which has an environment of its own.
  const std::filesystem::path own =
      binary_path(reinterpret_cast<const void*>(&find_python)).parent_path().parent_path() / ".venv" / "bin" /
      "python";
  if (!find_in_path(own).empty()) return own;
  if (const std::filesystem::path file = find_in_path("python3"); !file.empty()) return file;
  throw UsageError("env.python: there is no python3 in PATH: install it, or name one with WDTRAIN_PYTHON");
}

// What worker.py says of the environment, as a specification.
Spec described(const nlohmann::json& json) {
  Spec spec;
  for (const nlohmann::json& from : json.at("roles")) {
    Role role{.name = from.at("name"), .count = from.at("count")};
    for (const nlohmann::json& part : from.at("observation"))
      role.observation.push_back({part.at(0), part.at(1)});
    const std::vector<std::string> names = from.at("names");
    if (from.contains("heads")) {
      role.action = ActionSpace::discrete(from.at("heads"), names);
    } else {
      std::vector<Bounds> bounds;
      for (const nlohmann::json& pair : from.at("bounds")) {
        const auto side = [&](int k, float infinite) {
          return pair.at(static_cast<std::size_t>(k)).is_null()
                     ? infinite
                     : pair.at(static_cast<std::size_t>(k)).get<float>();
        };
        constexpr float kInfinity = std::numeric_limits<float>::infinity();
        bounds.push_back({side(0, -kInfinity), side(1, kInfinity)});
      }
      role.action = ActionSpace::box(std::move(bounds), names);
    }
    role.action_mask = from.at("mask");
    spec.roles.push_back(std::move(role));
  }
  if (const int state = json.at("state"); state > 0)
    spec.streams.push_back({.name = "state", .of = StreamSpec::kReplica, .shape = {state}});
  for (const nlohmann::json& names : json.at("statistics"))
    spec.statistics.push_back({.field = names.at(1),
                               .help = concat('`', on_one_line(names.at(0).get<std::string>()),
                                              "` in info, where an episode ends")});
  const std::int64_t limit =
      json.at("time_limit").is_null() ? kMaxSteps : json["time_limit"].get<std::int64_t>();
  spec.time_limit = static_cast<int>(std::min<std::int64_t>(limit, kMaxSteps));
  return spec;
}

class PythonEnvironment final : public OutsideEnvironment {
 public:
  explicit PythonEnvironment(std::string name) : name_(std::move(name)) {}

  std::string_view name() const override { return name_; }
  void describe(Fields& fields) override { settings_.describe(fields); }
  Spec spec() const override;
  std::unique_ptr<OutsideReplicas> open(const OutsideOptions& options) const override;
  void leave_state_out() { without_state_ = true; }
  void leave_statistics_out() { looks_ = false; }

  const Settings& settings() const { return settings_; }
  int num_processes(int num_envs) const {
    const int wanted =
        settings_.processes > 0 ? settings_.processes : std::min(num_threads(), available_processors());
    return std::clamp(wanted, 1, num_envs);
  }
  std::unique_ptr<PythonProcess> start(int number, int spin, double more_seconds = 0.0) const {
    const Host told = host();
    return std::make_unique<PythonProcess>(
        number,
        ProcessOptions{name_, find_python(settings_.python), told.modules,
                       settings_.start_seconds + more_seconds, settings_.step_seconds, spin, told.look});
  }
  // The process with this number, which is started if it does not run.
  PythonProcess& process(int number) const;
  // Ends it. The next one with this number knows nothing of its rooms.
  void forget(int number) const {
    processes_[static_cast<std::size_t>(number)].reset();
    ++generations_[static_cast<std::size_t>(number)];
  }
  // Which process with this number it is.
  int generation(int number) const { return generations_[static_cast<std::size_t>(number)]; }
  nlohmann::json request(const char* what) const {
    return {{"do", what},
            {"environment", name_},
            {"kwargs", settings_.kwargs.text},
            {"wrappers", settings_.wrappers},
            {"one_role", settings_.one_role},
            {"statistics", settings_.statistics}};
  }
  // What worker.py says of it, as far as it is read.
  nlohmann::json description() const {
    nlohmann::json json = description_;
    if (without_state_) json["state"] = 0;
    return json;
  }
  int new_room() const { return rooms_++; }
  void look(nlohmann::json& description) const;

 private:
  std::string name_;
  Settings settings_;
  // Made when they are needed: naming an environment starts nothing.
  mutable std::vector<std::unique_ptr<PythonProcess>> processes_;
  mutable std::vector<int> generations_;
  mutable nlohmann::json description_;
  mutable Spec spec_;              // the same
  mutable std::string described_;  // with what settings
  mutable int rooms_ = 0;
  bool without_state_ = false, looks_ = true;
};

PythonProcess& PythonEnvironment::process(int number) const {
  const auto index = static_cast<std::size_t>(number);
  if (processes_.size() <= index) {
    processes_.resize(index + 1);
    generations_.resize(index + 1);
  }
  if (!processes_[index]) {
    const bool crowded = num_processes(kMostProcesses) >= available_processors();
    processes_[index] = start(number, crowded ? kCrowdedSpin : kSpin);
  }
  return *processes_[index];
}

// An episode of random actions shows which numbers `info` has.
void PythonEnvironment::look(nlohmann::json& description) const {
  try {
    description["statistics"] = process(0).call({{"do", "look"}}).at("statistics");
  } catch (const ProcessFailed& failure) {
    processes_.clear();
    logging::warn(concat(failure.what(),
                         "\nthat was an episode of random actions, which shows the numbers in `info`: it "
                         "has no statistics but those that env.statistics names"));
  }
}

Spec PythonEnvironment::spec() const {
  const std::string key = dump(request("describe")) + settings_.python;
  if (described_ != key) {
    processes_.clear();
    nlohmann::json answer;
    try {
      answer = process(0).call(request("describe"));
    } catch (const ProcessFailed& failure) {
      processes_.clear();
      throw UsageError(failure.what());
    }
    if (answer.contains("refused")) {
      processes_.clear();
      throw UsageError(concat("environment ", name_, ": ", answer["refused"].get<std::string>()));
    }
    if (looks_ && settings_.statistics.empty()) look(answer);
    spec_ = described(answer);
    description_ = std::move(answer);
    described_ = key;
  }
  Spec spec = spec_;
  if (without_state_) spec.streams.clear();
  if (settings_.time_limit > 0) spec.time_limit = settings_.time_limit;
  return spec;
}

// --- replicas ----------------------------------------------------------------------------------------------

// What a process does with a replica in a step; worker.py has the same numbers.
enum Deed : std::uint8_t { kNothing = 0, kStep = 1, kReset = 2, kSeededReset = 3 };

// The replicas of one process in one room: where their numbers are in the memory that both share.
struct Part {
  int first = 0, count = 0;  // of the room's replicas
  std::unique_ptr<Memory> memory;
  std::uint8_t* deeds = nullptr;                             // [n]
  std::int64_t* seeds = nullptr;                             // [n]
  std::int32_t* actions = nullptr;                           // [n, actions]
  float* observations = nullptr;                             // [n, observations]
  float* rewards = nullptr;                                  // [n, agents]
  std::uint8_t* in_game = nullptr;                           // [n, agents]
  std::uint8_t* masks = nullptr;                             // [n, choices]
  float* states = nullptr;                                   // [n, numbers of the stream `state`]
  float* statistics = nullptr;                               // [n, statistics]
  std::uint8_t *terminated = nullptr, *truncated = nullptr;  // [n]
  int generation = 0;                                        // of the process that knows this part
  int steps = 0, failures = 0;                               // since its start; in a row
  bool busy = false;
};

class PythonReplicas final : public OutsideReplicas {
 public:
  PythonReplicas(const PythonEnvironment& environment, const OutsideOptions& options);
  ~PythonReplicas() override;
  void step(const StateLayout& layout, const StepView& view) override;
  Picture picture(int replica) override;

 private:
  void open(std::size_t p);
  bool begin(std::size_t p, const StateLayout& layout, const StepView& view);
  void end(std::size_t p, const StateLayout& layout, const StepView& view);
  void give_up_or_warn(std::size_t p, const ProcessFailed& failure);

  const PythonEnvironment& environment_;
  OutsideLayout layout_;
  int room_;
  std::uint32_t first_replica_;
  bool pictures_;
  std::vector<Part> parts_;
  std::vector<std::uint8_t>
      begun_;  // [E]: the environment of the replica is in an episode that it began here
};

std::unique_ptr<OutsideReplicas> PythonEnvironment::open(const OutsideOptions& options) const {
  if (options.reset == ResetMode::kGiven)
    throw UsageError(concat("env.starts: ", name_, " is written in Python, and begins its episodes itself"));
  static_cast<void>(spec());
  return std::make_unique<PythonReplicas>(*this, options);
}

PythonReplicas::PythonReplicas(const PythonEnvironment& environment, const OutsideOptions& options)
    : environment_(environment),
      layout_(environment.spec()),
      room_(environment.new_room()),
      first_replica_(options.first_replica),
      pictures_(options.pictures),
      begun_(static_cast<std::size_t>(options.num_envs)) {
  const int processes = environment.num_processes(options.num_envs);
  for (int p = 0; p < processes; ++p) {
    Part& part = parts_.emplace_back();
    part.first = static_cast<int>(std::int64_t{options.num_envs} * p / processes);
    part.count = static_cast<int>(std::int64_t{options.num_envs} * (p + 1) / processes) - part.first;
  }
  for (std::size_t p = 0; p < parts_.size(); ++p)
    static_cast<void>(environment_.process(static_cast<int>(p)));
  for (std::size_t p = 0; p < parts_.size(); ++p) open(p);
}

PythonReplicas::~PythonReplicas() {
  const auto begun = PythonProcess::Clock::now();
  for (const auto close : {&PythonProcess::begin_close, &PythonProcess::end_close}) {
    for (std::size_t p = 0; p < parts_.size(); ++p) {
      const auto number = static_cast<int>(p);
      if (environment_.generation(number) != parts_[p].generation) continue;
      try {
        (environment_.process(number).*close)(room_, begun);
      } catch (const std::exception& failure) {  // all that these replicas were for is done
        environment_.forget(number);
        if (close == &PythonProcess::begin_close) continue;  // in a step that nobody waits for any more
        logging::warn(
            concat(failure.what(), "\nits environments were to be closed, and are ended in another way"));
      }
    }
  }
}

// Makes the memory of a part, and the environments in it.
void PythonReplicas::open(std::size_t p) {
  Part& part = parts_[p];
  const auto n = static_cast<std::size_t>(part.count);
  std::size_t bytes = 0;
  nlohmann::json offsets;
  std::vector<std::pair<void*, std::size_t>> places;
  const auto place = [&]<typename T>(const char* name, T*& pointer, int numbers) {
    offsets[name] = bytes;
    places.emplace_back(&pointer, bytes);
    bytes = (bytes + n * static_cast<std::size_t>(numbers) * sizeof(T) + 63) / 64 * 64;
  };
  const int agents = layout_.num_agents();
  place("deeds", part.deeds, 1);
  place("seeds", part.seeds, 1);
  place("actions", part.actions, layout_.actions());
  place("observations", part.observations, layout_.observations());
  place("rewards", part.rewards, agents);
  place("in_game", part.in_game, agents);
  place("masks", part.masks, layout_.choices());
  place("states", part.states, layout_.streams());
  place("statistics", part.statistics, layout_.statistics());
  place("terminated", part.terminated, 1);
  place("truncated", part.truncated, 1);
  part.memory = std::make_unique<Memory>(bytes + 64);
  for (const auto& [pointer, offset] : places) {
    std::byte* const at = part.memory->data() + offset;
    std::memcpy(pointer, static_cast<const void*>(&at), sizeof at);
  }
  nlohmann::json request = environment_.request("open");
  request.update({{"room", room_},
                  {"replicas", part.count},
                  {"first", first_replica_ + static_cast<std::uint32_t>(part.first)},
                  {"pictures", pictures_},
                  {"bytes", part.memory->bytes()},
                  {"description", environment_.description()},
                  {"offsets", offsets}});
  const int number = static_cast<int>(p);
  for (bool open = false; !open;) {
    try {
      const nlohmann::json answer = environment_.process(number).call(request, part.memory->descriptor());
      if (answer.contains("refused"))
        throw UsageError(
            concat("environment ", environment_.name(), ": ", answer["refused"].get<std::string>()));
      open = true;
    } catch (const ProcessFailed& failure) {
      give_up_or_warn(p, failure);
    }
  }
  part.generation = environment_.generation(number);
  part.steps = 0;
  std::fill_n(begun_.begin() + part.first, part.count, std::uint8_t{0});
}

// Tells a process what to do. Returns false if it is nothing.
bool PythonReplicas::begin(std::size_t p, const StateLayout& layout, const StepView& view) {
  Part& part = parts_[p];
  part.busy = false;
  if (environment_.generation(static_cast<int>(p)) != part.generation) {
    if (environment_.settings().on_failure == OnFailure::kStop)
      throw ProcessFailed(concat("environment ", environment_.name(), ": process ", p,
                                 " has failed before, and with it the games that it played", kRestartHint));
    open(p);
  }
  for (int i = 0; i < part.count; ++i) {
    const int replica = part.first + i;
    std::uint8_t& deed = part.deeds[i];
    deed = kNothing;
    if (!view.chooses(replica)) continue;
    part.busy = true;
    std::uint8_t& begun = begun_[static_cast<std::size_t>(replica)];
    if (begun != 0 && !OutsideLayout::resets(layout, view, replica)) {
      deed = kStep;
      layout_.read_actions(view, replica, part.actions + std::ptrdiff_t{i} * layout_.actions());
      continue;
    }
    ReplicaHeader header;
    std::memcpy(&header, view.blocks + std::size_t{layout.block_bytes} * static_cast<std::size_t>(replica),
                sizeof header);
    const bool seeded = begun == 0 || header.episode == ~0u || view.reset != ResetMode::kRandom;
    deed = seeded ? kSeededReset : kReset;
    part.seeds[i] = OutsideLayout::seed(layout, view, replica);
    begun = 1;
  }
  if (part.busy) environment_.process(static_cast<int>(p)).begin_step(room_);
  return part.busy;
}

void PythonReplicas::end(std::size_t p, const StateLayout& layout, const StepView& view) {
  Part& part = parts_[p];
  if (!part.busy) return;
  environment_.process(static_cast<int>(p)).end_step();
  if (++part.steps == kSoon) part.failures = 0;
  for (int i = 0; i < part.count; ++i) {
    if (part.deeds[i] == kNothing) continue;
    const auto at = static_cast<std::ptrdiff_t>(i);
    layout_.write(layout, view, part.first + i,
                  {.resets = part.deeds[i] != kStep,
                   .terminated = part.terminated[i] != 0,
                   .truncated = part.truncated[i] != 0,
                   .observation = part.observations + at * layout_.observations(),
                   .reward = part.rewards + at * layout_.num_agents(),
                   .in_game = part.in_game + at * layout_.num_agents(),
                   .action_mask = part.masks + at * layout_.choices(),
                   .streams = part.states + at * layout_.streams(),
                   .statistics = part.statistics + at * layout_.statistics()});
  }
}

// Ends a process that failed. Returns if another one is to take its place.
void PythonReplicas::give_up_or_warn(std::size_t p, const ProcessFailed& failure) {
  Part& part = parts_[p];
  environment_.forget(static_cast<int>(p));
  const std::string why = failure.what();
  if (environment_.settings().on_failure == OnFailure::kStop) throw ProcessFailed(why + kRestartHint);
  if (++part.failures == kMostFailures)
    throw std::runtime_error(concat(why, "\n", kMostFailures, " times in a row, each within ", kSoon,
                                    " steps: it is not started anew"));
  logging::warn(concat(why, "\nenv.on_failure: restart: the process starts anew, and replicas ",
                       first_replica_ + static_cast<std::uint32_t>(part.first), " to ",
                       first_replica_ + static_cast<std::uint32_t>(part.first + part.count - 1),
                       " begin new episodes"));
}

void PythonReplicas::step(const StateLayout& layout, const StepView& view) {
  for (std::size_t p = 0; p < parts_.size(); ++p) begin(p, layout, view);
  // What one process has written is copied while others still step.
  for (std::size_t p = 0; p < parts_.size(); ++p) {
    for (bool begun = true, ended = false; !ended;) {
      try {
        // A step that resets without an end before it is that of an episode that was given up: nobody learns
        // from it, and the step before it is worth what the network expects of the observation behind it.
        if (!begun) begin(p, layout, view);
        begun = true;
        end(p, layout, view);
        ended = true;
      } catch (const ProcessFailed& failure) {
        give_up_or_warn(p, failure);
        begun = false;
      }
    }
  }
}

Picture PythonReplicas::picture(int replica) {
  const auto part =
      std::ranges::find_if(parts_, [&](const Part& each) { return replica < each.first + each.count; });
  PythonProcess& process = environment_.process(static_cast<int>(part - parts_.begin()));
  const nlohmann::json answer =
      process.call({{"do", "picture"}, {"room", room_}, {"replica", replica - part->first}});
  if (answer.contains("refused"))
    throw UsageError(concat("environment ", environment_.name(), ": ", answer["refused"].get<std::string>()));
  Picture picture{.width = answer.at("width"), .height = answer.at("height")};
  picture.pixels = process.read(std::size_t{3} * static_cast<std::size_t>(picture.width) *
                                static_cast<std::size_t>(picture.height));
  return picture;
}

}  // namespace

std::unique_ptr<PythonProcess> start_process(const Environment& environment, double more_seconds) {
  return dynamic_cast<const PythonEnvironment&>(environment).start(0, kCrowdedSpin, more_seconds);
}

std::string interpreter_of(const Environment& environment) {
  return dynamic_cast<const PythonEnvironment&>(environment).settings().python;
}

void leave_state_out(Environment& environment) {
  dynamic_cast<PythonEnvironment&>(environment).leave_state_out();
}

void leave_statistics_out(Environment& environment) {
  dynamic_cast<PythonEnvironment&>(environment).leave_statistics_out();
}

nlohmann::json request_of(const Environment& environment, const char* what) {
  return dynamic_cast<const PythonEnvironment&>(environment).request(what);
}

}  // namespace outside

void use_python(const std::string& interpreter, const std::string& modules,
                const std::function<void()>& look) {
  const std::lock_guard lock(outside::host_mutex);
  outside::last_host = {interpreter, modules, look};
}

bool is_python_environment(std::string_view name) { return name.find(':') != std::string_view::npos; }

std::unique_ptr<Environment> make_python_environment(std::string_view name) {
  return std::make_unique<outside::PythonEnvironment>(std::string(name));
}

}  // namespace wd
