// device.h: functions that builds with and without CUDA implement differently.
#pragma once

#include <string>

#include "kernels/queue.h"
#include "wd/device.h"

namespace wd {

// The reason why no GPU can be used, for users: "no CUDA-capable device is detected". Empty if one can be
// used.
std::string why_no_gpu();
std::string gpu_name(int index);
// The same for the same GPU in every process: "GPU 0000:3B:00.0 of HOST".
std::string gpu_identity(int index);
// Makes the GPU the calling thread's device.
void use_gpu(int index);
int count_gpus();

// The current stream of the device, which torch's own operations also use.
Queue current_queue(Device device);
// Waits for all work that was enqueued on the current stream.
void synchronize(Device device);
// The maximum number of bytes of device memory that torch has held so far; on the CPU the peak resident size
// of the process.
std::int64_t peak_memory(Device device);
// Memory that counts against the device's limit: on a GPU everything in use there now, including contexts,
// libraries and other processes; on the CPU peak_memory().
std::int64_t used_memory(Device device);

}  // namespace wd
