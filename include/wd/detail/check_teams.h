// check_teams.h: a team that runs phases in unusual orders, to verify that an environment does not depend on
// the order (wdtrain check).
#pragma once

#include <cstdint>
#include <type_traits>

#include "wd/detail/apart.h"
#include "wd/detail/team.h"
#include "wd/environment.h"

namespace wd::detail {

// One thread that runs the iterations of every phase forward, backward, or shuffled (differently in each
// phase), or one of several that run a replica together, as the threads of a CUDA block do. If arrays are in
// separate memory, it records each iteration before running it. Its loops call functions by pointers, so that
// environments compile them once.
class CheckTeam {
 public:
  struct Threads;  // what those of one replica share

  CheckTeam(int t, PhaseOrder order, const ApartMemory* apart = nullptr, int rank = 0,
            Threads* threads = nullptr)
      : t_(t), rank_(rank), order_(order), apart_(apart), threads_(threads) {}
  // Calls go(team) for each thread of a replica: three for PhaseOrder::kThreads, else one.
  template <typename F>
  static void play(int t, PhaseOrder order, F go) {
    play(t, order, [](void* f, CheckTeam& team) { (*static_cast<F*>(f))(team); }, &go);
  }

  int t() const { return t_; }
  const ApartMemory* apart() const { return apart_; }
  void enter(EnvFunction function) {
    if (apart_ != nullptr) *apart_->place = {function};
  }

  template <typename F>
  void each(int n, F f) {
    run(n, -1, [](void* g, int i, int) { (*static_cast<F*>(g))(i); }, &f);
  }
  template <typename F>
  void each_pair(int n, int m, F f) {
    run(n, m, [](void* g, int i, int j) { (*static_cast<F*>(g))(i, j); }, &f);
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
    if (rank_ == 0) f();
    wait();
  }
  // Every thread computes the whole reduction.
  template <typename F>
  float sum(int n, F f) {
    return reduce(n, f, &SerialTeam::sum<Noted>);
  }
  template <typename F>
  float min(int n, F f) {
    return reduce(n, f, &SerialTeam::min<Noted>);
  }
  template <typename F>
  bool any(int n, F f) {
    return reduce(n, f, &SerialTeam::any<Noted>);
  }
  void add(std::int32_t& target, std::int32_t amount);

 private:
  struct Noted {  // an iteration of a reduction, as a number
    CheckTeam& team;
    float (*f)(void*, int);
    void* context;
    float operator()(int i) const {
      team.note(i);
      return f(context, i);
    }
  };
  template <typename F, typename Result>
  Result reduce(int n, F& f, Result (SerialTeam::*how)(int, Noted)) {
    begin_phase();
    SerialTeam team(t_);
    const auto call = [](void* g, int i) { return static_cast<float>((*static_cast<F*>(g))(i)); };
    const Result result = (team.*how)(n, Noted{*this, call, &f});
    wait();  // so that later writes do not race with slower readers
    return result;
  }

  static void play(int t, PhaseOrder order, void (*go)(void*, CheckTeam&), void* context);
  // For all i < n and j < m; m is -1 if there is no j.
  void run(int n, int m, void (*f)(void*, int, int), void* context);
  void begin_phase();
  void note(int i, int j = -1);
  void wait();

  int t_, rank_;
  PhaseOrder order_;
  const ApartMemory* apart_;
  Threads* threads_;  // null: there is one thread
  std::uint32_t phase_ = 0;
};

}  // namespace wd::detail
