// tries.cpp: one probe at a time.
#include "src/autoscale/tries.h"

#include <algorithm>
#include <cmath>

#include "src/autoscale/search.h"
#include "src/report/format.h"
#include "wd/error.h"

namespace wd::scaling {
namespace {

// What took this part of the time that was left, and was not done, says nothing about the setting.
constexpr double kCutShort = 0.95;

}  // namespace

int most_probes(double range) {
  constexpr double kEach = 2.0;
  constexpr int kMore = 4;
  return static_cast<int>(kEach * std::log2(std::max(range, 1.0))) + kMore;
}

Tries::Tries(const SearchOptions& options, const Measure& measure, const Observe& observe)
    : options_(options),
      measure_(measure),
      observe_(observe),
      model_(options.sizes, options.num_workers),
      most_together_(options.limits.memory_bytes) {}

void Tries::begin(Stage stage, double range, double part) {
  stage_ = stage;
  part_ = part;
  most_ = most_probes(range);
  made_ = 0;
}

bool Tries::out_of_time() const {
  return options_.limits.max_seconds > 0.0 && seconds_ >= part_ * options_.limits.max_seconds;
}

double Tries::seconds_left() const {
  return options_.limits.max_seconds > 0.0 ? options_.limits.max_seconds - seconds_ : 0.0;
}

std::optional<Outcome> Tries::run(const Probe& probe, const std::optional<Probe>& beside) {
  if (failed_ || out_of_time()) return {};
  Try one{.stage = stage_, .probe = probe, .predicted_bytes = model_.predict(probe)};
  if (const std::uint64_t least = model_.at_least(probe); least > options_.limits.memory_bytes) {
    one.outcome = {.kind = Kind::kSkipped, .detail = "needs at least " + run::format_bytes(least)};
    keep(one);
    return one.outcome;
  }
  if (made_ >= most_) return {};
  ++made_;
  if (beside && fits(*beside) && together(probe, *beside) < most_together_) one.beside = beside;
  const double given = seconds_left();
  one.outcome = measured(probe, one.beside, given);
  const Outcome& outcome = one.outcome;
  seconds_ += std::max(outcome.seconds, 0.0);
  if (outcome.kind == Kind::kTooSlow && given > 0.0 && outcome.seconds >= kCutShort * given) {
    seconds_ = options_.limits.max_seconds;
    one.outcome.kind = Kind::kCutShort;
    one.outcome.detail = concat("the ", run::format_duration(options_.limits.max_seconds),
                                " of autoscale.max_seconds are over");
    tell(one);
    return {};
  }
  if (outcome.kind == Kind::kOutOfMemory && one.beside) {  // which says nothing of one alone
    most_together_ = together(probe, *one.beside);
    tell(one);
    return run(probe);
  }
  keep(one);
  failed_ = outcome.kind == Kind::kFailed;
  if (failed_) return {};
  return outcome;
}

// What both settings need in one process, at most: what the process itself needs counts twice.
std::uint64_t Tries::together(const Probe& probe, const Probe& beside) const {
  return (fits(probe) ? bytes(probe) : model_.predict(probe)) + bytes(beside);
}

// The caller's word, but a success must have a speed and stay within the budget.
Outcome Tries::measured(const Probe& probe, const std::optional<Probe>& beside, double max_seconds) const {
  const Limits& limits = options_.limits;
  Outcome outcome = measure_(probe, beside, max_seconds);
  if (!outcome.ratios.empty() && beside) outcome.env_steps_per_s = median(outcome.ratios) * rate(*beside);
  if (outcome.kind != Kind::kFits) {
    outcome.env_steps_per_s = 0.0;
  } else if (!(std::isfinite(outcome.env_steps_per_s) && outcome.env_steps_per_s > 0.0)) {
    outcome.detail = concat("it ended without a speed: ", outcome.env_steps_per_s, " env/s");
    outcome.kind = Kind::kFailed;
    outcome.env_steps_per_s = 0.0;
  } else if (outcome.bytes > limits.memory_bytes) {
    outcome.detail =
        concat("used ", run::format_bytes(outcome.bytes), " of ", run::format_bytes(limits.memory_bytes));
    outcome.kind = Kind::kOutOfMemory;
  }
  return outcome;
}

void Tries::keep(const Try& one) {
  const Outcome& outcome = one.outcome;
  Known& known = known_[one.probe];
  known.bytes = std::max(known.bytes, outcome.bytes);
  if (outcome.kind == Kind::kFits) {
    known.rates.push_back(outcome.env_steps_per_s);
    if (!first_) first_ = one.probe;
  } else {
    known.misfit = outcome.kind;
  }
  // What was over the budget has been measured too.
  if (outcome.env_steps_per_s > 0.0 && outcome.bytes > 0) model_.add(one.probe, outcome.bytes);
  tell(one);
}

void Tries::tell(const Try& one) {
  list_.push_back(one);
  if (observe_) observe_(one);
}

std::optional<Kind> Tries::look(const Probe& probe) {
  const auto found = known_.find(probe);
  if (found != known_.end()) return found->second.misfit.value_or(Kind::kFits);
  const std::optional<Outcome> outcome =
      run(probe, options_.objective == Objective::kSpeed ? first_ : std::nullopt);
  if (!outcome) return {};
  return outcome->kind;
}

bool Tries::fits(const Probe& probe) const {
  const auto found = known_.find(probe);
  return found != known_.end() && !found->second.misfit;
}

bool Tries::is_misfit(const Probe& probe) const {
  const auto found = known_.find(probe);
  return found != known_.end() && found->second.misfit;
}

double Tries::rate(const Probe& probe) const { return fits(probe) ? median(known_.at(probe).rates) : 0.0; }

std::uint64_t Tries::bytes(const Probe& probe) const { return known_.at(probe).bytes; }

std::vector<Probe> Tries::fitting() const {
  std::vector<Probe> probes;
  for (const auto& [probe, known] : known_) {
    if (!known.misfit) probes.push_back(probe);
  }
  return probes;
}

}  // namespace wd::scaling
