// nccl_emulated.cpp: the backend that takes the place of NCCL on the emulated GPU: operations run on a stream
// of their own, as those of NCCL do, and move host memory through Gloo.
#include <torch/csrc/distributed/c10d/Work.hpp>

#include "src/base/host.h"
#include "src/distributed/backends.h"
#include "src/emulator/streams.h"
#include "tests/emulation/device/torch_backend.h"

namespace wd {

namespace {

class EmulatedWork final : public c10d::Work {
 public:
  explicit EmulatedWork(emulation::Stream& stream) { end_.record(stream); }
  // The current stream waits, and the host does not.
  bool wait(std::chrono::milliseconds) override {
    end_.block(emulation::stream(emulation::current_stream()));
    return true;
  }

 private:
  emulation::Event end_;
};

class EmulatedNccl final : public c10d::Backend {
 public:
  EmulatedNccl(wd::Backend gloo, int rank, int size) : c10d::Backend(rank, size), gloo_(std::move(gloo)) {}

  const std::string getBackendName() const override { return "emulated NCCL"; }

  c10::intrusive_ptr<c10d::Work> allreduce(std::vector<at::Tensor>& tensors,
                                           const c10d::AllreduceOptions& options) override {
    return enqueue(tensors, [options](const wd::Backend& gloo, std::vector<at::Tensor>& on_host) {
      return gloo->allreduce(on_host, options);
    });
  }
  c10::intrusive_ptr<c10d::Work> broadcast(std::vector<at::Tensor>& tensors,
                                           const c10d::BroadcastOptions& options) override {
    return enqueue(tensors, [options](const wd::Backend& gloo, std::vector<at::Tensor>& on_host) {
      return gloo->broadcast(on_host, options);
    });
  }
  void shutdown() override {}
  void abort() override {}

 private:
  template <typename Operation>
  c10::intrusive_ptr<c10d::Work> enqueue(const std::vector<at::Tensor>& tensors, Operation operation) {
    std::vector<at::Tensor> on_host;
    for (const at::Tensor& tensor : tensors) on_host.push_back(emulation::host_view(tensor));
    emulation::Stream& stream = emulation::stream(stream_);
    emulation::Event before;
    before.record(emulation::stream(emulation::current_stream()));
    before.block(stream);
    stream.enqueue([gloo = gloo_, operation, on_host]() mutable { operation(gloo, on_host)->wait(); });
    return c10::make_intrusive<EmulatedWork>(stream);
  }

  wd::Backend gloo_;
  std::size_t stream_ = emulation::new_stream();
};

Backend make_emulated_nccl(const Store& store, const Membership& self, Device,
                           std::chrono::milliseconds timeout) {
  return c10::make_intrusive<EmulatedNccl>(make_gloo(store, self, "127.0.0.1", timeout), self.rank,
                                           self.world_size);
}

const bool registered = (make_gpu_backend = make_emulated_nccl, true);

}  // namespace

}  // namespace wd
