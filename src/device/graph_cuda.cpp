// graph_cuda.cpp: graphs in a build with CUDA: captured on a separate stream, replayed on the caller's.
#include <ATen/core/CachingHostAllocator.h>
#include <ATen/cuda/CUDAEvent.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDAGuard.h>

#include <optional>
#include <vector>

#include "src/device/graph.h"
#include "wd/error.h"

namespace wd {

namespace {

c10::cuda::CUDAStream new_stream(Device device) {
  return c10::cuda::getStreamFromPool(false, static_cast<c10::DeviceIndex>(device.index));
}

void wait(const c10::cuda::CUDAStream& later, const c10::cuda::CUDAStream& earlier) {
  at::cuda::CUDAEvent event;
  event.record(earlier);
  event.block(later);
}

}  // namespace

struct Graph::Impl {
  c10::cuda::CUDAStream stream;
  std::optional<at::cuda::CUDAGraph> graph;
  bool warm = false;

  explicit Impl(Device device) : stream(new_stream(device)) {}

  // Runs on the stream of the later capture: libraries allocate a workspace for each stream that they see.
  void warm_up(const std::function<void()>& enqueue) {
    const c10::cuda::CUDAStream caller = c10::cuda::getCurrentCUDAStream(stream.device_index());
    wait(stream, caller);
    {
      const c10::cuda::CUDAStreamGuard guard(stream);
      enqueue();
    }
    wait(caller, stream);
    warm = true;
  }

  // Ends what capture_begin() has told torch's allocators of device memory and of pinned host memory, which
  // would otherwise ask the destroyed graph about later allocations.
  void give_back(c10::MempoolId_t pool) const {
    using namespace c10::cuda::CUDACachingAllocator;
    at::HostAllocator* const host = at::getHostAllocator(at::kCUDA);
    try {
      endAllocateToPool(stream.device_index(), pool);
      releasePool(stream.device_index(), pool);
      host->end_allocate_to_pool(pool);
      host->release_pool(pool);
    } catch (const std::exception&) {
      // The capture failed before it began or after it ended, and then the graph itself releases the pools.
    }
  }

  // The capture mode is thread-local because NCCL's watchdog queries events from another thread.
  void capture(const std::function<void()>& enqueue) {
    const c10::cuda::CUDAStreamGuard guard(stream);
    const c10::MempoolId_t pool = at::cuda::graph_pool_handle();
    graph.emplace();
    try {
      graph->capture_begin(pool, cudaStreamCaptureModeThreadLocal);
      enqueue();
      graph->capture_end();
    } catch (const std::exception& error) {
      cudaGraph_t unfinished = nullptr;
      cudaStreamEndCapture(stream.stream(), &unfinished);
      if (unfinished != nullptr) cudaGraphDestroy(unfinished);
      cudaGetLastError();
      give_back(pool);
      graph.reset();
      throw std::runtime_error(concat("an iteration could not be captured as a CUDA graph: ", error.what(),
                                      "; trainer.cuda_graphs=false trains without one"));
    }
  }
};

Graph::Graph(Device device, bool enabled) {
  if (enabled && device.is_cuda()) impl_ = std::make_unique<Impl>(device);
}
Graph::~Graph() = default;
Graph::Graph(Graph&&) noexcept = default;

void Graph::run(const std::function<void()>& enqueue) {
  if (!impl_) return enqueue();
  if (!impl_->warm) return impl_->warm_up(enqueue);
  if (!impl_->graph) impl_->capture(enqueue);
  impl_->graph->replay();
}

void Graph::reset() {
  if (impl_) impl_->graph.reset();
}

struct Branches::Impl {
  Device device;
  std::vector<c10::cuda::CUDAStream> side = {};  // streams of enqueue(1), enqueue(2), ...
};

Branches::Branches(Device device) {
  if (device.is_cuda()) impl_ = std::make_unique<Impl>(Impl{device});
}
Branches::~Branches() = default;
Branches::Branches(Branches&&) noexcept = default;

void Branches::each(std::size_t count, const std::function<void(std::size_t)>& enqueue) {
  if (!impl_ || count < 2) {
    for (std::size_t k = 0; k < count; ++k) enqueue(k);
    return;
  }
  auto& side = impl_->side;
  while (side.size() + 1 < count) side.push_back(new_stream(impl_->device));
  const c10::cuda::CUDAStream main =
      c10::cuda::getCurrentCUDAStream(static_cast<c10::DeviceIndex>(impl_->device.index));
  for (std::size_t k = 1; k < count; ++k) wait(side[k - 1], main);
  enqueue(0);
  for (std::size_t k = 1; k < count; ++k) {
    const c10::cuda::CUDAStreamGuard guard(side[k - 1]);
    enqueue(k);
    wait(main, side[k - 1]);
  }
}

}  // namespace wd
