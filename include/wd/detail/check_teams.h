// check_teams.h: teams that run phases in unusual orders, to verify that an environment does not depend on
// the order.
#pragma once

#include <algorithm>
#include <atomic>
#include <barrier>
#include <numeric>
#include <vector>

#include "wd/detail/apart.h"
#include "wd/detail/team.h"
#include "wd/environment.h"

namespace wd::detail {

// One thread. It runs the iterations of every phase forward, backward, or shuffled (differently in each
// phase). If arrays are in separate memory, it records each iteration before running it.
class OrderedTeam {
 public:
  OrderedTeam(int t, PhaseOrder order, const ApartMemory* apart = nullptr)
      : t_(t), order_(order), apart_(apart) {}
  int t() const { return t_; }

  const ApartMemory* apart() const { return apart_; }
  void enter(EnvFunction function) {
    if (apart_ != nullptr) *apart_->place = {function};
  }

  template <typename F>
  void each(int n, F f) {
    for (const int i : indices(n)) {
      note(i);
      f(i);
    }
    note(-1);
  }
  template <typename F>
  void each_pair(int n, int m, F f) {
    for (const int k : indices(n * m)) {
      note(k / m, k % m);
      f(k / m, k % m);
    }
    note(-1);
  }
  template <typename Rows, typename F>
  void write_parts(const Rows& observations, int n, int m, int size, F f) {
    each_pair(n, m * size,
              [&](int i, int entry) { observations.row(i)[entry] = f(i, entry / size)(entry % size); });
  }
  template <typename Rows, typename F>
  void write_others(const Rows& observations, int n, int m, F f) {
    write_parts(observations, n, m, n - 1, others_of(f));
  }
  template <typename F>
  void once(F f) {
    begin_phase();
    f();
  }
  template <typename F>
  float sum(int n, F f) {
    return SerialTeam(t_).sum(n, noted(f));
  }
  template <typename F>
  float min(int n, F f) {
    return SerialTeam(t_).min(n, noted(f));
  }
  template <typename F>
  bool any(int n, F f) {
    return SerialTeam(t_).any(n, noted(f));
  }
  void add(std::int32_t& target, std::int32_t amount) { target += amount; }

 private:
  std::vector<int> indices(int n) {
    std::vector<int> order(static_cast<std::size_t>(max(n, 0)));
    std::iota(order.begin(), order.end(), 0);
    ++phase_;
    begin_phase();
    if (order_ == PhaseOrder::kBackward) std::reverse(order.begin(), order.end());
    for (int i = n - 1; order_ == PhaseOrder::kShuffled && i > 0; --i) {
      const Philox bits =
          philox({{static_cast<std::uint32_t>(i), phase_, static_cast<std::uint32_t>(t_), 0}}, 1, 2);
      std::swap(order[static_cast<std::size_t>(i)], order[bits.word[0] % static_cast<std::uint32_t>(i + 1)]);
    }
    return order;
  }

  void begin_phase() {
    if (apart_ != nullptr) ++apart_->place->phase;
    note(-1);
  }
  void note(int i, int j = -1) {
    if (apart_ == nullptr) return;
    apart_->place->i = i;
    apart_->place->j = j;
    std::atomic_signal_fence(std::memory_order_seq_cst);  // so that a fault handler sees it
  }
  template <typename F>
  auto noted(F& f) {
    begin_phase();
    return [this, &f](int i) {
      note(i);
      return f(i);
    };
  }

  int t_;
  PhaseOrder order_;
  const ApartMemory* apart_;
  std::uint32_t phase_ = 0;
};

// State that the threads of one ThreadTeam share.
struct ThreadTeamMemory {
  explicit ThreadTeamMemory(int threads) : barrier(threads) {}
  std::barrier<> barrier;
};

// One of several real threads that run a replica together, as the threads of a CUDA block do.
class ThreadTeam {
 public:
  ThreadTeam(int t, int rank, int size, ThreadTeamMemory& memory)
      : t_(t), rank_(rank), size_(size), memory_(memory) {}
  int t() const { return t_; }

  template <typename F>
  void each(int n, F f) {
    for (int i = rank_; i < n; i += size_) f(i);
    memory_.barrier.arrive_and_wait();
  }
  template <typename F>
  void each_pair(int n, int m, F f) {
    each(n * m, [&](int k) { f(k / m, k % m); });
  }
  template <typename Rows, typename F>
  void write_parts(const Rows& observations, int n, int m, int size, F f) {
    each_pair(n * m, size, [&](int part, int k) {
      observations.row(part / m)[part % m * size + k] = f(part / m, part % m)(k);
    });
  }
  template <typename Rows, typename F>
  void write_others(const Rows& observations, int n, int m, F f) {
    write_parts(observations, n, m, n - 1, others_of(f));
  }
  template <typename F>
  void once(F f) {
    if (rank_ == 0) f();
    memory_.barrier.arrive_and_wait();
  }
  // Every thread computes the whole reduction; the barrier keeps later writes from racing with slower
  // readers.
  template <typename F>
  float sum(int n, F f) {
    return together([&] { return SerialTeam(t_).sum(n, f); });
  }
  template <typename F>
  float min(int n, F f) {
    return together([&] { return SerialTeam(t_).min(n, f); });
  }
  template <typename F>
  bool any(int n, F f) {
    return together([&] { return SerialTeam(t_).any(n, f); });
  }
  void add(std::int32_t& target, std::int32_t amount) { std::atomic_ref(target).fetch_add(amount); }

 private:
  template <typename F>
  auto together(F f) {
    const auto result = f();
    memory_.barrier.arrive_and_wait();
    return result;
  }

  int t_, rank_, size_;
  ThreadTeamMemory& memory_;
};

}  // namespace wd::detail
