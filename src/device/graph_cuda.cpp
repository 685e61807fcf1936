// graph_cuda.cpp: captures device work as a CUDA graph.
#include <ATen/core/CachingHostAllocator.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDAGuard.h>

#include "src/device/gpu_cuda.h"
#include "wd/error.h"

namespace wd {

namespace {

// Ends what capture_begin() has told torch's allocators of device memory and of pinned host memory, which
// would otherwise ask the destroyed graph about later allocations.
void give_back(c10::DeviceIndex device, c10::MempoolId_t pool) {
  using namespace c10::cuda::CUDACachingAllocator;
  at::HostAllocator* const host = at::getHostAllocator(at::kCUDA);
  try {
    endAllocateToPool(device, pool);
    releasePool(device, pool);
    host->end_allocate_to_pool(pool);
    host->release_pool(pool);
  } catch (const std::exception&) {
    // The capture failed before it began or after it ended, and then the graph itself releases the pools.
  }
}

class CudaGraph final : public Captured {
 public:
  // The capture mode is thread-local because NCCL's watchdog queries events from another thread.
  CudaGraph(const c10::cuda::CUDAStream& stream, const std::function<void()>& enqueue,
            const Captured* earlier)
      : pool_(earlier == nullptr ? at::cuda::graph_pool_handle()
                                 : static_cast<const CudaGraph*>(earlier)->pool_) {
    const c10::cuda::CUDAStreamGuard guard(stream);
    graph_.emplace();
    try {
      graph_->capture_begin(pool_, cudaStreamCaptureModeThreadLocal);
      enqueue();
      graph_->capture_end();
    } catch (const std::exception& error) {
      cudaGraph_t unfinished = nullptr;
      cudaStreamEndCapture(stream.stream(), &unfinished);
      if (unfinished != nullptr) cudaGraphDestroy(unfinished);
      cudaGetLastError();
      give_back(stream.device_index(), pool_);
      graph_.reset();
      throw std::runtime_error(concat("an iteration could not be captured as a CUDA graph: ", error.what(),
                                      "; trainer.cuda_graphs=false trains without one"));
    }
  }
  void replay() override { graph_->replay(); }

 private:
  c10::MempoolId_t pool_;
  std::optional<at::cuda::CUDAGraph> graph_;
};

}  // namespace

std::unique_ptr<Captured> capture_cuda_graph(const c10::Stream& stream, const std::function<void()>& enqueue,
                                             const Captured* earlier) {
  return std::make_unique<CudaGraph>(c10::cuda::CUDAStream(stream), enqueue, earlier);
}

}  // namespace wd
