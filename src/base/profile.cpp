// profile.cpp: a stack of scopes per thread, and one table of their times.
#include "wd/detail/profile.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

#include "src/base/ranges.h"

namespace wd::profile {

const Ranges* ranges = nullptr;

namespace {

thread_local Scope* innermost = nullptr;
std::atomic<Phase> phase_now{Phase::kOther};

struct Total {
  std::int64_t calls = 0;
  double seconds = 0.0;
};

std::mutex mutex;
std::map<std::pair<Phase, std::string>, Total>& totals() {
  static std::map<std::pair<Phase, std::string>, Total> table;
  return table;
}

}  // namespace

void start() {
  const std::lock_guard lock(mutex);
  totals().clear();
  detail::collecting = true;
}

std::vector<Operation> stop() {
  detail::collecting = false;
  const std::lock_guard lock(mutex);
  std::vector<Operation> operations;
  for (const auto& [key, total] : totals())
    operations.push_back({key.first, key.second, total.calls, total.seconds});
  std::ranges::stable_sort(operations, std::greater(), &Operation::seconds);
  return operations;
}

PhaseScope::PhaseScope(Phase phase) : outer_(phase_now.exchange(phase)) {
  if (ranges != nullptr) ranges->push(kPhaseNames[static_cast<std::size_t>(phase)]);
}

PhaseScope::~PhaseScope() {
  if (ranges != nullptr) ranges->pop();
  phase_now = outer_;
}

Scope* Scope::current() { return innermost; }

void Scope::begin(const char* name) {
  open_ = true;
  name_ = name;
  phase_ = phase_now;
  outer_ = std::exchange(innermost, this);
  start_ = Clock::now();
}

void Scope::begin_share(Scope& whole) {
  begin(nullptr);
  whole_ = &whole;
}

void Scope::end() {
  const double elapsed = std::chrono::duration<double>(Clock::now() - start_).count();
  innermost = outer_;
  if (whole_ != nullptr) {
    whole_->others_ += elapsed - inside_;
    return;
  }
  if (outer_ != nullptr) outer_->inside_ += elapsed;
  if (!detail::collecting) return;  // stopped meanwhile
  const std::lock_guard lock(mutex);
  Total& total = totals()[{phase_, name_}];
  ++total.calls;
  total.seconds += elapsed - inside_ + others_;
}

}  // namespace wd::profile
