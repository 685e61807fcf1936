// lockstep.cpp: hands the turn from member to member, and decides what comes when none can go on.
#include "src/device/lockstep.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <numeric>
#include <optional>
#include <thread>
#include <typeinfo>

#include "src/base/thread.h"

namespace wd {
namespace {

// Adjacent rows start at cache lines.
constexpr std::int64_t kAlignment = 256;

class Allocation final : public MemberLaunch {
 public:
  Allocation(at::IntArrayRef sizes, const at::TensorOptions& options)
      : sizes_(sizes.vec()), options_(options) {}

  bool is_like(const MemberLaunch& other) const override {
    const auto& o = static_cast<const Allocation&>(other);
    return sizes_ == o.sizes_ && options_.device() == o.options_.device() &&
           options_.dtype() == o.options_.dtype();
  }
  void enqueue(const MemberLaunch* const* all, std::size_t count) const override {
    const std::int64_t numbers = c10::multiply_integers(sizes_),
                       each = kAlignment / static_cast<std::int64_t>(options_.dtype().itemsize()),
                       row = (numbers + each - 1) / each * each;
    const at::Tensor rows = at::zeros({static_cast<std::int64_t>(count), row}, options_);
    for (std::size_t k = 0; k < count; ++k)
      static_cast<const Allocation*>(all[k])->result =
          rows[static_cast<std::int64_t>(k)].narrow(0, 0, numbers).view(sizes_);
  }

  mutable at::Tensor result;

 private:
  std::vector<std::int64_t> sizes_;
  at::TensorOptions options_;
};

class Zero final : public MemberLaunch {
 public:
  explicit Zero(const at::Tensor& tensor) : tensor_(tensor) {}

  bool is_like(const MemberLaunch& other) const override {
    const at::Tensor& o = static_cast<const Zero&>(other).tensor_;
    return tensor_.sizes() == o.sizes() && tensor_.strides() == o.strides();
  }
  void enqueue(const MemberLaunch* const* all, std::size_t count) const override {
    std::vector<at::Tensor> tensors;
    for (std::size_t k = 0; k < count; ++k) tensors.push_back(static_cast<const Zero*>(all[k])->tensor_);
    if (const at::Tensor batch = batch_of(tensors); batch.defined()) tensors = {batch};
    for (const at::Tensor& tensor : tensors) tensor.zero_();
  }

 private:
  at::Tensor tensor_;
};

}  // namespace

struct Lockstep::Impl {
  enum class State { kReady, kLaunches, kCommunicates, kMeets, kEnded };
  struct Member {
    State state = State::kReady;
    const MemberLaunch* launch = nullptr;
    std::exception_ptr error;  // of its launch
    const std::vector<int>* brought = nullptr;
    std::map<int, std::size_t> made;  // graphs and branches, by kind
    std::condition_variable turn;
  };

  explicit Impl(int count) : members(static_cast<std::size_t>(count)), active(members.size()) {
    std::iota(active.begin(), active.end(), 0);
  }

  std::vector<Member> members;
  std::vector<int> active;
  std::mutex mutex;
  int turn = 0;
  bool same = true;  // what those who met brought
  std::map<std::pair<int, std::size_t>, std::shared_ptr<void>> common;

  static thread_local int own;  // the member for which this thread works

  Member& self() { return members[static_cast<std::size_t>(own)]; }

  // Gives the turn away, and returns when it comes back.
  void wait_as(State state) {
    std::unique_lock lock(mutex);
    self().state = state;
    pass_on();
    wait_for_turn(lock);
  }

  // wait() without a limit needs gcc 12's libstdc++, and systems with glibc 2.34 have that of gcc 11.
  void wait_for_turn(std::unique_lock<std::mutex>& lock) {
    while (!self().turn.wait_for(lock, std::chrono::hours(1), [&] { return turn == own; })) continue;
  }

  void pass_on() {
    const auto ready = [](const Member& member) { return member.state == State::kReady; };
    auto next = std::ranges::find_if(members, ready);
    if (next == members.end()) {
      release();
      next = std::ranges::find_if(members, ready);
    }
    if (next == members.end()) return;  // all have ended
    turn = static_cast<int>(next - members.begin());
    next->turn.notify_one();
  }

