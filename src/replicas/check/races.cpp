// races.cpp: plays an environment on the emulated GPU, and names the data of a race.
#include <dlfcn.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "src/base/stopwatch.h"
#include "src/replicas/check/checks.h"
#include "src/replicas/check/watchdog.h"
#include "src/replicas/check/world.h"
#include "wd/emulator/module.h"
#include "wd/error.h"

namespace wd {
namespace {

constexpr int kRaceReplicas = 2;
constexpr int kRaceMinSteps = kMinSteps;
constexpr int kRaceResetEvery = 5;

// The module is never unloaded.
const emulation::Module& load(const std::string& path) {
  void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  WD_CHECK(library != nullptr, path, ": cannot be loaded: ", ::dlerror());
  using Function = const emulation::Module* (*)();
  const auto function = reinterpret_cast<Function>(::dlsym(library, "wd_emulated_environment"));
  WD_CHECK(function != nullptr, path, ": ", ::dlerror());
  return *function();
}

std::size_t bytes_of(FieldType type) { return type == FieldType::kDouble ? 8 : 4; }

// The field of the state, or of scratch memory, at this offset.
std::string field_at(const StateLayout& layout, std::size_t offset, bool scratch) {
  if (!scratch && offset < sizeof(ReplicaHeader)) return "the header of the replica";
  for (const StateField& field : layout.fields) {
    const std::size_t bytes = bytes_of(field.type) * static_cast<std::size_t>(field.count);
    if (field.scratch != scratch || offset < field.offset || offset >= field.offset + bytes) continue;
    const std::size_t index = (offset - field.offset) / bytes_of(field.type);
    return concat(scratch ? "scratch field '" : "state field '", field.name, "'",
                  field.per_agent                  ? concat(" of agent ", index)
                  : field.array || field.count > 1 ? concat(" [", index, "]")
                                                   : "");
  }
  return scratch ? "scratch memory of the executor" : "padding of the state";
}

struct Memory {
  const void* from;
  std::size_t bytes;

  bool holds(const void* address) const {
    return std::less_equal<>()(from, address) &&
           std::less<>()(address, static_cast<const std::byte*>(from) + bytes);
  }
  std::size_t offset(const void* address) const {
    return static_cast<std::size_t>(static_cast<const std::byte*>(address) -
                                    static_cast<const std::byte*>(from));
  }
};

template <typename T>
Memory memory_of(const std::vector<T>& values) {
  return {values.data(), values.size() * sizeof(T)};
}

// "replica 0: state field 'x' of agent 3".
std::string name_of(const void* address, const World& world, const std::vector<std::byte>& scratch) {
  const StateLayout& layout = world.layout();
  const Memory blocks{world.block(0), static_cast<std::size_t>(world.num_envs()) * layout.block_bytes};
  if (blocks.holds(address)) {
    const std::size_t offset = blocks.offset(address);
    return concat("replica ", offset / layout.block_bytes, ": ",
                  field_at(layout, offset % layout.block_bytes, false));
  }
  if (const Memory memory = memory_of(scratch); memory.holds(address)) {
    const std::size_t offset = memory.offset(address);
    return concat("replica ", offset / layout.scratch_bytes, ": ",
                  field_at(layout, offset % layout.scratch_bytes, true));
  }
  for (std::size_t r = 0; r < world.rows.size(); ++r) {
    const RoleRows& rows = world.rows[r];
    const Role& role = world.spec().roles[r];
    const auto agent = [&](const Memory& memory, std::size_t bytes_per_agent) {
      const auto index = memory.offset(address) / bytes_per_agent;
      return concat("of ", role.name, ' ', index % static_cast<std::size_t>(role.count));
    };
    if (const Memory m = memory_of(rows.reward); m.holds(address)) return "the reward " + agent(m, 4);
    if (const Memory m = memory_of(rows.observation); m.holds(address))
      return "the observation " + agent(m, 4 * static_cast<std::size_t>(World::stride(role)));
    if (const Memory m = memory_of(rows.agent_terminated); m.holds(address))
      return "agent_terminated " + agent(m, 1);
    if (const Memory m = memory_of(rows.active); m.holds(address)) return "active " + agent(m, 1);
    if (const Memory m = memory_of(rows.action_mask); m.holds(address))
      return "the action mask " + agent(m, static_cast<std::size_t>(role.action.choices()));
  }
  return "memory outside of the environment's arrays";
}

std::string text_of(const emulation::RaceAccess& access) {
  return concat(access.who, ' ', access.what, access.line.empty() ? "" : concat(" at ", access.line));
}

std::string text_of(const emulation::RepeatedDraw& draw, int step) {
  return concat("step ", step, ": ", draw.in_reset ? "reset()" : "step()", " draws agent ", draw.agent,
                ", purpose ", draw.purpose, " twice, which gives the same number twice: ", draw.first, "; ",
                draw.second,
                "; give each draw of an agent its own purpose, or draw once and keep the number");
}

}  // namespace

std::vector<CheckResult> check_races(const Environment& environment, const CheckOptions& options) {
  if (!std::filesystem::exists(environment.emulated())) return {};
  const emulation::Module& module = load(environment.emulated());
  CheckResult result{"the emulated GPU: races, same bits", ""};
  CheckResult draws{"each random number is drawn once", ""};
  World cpu(environment, kRaceReplicas, options.seed), gpu(environment, kRaceReplicas, options.seed);
  const StateLayout& layout = cpu.layout();
  std::vector<std::byte> scratch;
  const Stopwatch watch;
  int step = 0;
  for (; step < options.steps && (step < kRaceMinSteps || watch.seconds() < options.seconds); ++step) {
    for (World* world : {&cpu, &gpu}) {
      if (step % kRaceResetEvery == kRaceResetEvery - 1) world->header(1).reset_pending = 1;
      world->jump(step);
    }
    cpu.draw_actions(static_cast<std::uint64_t>(step));
    for (std::size_t r = 0; r < cpu.rows.size(); ++r) gpu.rows[r].action = cpu.rows[r].action;
    cpu.step();
    scratch.assign(kRaceReplicas * layout.scratch_bytes, std::byte{0xff});
    StepView view = gpu.begin_step();
    view.scratch = scratch.data();
    const WatchedCall call([] { return "the emulated GPU"; });
    std::optional<emulation::RepeatedDraw> repeated;
    const auto fault = module.step(environment.params(), layout, view,
                                   {.order = static_cast<emulation::Order>((step + 2) % 3),
                                    .seed = options.seed,
                                    .races = true,
                                    .in_place = true,
                                    .repeated = draws.warns ? nullptr : &repeated});
    if (repeated) {
      draws.warns = true;
      draws.detail = text_of(*repeated, step);
    }
    std::string found;
    if (fault && fault->address != nullptr)
      found = concat("a race on ", name_of(fault->address, gpu, scratch), ": ", text_of(fault->first), "; ",
                     text_of(fault->second), ", in the same phase");
    else if (fault)
      found = fault->text;
    for (int e = 0; e < kRaceReplicas && found.empty(); ++e) found = difference(cpu, e, gpu, e);
    if (found.empty()) continue;
    result.detail = concat("step ", step, ": ", found);
    result.passed = false;
    break;
  }
  const std::string extent = concat(step, " steps of ", kRaceReplicas, " replicas");
  if (result.passed) result.detail = extent;
  if (!draws.warns) draws.detail = extent;
  return {result, draws};
}

}  // namespace wd
