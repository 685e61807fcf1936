// graph_emulated.cpp: graphs and branches on the emulated GPU, as graph_cuda.cpp has them on a GPU.
#include "src/device/graph.h"
#include "src/emulator/streams.h"
#include "wd/error.h"

namespace wd {

namespace {

class StreamGuard {
 public:
  explicit StreamGuard(std::size_t number) : before_(emulation::current_stream()) {
    emulation::set_current_stream(number);
  }
  ~StreamGuard() { emulation::set_current_stream(before_); }
  StreamGuard(const StreamGuard&) = delete;
  StreamGuard& operator=(const StreamGuard&) = delete;

 private:
  std::size_t before_;
};

void wait(std::size_t later, std::size_t earlier) {
  emulation::Event event;
  event.record(emulation::stream(earlier));
  event.block(emulation::stream(later));
}

}  // namespace

struct Graph::Impl {
  std::size_t stream = emulation::new_stream();
  std::shared_ptr<const emulation::Captured> graph = nullptr;
  bool warm = false;

  void warm_up(const std::function<void()>& enqueue) {
    const std::size_t caller = emulation::current_stream();
    wait(stream, caller);
    {
      const StreamGuard guard(stream);
      enqueue();
    }
    wait(caller, stream);
    warm = true;
  }

  void capture(const std::function<void()>& enqueue) {
    const StreamGuard guard(stream);
    emulation::Stream& capturing = emulation::stream(stream);
    try {
      capturing.begin_capture();
      enqueue();
      graph = capturing.end_capture();
    } catch (const std::exception& error) {
      capturing.discard_capture();
      throw std::runtime_error(concat("an iteration could not be captured as a CUDA graph: ", error.what()));
    }
  }
};

Graph::Graph(Device device, bool enabled) {
  if (enabled && device.is_cuda()) impl_ = std::make_unique<Impl>();
}
Graph::~Graph() = default;
Graph::Graph(Graph&&) noexcept = default;

void Graph::run(const std::function<void()>& enqueue) {
  if (!impl_) return enqueue();
  if (!impl_->warm) return impl_->warm_up(enqueue);
  if (!impl_->graph) impl_->capture(enqueue);
  emulation::replay(impl_->graph, emulation::stream(emulation::current_stream()));
}

void Graph::reset() {
  if (impl_) impl_->graph.reset();
}

struct Branches::Impl {
  std::vector<std::size_t> side = {};  // streams of enqueue(1), enqueue(2), ...
};

Branches::Branches(Device device) {
  if (device.is_cuda()) impl_ = std::make_unique<Impl>();
}
Branches::~Branches() = default;
Branches::Branches(Branches&&) noexcept = default;

void Branches::each(std::size_t count, const std::function<void(std::size_t)>& enqueue) {
  if (!impl_ || count < 2) {
    for (std::size_t k = 0; k < count; ++k) enqueue(k);
    return;
  }
  auto& side = impl_->side;
  while (side.size() + 1 < count) side.push_back(emulation::new_stream());
  const std::size_t main = emulation::current_stream();
  for (std::size_t k = 1; k < count; ++k) wait(side[k - 1], main);
  enqueue(0);
  for (std::size_t k = 1; k < count; ++k) {
    const StreamGuard guard(side[k - 1]);
    enqueue(k);
    wait(main, side[k - 1]);
  }
}

}  // namespace wd