  // No member can go on: decides which ones may.
  void release() {
    for (const State state : {State::kLaunches, State::kCommunicates, State::kMeets}) {
      std::vector<Member*> all;
      for (Member& member : members)
        if (member.state == state) all.push_back(&member);
      if (all.empty()) continue;
      if (state == State::kLaunches) enqueue(all);
      if (state == State::kMeets)
        same = std::ranges::all_of(all, [&](const Member* one) { return *one->brought == *all[0]->brought; });
      for (Member* const member : all) member->state = State::kReady;
      return;
    }
  }

  static void enqueue(std::vector<Member*> all) {
    while (!all.empty()) {
      const MemberLaunch& first = *all.front()->launch;
      const auto rest = std::ranges::stable_partition(all, [&](const Member* one) {
        return one->launch == &first ||
               (typeid(*one->launch) == typeid(first) && first.is_like(*one->launch));
      });
      std::vector<const MemberLaunch*> alike;
      for (auto one = all.begin(); one != rest.begin(); ++one) alike.push_back((*one)->launch);
      try {
        first.enqueue(alike.data(), alike.size());
      } catch (...) {
        for (auto one = all.begin(); one != rest.begin(); ++one) (*one)->error = std::current_exception();
      }
      all.erase(all.begin(), rest.begin());
    }
  }

  void end() {
    const std::lock_guard lock(mutex);
    self().state = State::kEnded;
    std::erase(active, own);
    pass_on();
  }
};

thread_local int Lockstep::Impl::own = 0;

Lockstep::Lockstep(int members) : impl_(std::make_unique<Impl>(members)) {}
Lockstep::~Lockstep() = default;

void Lockstep::run(const std::function<void(int)>& work) {
  std::vector<std::thread> threads;
  for (const int member : std::vector<int>(impl_->active))
    threads.push_back(start_thread([&, member] {
      Impl::own = member;
      together = this;
      {
        std::unique_lock lock(impl_->mutex);
        impl_->wait_for_turn(lock);
      }
      work(member);
      together = nullptr;
      impl_->end();
    }));
  for (std::thread& thread : threads) thread.join();
}

const std::vector<int>& Lockstep::active() const { return impl_->active; }
bool Lockstep::leads() const { return impl_->active.front() == Impl::own; }

bool Lockstep::meet(const std::vector<int>& brought) {
  impl_->self().brought = &brought;
  impl_->wait_as(Impl::State::kMeets);
  return impl_->same;
}

void Lockstep::communicate() { impl_->wait_as(Impl::State::kCommunicates); }

void Lockstep::launch(const MemberLaunch& one) {
  Impl::Member& self = impl_->self();
  self.launch = &one;
  impl_->wait_as(Impl::State::kLaunches);
  if (self.error) std::rethrow_exception(std::exchange(self.error, nullptr));
}

at::Tensor Lockstep::allocate(at::IntArrayRef sizes, const at::TensorOptions& options) {
  const Allocation one(sizes, options);
  launch(one);
  return one.result;
}

std::shared_ptr<void>& Lockstep::next_common(int kind) {
  return impl_->common[{kind, impl_->self().made[kind]++}];
}

at::Tensor batch_of(const std::vector<at::Tensor>& tensors) {
  if (tensors.size() < 2) return {};
  const at::Tensor& first = tensors[0];
  const std::int64_t step = tensors[1].storage_offset() - first.storage_offset();
  for (std::size_t k = 1; k < tensors.size(); ++k)
    if (step <= 0 || !first.is_alias_of(tensors[k]) ||
        tensors[k].storage_offset() - tensors[k - 1].storage_offset() != step)
      return {};
  std::vector<std::int64_t> sizes = first.sizes().vec(), strides = first.strides().vec();
  sizes.insert(sizes.begin(), static_cast<std::int64_t>(tensors.size()));
  strides.insert(strides.begin(), step);
  return first.as_strided(sizes, strides, first.storage_offset());
}

void zero_together(const at::Tensor& tensor) {
  Lockstep* const all = tensor.is_cpu() ? nullptr : Lockstep::current();
  all == nullptr ? static_cast<void>(tensor.zero_()) : all->launch(Zero(tensor));
}

at::Tensor zeros_together(at::IntArrayRef sizes, const at::TensorOptions& options) {
  if (Lockstep* const all = Lockstep::current(); all != nullptr && !options.device().is_cpu())
    return all->allocate(sizes, options);
  return at::zeros(sizes, options);
}

}  // namespace wd
