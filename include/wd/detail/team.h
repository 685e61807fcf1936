// team.h: the CPU team that runs an environment's phases one after another. The CUDA team is in
// detail/cuda_executor.cuh.
#pragma once

#include "wd/math.h"

namespace wd {

// Sum of f(first) .. f(first + size - 1) by the fixed binary tree that every team uses: neighbors first;
// leaves from n on are absent (-0, which changes nothing). `size` is a power of two. Sums of finished
// subtrees wait on a stack, one per level.
template <typename F>
WD_FN float tree_sum(int first, int size, int n, F& f) {
  float waiting[32];
  float value = -0.0f;
  for (int leaf = 0; leaf < size; ++leaf) {
    value = first + leaf < n ? f(first + leaf) : -0.0f;
    int level = 0;
    for (int carry = leaf; (carry & 1) != 0; carry >>= 1) value = waiting[level++] + value;
    waiting[level] = value;
  }
  return value;
}

// Converts f(i, c) of write_others() to the form of write_parts(): entry k is that of the k-th other agent.
template <typename F>
WD_FN auto others_of(F f) {
  return [f](int i, int c) {
    const auto g = f(i, c);
    return [g, i](int k) { return g(k + static_cast<int>(k >= i)); };
  };
}

WD_FN int next_power_of_two(int n) {
  int size = 1;
  while (size < n) size *= 2;
  return size;
}

// One replica on one thread: a phase is a loop, and the rule of phases makes its iterations independent.
class SerialTeam {
 public:
  explicit SerialTeam(int t) : t_(t) {}

  // Step of the episode: 0 in reset and in the observation after it, 1 in the first step.
  int t() const { return t_; }

  // Calls f(0) .. f(n - 1).
  template <typename F>
  void each(int n, F f) {
#pragma GCC ivdep
    for (int i = 0; i < n; ++i) f(i);
  }
  // Calls f(i, j) for all i < n, j < m; neighboring j run on neighboring threads.
  template <typename F>
  void each_pair(int n, int m, F f) {
    for (int i = 0; i < n; ++i) {
#pragma GCC ivdep
      for (int j = 0; j < m; ++j) f(i, j);
    }
  }
  // Writes observation rows of agents i < n from entry 0 on: m parts of `size` entries each, where f(i, c)(k)
  // is entry k of part c. f returns a function, so that whatever depends only on i and c is computed once,
  // not for every k.
  template <typename Rows, typename F>
  void write_parts(const Rows& observations, int n, int m, int size, F f) {
    for (int i = 0; i < n; ++i) {
      const auto row = observations.row(i);
      for (int c = 0; c < m; ++c) {
        const auto part = row + c * size;
        const auto g = f(i, c);
#pragma GCC ivdep
        for (int k = 0; k < size; ++k) part[k] = g(k);
      }
    }
  }
  // The same with n - 1 entries per part, one for each other agent: f(i, c)(j) for all j < n except i.
  template <typename Rows, typename F>
  void write_others(const Rows& observations, int n, int m, F f) {
    for (int i = 0; i < n; ++i) {
      const auto row = observations.row(i);
      for (int c = 0; c < m; ++c) {
        const auto part = row + c * (n - 1);
        const auto g = f(i, c);
#pragma GCC ivdep
        for (int j = 0; j < i; ++j) part[j] = g(j);
#pragma GCC ivdep
        for (int j = i + 1; j < n; ++j) part[j - 1] = g(j);
      }
    }
  }
  // Calls f() once.
  template <typename F>
  void once(F f) {
    f();
  }

  template <typename F>
  float sum(int n, F f) {
    return n > 0 ? tree_sum(0, next_power_of_two(n), n, f) : 0.0f;
  }
  // The smallest f(i); +inf for an empty range.
  template <typename F>
  float min(int n, F f) {
    float least = __builtin_inff();
    for (int i = 0; i < n; ++i) least = wd::min(f(i), least);
    return least;
  }
  template <typename F>
  bool any(int n, F f) {
    for (int i = 0; i < n; ++i)
      if (f(i)) return true;
    return false;
  }
  // Adds to an integer, from any iteration of a phase.
  void add(std::int32_t& target, std::int32_t amount) { target += amount; }

 private:
  int t_;
};

}  // namespace wd
