// device.h: what builds with and without CUDA answer differently.
#pragma once

#include <string>

#include "kernels/queue.h"
#include "wd/device.h"

namespace wd {

// What stands between this program and a GPU, for people: "no CUDA-capable device is detected". Empty where
// there is one.
std::string why_no_gpu();
std::string gpu_name(int index);
// The same for the same GPU in every process: "GPU 0000:3B:00.0 of HOST".
std::string gpu_identity(int index);
// Makes it the calling thread's device.
void use_gpu(int index);
int count_gpus();

// Current stream of the device, on which torch's own operations run too.
Queue current_queue(Device device);
// Waits for all that was enqueued.
void synchronize(Device device);
// Bytes of device memory that torch holds at most so far; on the CPU the peak resident size of the process.
std::int64_t peak_memory(Device device);
// What counts against the device's limit: of a GPU all that is in use there now, contexts, libraries and
// other processes included; on the CPU peak_memory().
std::int64_t used_memory(Device device);

}  // namespace wd
