// device.h: functions that builds with and without CUDA implement differently.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "wd/device.h"

namespace wd {

// The reason why no GPU can be used, for users: "no CUDA-capable device is detected". Empty if one can be
// used.
std::string why_no_gpu();
// The same for a worker: also if its GPU cannot run our kernels.
std::string why_no_gpu_of(int local_rank);
// The reason why this process does without a GPU that the machine seems to have, for a warning. Empty if the
// worker can use one, or if there is no sign of any.
std::string why_gpu_is_left_out(int local_rank);
std::string gpu_name(int index);
// The same for the same GPU in every process: "GPU 0000:3B:00.0 of HOST".
std::string gpu_identity(int index);
// Max bytes of shared memory that a GPU grants to a block of threads on request.
std::size_t shared_memory(Device device);
// Makes the GPU the calling thread's device.
void use_gpu(int index);
int count_gpus();

// Waits for all work that was enqueued on the current stream.
void synchronize(Device device);

// A point in the work of a GPU that the host can wait for.
class Milestone {
 public:
  virtual ~Milestone() = default;
  virtual void record() = 0;  // moves it behind all work that is enqueued on the current stream
  virtual void wait() = 0;    // sleeps until the GPU has reached it; returns at once if it was never recorded
};
// Null on the CPU, whose work is done when a call returns.
std::unique_ptr<Milestone> make_milestone(Device device);

// The maximum number of bytes of device memory that torch has held so far; on the CPU the peak resident size
// of the process.
std::int64_t peak_memory(Device device);
// Memory that counts against the device's limit: on a GPU everything in use there now, including contexts,
// libraries and other processes; on the CPU peak_memory().
std::int64_t used_memory(Device device);

struct GpuMemory {
  std::uint64_t free = 0, total = 0;  // bytes
};
// Of the GPU that this process uses. Empty if it uses none, or if an earlier error keeps it from answering.
std::optional<GpuMemory> gpu_memory();

}  // namespace wd
