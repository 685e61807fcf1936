// graph.cpp: graphs are captured on a separate stream and replayed on the caller's.
#include "src/device/graph.h"

#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <map>
#include <vector>

#include "src/device/gpu.h"
#include "src/device/lockstep.h"
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

constexpr int kGraph = 0, kBranches = 1;  // kinds, for Lockstep::next_common()

// Of a population: what the first member makes, for all.
template <typename Make>
auto common_to_members(int kind, const Make& make) -> decltype(make()) {
  Lockstep* const all = Lockstep::current();
  if (all == nullptr) return make();
  std::shared_ptr<void>& common = all->next_common(kind);
  if (!common) common = make();
  return std::static_pointer_cast<typename decltype(make())::element_type>(common);
}

}  // namespace

// The captures of a graph: null once the first run has warmed up.
struct Captures {
  // The form of the work, and the members of a population that enqueue it; none: it is no population.
  struct Key {
    std::vector<int> form, members;
    auto operator<=>(const Key&) const = default;
  };
  Device device;
  c10::Stream stream;
  std::map<Key, std::unique_ptr<Captured>> forms = {};
  enum class Step { kWarmUp, kCapture, kReplay } step = Step::kWarmUp;

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
  void decide(const Key& key) {
    const auto [found, is_new] = forms.try_emplace(key);
    step = is_new ? Step::kWarmUp : found->second ? Step::kReplay : Step::kCapture;
  }
  void capture(const Key& key, const std::function<void()>& enqueue) {
    const auto earlier =
        std::ranges::find_if(forms, [](const auto& entry) { return entry.second != nullptr; });
    forms[key] = gpu().capture(stream, enqueue, earlier == forms.end() ? nullptr : earlier->second.get());
  }
};

struct Graph::Impl {
  std::shared_ptr<Captures> captures;
};

Graph::Graph(Device device, bool enabled) {
  if (!enabled || !device.is_cuda()) return;
  const auto make = [&] { return std::make_shared<Captures>(Captures{device, new_stream(device)}); };
  impl_ = std::make_unique<Impl>(Impl{common_to_members(kGraph, make)});
}
Graph::~Graph() = default;
Graph::Graph(Graph&&) noexcept = default;

// All active members, at the same time: one capture holds what all of them enqueue.
static void run_together(Lockstep& all, Captures& captures, const std::function<void()>& enqueue,
                         const std::vector<int>& form) {
  using Step = Captures::Step;
  if (!all.meet(form)) return enqueue();
  const Captures::Key key{form, all.active()};
  const bool leads = all.leads();
  if (leads) {
    const auto of_others = [&](const auto& entry) { return entry.first.members != key.members; };
    if (std::ranges::any_of(captures.forms, of_others)) synchronize(captures.device);
    std::erase_if(captures.forms, of_others);
    captures.decide(key);
  }
  all.meet();
  if (captures.step == Step::kWarmUp) return captures.warm_up(enqueue);
  if (captures.step == Step::kCapture) {
    const auto enqueue_all = [&] {
      all.meet();
      enqueue();
      all.meet();
    };
    if (leads) {
      captures.capture(key, enqueue_all);
    } else {
      const c10::StreamGuard guard(captures.stream);
      enqueue_all();
    }
  }
  if (leads) captures.forms[key]->replay();
}

void Graph::run(const std::function<void()>& enqueue, const std::vector<int>& form) {
  if (!impl_) return enqueue();
  Captures& captures = *impl_->captures;
  if (Lockstep* const all = Lockstep::current()) return run_together(*all, captures, enqueue, form);
  const Captures::Key key{form, {}};
  captures.decide(key);
  if (captures.step == Captures::Step::kWarmUp) return captures.warm_up(enqueue);
  if (captures.step == Captures::Step::kCapture) captures.capture(key, enqueue);
  captures.forms[key]->replay();
}

void Graph::reset() {
  if (!impl_) return;
  for (auto& [form, captured] : impl_->captures->forms) captured.reset();
}

struct Branches::Impl {
  using Streams = std::vector<c10::Stream>;
  Device device;
  std::shared_ptr<Streams> side;  // of enqueue(1), enqueue(2), ...
};

Branches::Branches(Device device) {
  if (!device.is_cuda()) return;
  const auto make = [] { return std::make_shared<Impl::Streams>(); };
  impl_ = std::make_unique<Impl>(Impl{device, common_to_members(kBranches, make)});
}
Branches::~Branches() = default;
Branches::Branches(Branches&&) noexcept = default;

void Branches::each(std::size_t count, const std::function<void(std::size_t)>& enqueue) {
  if (!impl_ || count < 2) {
    for (std::size_t k = 0; k < count; ++k) enqueue(k);
    return;
  }
  Impl::Streams& side = *impl_->side;
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
