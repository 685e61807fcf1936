// devices.cpp: checks that the same actions give the same bits on CPU and GPU.
#include <ATen/ops/equal.h>

#include <cstddef>

#include "src/device/device.h"
#include "src/replicas/check/checks.h"
#include "src/replicas/random_play.h"
#include "wd/error.h"
#include "wd/replicas.h"
#include "wd/trajectory.h"

namespace wd {
namespace {

constexpr int kDeviceReplicas = 37;  // does not fill a whole number of blocks

// All replicas on one device, with one policy per role.
struct Side {
  Trajectory trajectory;
  Replicas replicas;

  Side(const Environment& environment, const CheckOptions& check, Device device)
      : trajectory(
            RolloutShape::of_roles(environment.spec(), kDeviceReplicas, device, {check.observation_type})),
        replicas(environment, options(check.seed, device)) {}

  static ReplicasOptions options(std::uint64_t seed, Device device) {
    ReplicasOptions options;
    options.num_envs = kDeviceReplicas;
    options.seed = seed;
    options.device = device;
    return options;
  }
};

std::string tensor_difference(const std::string& name, const at::Tensor& a, const at::Tensor& b) {
  if (!a.defined()) return {};
  const at::Tensor x = a.contiguous().view(at::kByte), y = b.cpu().contiguous().view(at::kByte);
  return at::equal(x, y) ? "" : name + " differs between CPU and GPU";
}

std::string difference(const Side& cpu, const Side& gpu) {
  std::string found;
  const auto look = [&](const std::string& name, const at::Tensor& a, const at::Tensor& b) {
    if (found.empty()) found = tensor_difference(name, a, b);
  };
  for (const StateField& field : cpu.replicas.layout().fields) {
    if (field.scratch) continue;
    const std::int64_t bytes = std::int64_t{field.count} * (field.type == FieldType::kDouble ? 8 : 4);
    look("state field '" + field.name + "'", cpu.replicas.blocks().narrow(1, field.offset, bytes),
         gpu.replicas.blocks().narrow(1, field.offset, bytes));
  }
  for (std::size_t p = 0; p < cpu.trajectory.policies().size(); ++p) {
    const PolicyBuffers &a = cpu.trajectory.policies()[p], &b = gpu.trajectory.policies()[p];
    look("reward of " + a.name, a.reward, b.reward);
    look("active of " + a.name, a.active[1], b.active[1]);
    look("agent_terminated of " + a.name, a.agent_terminated, b.agent_terminated);
    look("observation of " + a.name, a.observation[1], b.observation[1]);
    look("action mask of " + a.name, a.action_mask, b.action_mask);
    for (std::size_t k = 0; k < a.streams.size(); ++k)
      look(concat("stream '", a.streams[k].name, "' of ", a.name), a.stream_rows[k][1], b.stream_rows[k][1]);
  }
  look("terminated", cpu.trajectory.terminated(), gpu.trajectory.terminated());
  look("truncated", cpu.trajectory.truncated(), gpu.trajectory.truncated());
  return found;
}

// The CPU draws the actions, and the GPU gets a copy.
void draw(Side& cpu, Side& gpu, std::uint64_t seed, int step) {
  for (std::size_t p = 0; p < cpu.trajectory.policies().size(); ++p) {
    PolicyBuffers& buffers = cpu.trajectory.policies()[p];
    const RandomPlay play{
        .seed = seed, .policy = static_cast<std::uint32_t>(p), .step = static_cast<std::uint64_t>(step)};
    play_at_random({}, buffers, step > 0 ? 1 : 0, 0, play);
    gpu.trajectory.policies()[p].action.copy_(buffers.action);
  }
}

void force_reset(Side& side, int replica) {
  side.replicas.blocks()[replica].narrow(0, offsetof(ReplicaHeader, reset_pending), 1).fill_(1);
}

}  // namespace

CheckResult check_devices(const Environment& environment, const CheckOptions& options) {
  CheckResult result{"same bits: CPU and GPU",
                     concat(options.steps, " steps of ", kDeviceReplicas, " replicas")};
  Side cpu(environment, options, {}), gpu(environment, options, {DeviceKind::kCuda, 0});
  for (Side* side : {&cpu, &gpu}) side->replicas.step(side->trajectory.first_rows());
  for (int step = 0; step < options.steps; ++step) {
    draw(cpu, gpu, options.seed, step);
    for (Side* side : {&cpu, &gpu}) {
      if (step % kResetEvery == kResetEvery / 2) force_reset(*side, 1 + step % (kDeviceReplicas - 1));
      side->replicas.step(side->trajectory.rows(0));
    }
    if (std::string found = difference(cpu, gpu); !found.empty())
      return {result.name, concat("step ", step, ": ", found), false};
  }
  return result;
}

}  // namespace wd
