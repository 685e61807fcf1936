// check_teams.cpp: the loops of teams that check environments.
#include "wd/detail/check_teams.h"

#include <algorithm>
#include <atomic>
#include <barrier>
#include <numeric>
#include <thread>
#include <vector>

#include "wd/random.h"

namespace wd::detail {

namespace {
constexpr int kThreads = 3;
}  // namespace

struct CheckTeam::Threads {
  std::barrier<> barrier{kThreads};
};

void CheckTeam::play(int t, PhaseOrder order, void (*go)(void*, CheckTeam&), void* context) {
  if (order != PhaseOrder::kThreads) {
    CheckTeam team(t, order);
    return go(context, team);
  }
  Threads shared;
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < kThreads; ++rank)
    threads.emplace_back([&, rank] {
      CheckTeam team(t, order, nullptr, rank, &shared);
      go(context, team);
    });
}

void CheckTeam::run(int n, int m, void (*f)(void*, int, int), void* context) {
  const int all = std::max(m < 0 ? n : n * m, 0);
  const auto call = [&](int k) {
    const int i = m < 0 ? k : k / m, j = m < 0 ? -1 : k % m;
    note(i, j);
    f(context, i, j);
  };
  if (threads_ != nullptr) {
    for (int k = rank_; k < all; k += kThreads) call(k);
    return wait();
  }
  std::vector<int> order(static_cast<std::size_t>(all));
  std::iota(order.begin(), order.end(), 0);
  ++phase_;
  begin_phase();
  if (order_ == PhaseOrder::kBackward) std::ranges::reverse(order);
  for (int i = all - 1; order_ == PhaseOrder::kShuffled && i > 0; --i) {
    const Philox bits =
        philox({{static_cast<std::uint32_t>(i), phase_, static_cast<std::uint32_t>(t_), 0}}, 1, 2);
    std::swap(order[static_cast<std::size_t>(i)], order[bits.word[0] % static_cast<std::uint32_t>(i + 1)]);
  }
  for (const int k : order) call(k);
  note(-1);
}

void CheckTeam::add(std::int32_t& target, std::int32_t amount) { std::atomic_ref(target).fetch_add(amount); }

void CheckTeam::begin_phase() {
  if (apart_ != nullptr) ++apart_->place->phase;
  note(-1);
}

void CheckTeam::note(int i, int j) {
  if (apart_ == nullptr) return;
  apart_->place->i = i;
  apart_->place->j = j;
  std::atomic_signal_fence(std::memory_order_seq_cst);  // so that a fault handler sees it
}

void CheckTeam::wait() {
  if (threads_ != nullptr) threads_->barrier.arrive_and_wait();
}

}  // namespace wd::detail
