// graph.cpp: graphs are captured on a separate stream and replayed on the caller's.
#include "src/device/graph.h"

#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <map>
#include <vector>

#include "src/device/gpu.h"
#include "src/device/tensor_device.h"

namespace wd {

namespace {

c10::Stream new_stream(Device device) {
  return c10::impl::VirtualGuardImpl(gpu_type()).getNewStream(torch_device(device));
}

c10::Stream current_stream(Device device) {
  return c10::impl::VirtualGuardImpl(gpu_type()).getStream(torch_device(device));
}

void wait(const c10::Stream& later, const c10::Stream& earlier) {
  c10::Event event(gpu_type());
  event.record(earlier);
  event.block(later);
}

}  // namespace

struct Graph::Impl {
  Device device;
  c10::Stream stream;
  // By form: null once the first run has warmed up.
  std::map<std::vector<int>, std::unique_ptr<Captured>> forms = {};

  // Runs on the stream of the later capture: libraries allocate a workspace for each stream that they see.
  void warm_up(const std::function<void()>& enqueue) {
    const c10::Stream caller = current_stream(device);
    wait(stream, caller);
    {
      const c10::StreamGuard guard(stream);
      enqueue();
    }
    wait(caller, stream);
  }
};

Graph::Graph(Device device, bool enabled) {
  if (enabled && device.is_cuda()) impl_ = std::make_unique<Impl>(Impl{device, new_stream(device)});
}
Graph::~Graph() = default;
Graph::Graph(Graph&&) noexcept = default;

void Graph::run(const std::function<void()>& enqueue, const std::vector<int>& form) {
  if (!impl_) return enqueue();
  const auto found = impl_->forms.find(form);
  if (found == impl_->forms.end()) {
    impl_->warm_up(enqueue);
    impl_->forms[form] = nullptr;
    return;
  }
  if (!found->second) {
    const auto earlier =
        std::ranges::find_if(impl_->forms, [](const auto& entry) { return entry.second != nullptr; });
    found->second = gpu().capture(impl_->stream, enqueue,
                                  earlier == impl_->forms.end() ? nullptr : earlier->second.get());
  }
  found->second->replay();
}

void Graph::reset() {
  if (!impl_) return;
  for (auto& [form, captured] : impl_->forms) captured.reset();
}

struct Branches::Impl {
  Device device;
  std::vector<c10::Stream> side = {};  // streams of enqueue(1), enqueue(2), ...
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
  std::vector<c10::Stream>& side = impl_->side;
  while (side.size() + 1 < count) side.push_back(new_stream(impl_->device));
  const c10::Stream main = current_stream(impl_->device);
  for (std::size_t k = 1; k < count; ++k) wait(side[k - 1], main);
  enqueue(0);
  for (std::size_t k = 1; k < count; ++k) {
    const c10::StreamGuard guard(side[k - 1]);
    enqueue(k);
    wait(main, side[k - 1]);
  }
}

}  // namespace wd
