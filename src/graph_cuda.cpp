// graph_cuda.cpp: graphs in a build with CUDA: capture on a stream of their own, replay on the caller's.
#include <ATen/cuda/CUDAEvent.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDAGuard.h>

#include <optional>

#include "src/graph.h"
#include "wd/error.h"

namespace wd {

struct Graph::Impl {
  c10::cuda::CUDAStream stream;
  std::optional<at::cuda::CUDAGraph> graph;
  bool warm = false;

  explicit Impl(Device device)
      : stream(c10::cuda::getStreamFromPool(false, static_cast<c10::DeviceIndex>(device.index))) {}

  static void wait(const c10::cuda::CUDAStream& later, const c10::cuda::CUDAStream& earlier) {
    at::cuda::CUDAEvent event;
    event.record(earlier);
    event.block(later);
  }

  // On the stream of the capture to come: libraries allocate a workspace for each stream that they meet.
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

  // Thread-local: NCCL's watchdog queries events from a thread of its own.
  void capture(const std::function<void()>& enqueue) {
    const c10::cuda::CUDAStreamGuard guard(stream);
    graph.emplace();
    try {
      graph->capture_begin({0, 0}, cudaStreamCaptureModeThreadLocal);
      enqueue();
      graph->capture_end();
    } catch (const std::exception& error) {
      cudaGraph_t unfinished = nullptr;
      cudaStreamEndCapture(stream.stream(), &unfinished);
      if (unfinished != nullptr) cudaGraphDestroy(unfinished);
      cudaGetLastError();
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

}  // namespace wd
