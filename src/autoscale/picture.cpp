// picture.cpp: replicas to the right, a doubling a step; environment steps a second upwards, from 0.
#include "src/autoscale/picture.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "src/report/format.h"
#include "src/report/svg.h"
#include "wd/error.h"

namespace wd::scaling {
namespace {

constexpr double kWidth = 760, kHeight = 440;
constexpr double kLeft = 84, kRight = 580, kTop = 52, kBottom = 366;  // the plot
constexpr double kLineHeight = 18;
constexpr int kYTicks = 5;
constexpr std::size_t kMostLines = 12;  // of the legend
constexpr int kMostXTicks = 12;
// The least of 1, 2, 5, 10, ... that is no less.
double round_step(double value) {
  const double power = std::pow(10.0, std::floor(std::log10(value)));
  for (const double digit : {1.0, 2.0, 5.0}) {
    if (digit * power >= value) return digit * power;
  }
  return 10.0 * power;
}

class Picture {
 public:
  explicit Picture(const Report& report) : report_(report), result_(report.result) {
    double least = 0.0, most = 0.0, fastest = 1.0;
    for (const Try& one : result_.tries) {
      const double doublings = std::log2(static_cast<double>(one.probe.num_envs));
      least = &one == &result_.tries.front() ? doublings : std::min(least, doublings);
      most = std::max(most, doublings);
      fastest = std::max(fastest, one.outcome.env_steps_per_s);
    }
    low_ = std::floor(least);
    high_ = std::max(std::ceil(most), low_ + 1.0);
    tick_ = round_step(fastest / kYTicks);
    top_ = tick_ * std::ceil(fastest / tick_);
  }

  std::string draw() {
    svg_.text({kLeft, 22}, concat("Speed of training: ", report_.env, " on ", report_.device),
              "font-size=\"15\"");
    axes();
    lines();
    for (const Try& one : result_.tries) mark(one);
    if (result_.status == Status::kChosen) ring();
    legend();
    return svg_.document();
  }

 private:
  double x(const Probe& probe) const { return x(std::log2(static_cast<double>(probe.num_envs))); }
  double x(double doublings) const { return kLeft + (kRight - kLeft) * (doublings - low_) / (high_ - low_); }
  double y(double rate) const { return kBottom - (kBottom - kTop) * rate / top_; }

  void axes() {
    constexpr double kGap = 8, kBaseline = 4;
    for (int k = 0; k <= std::lround(top_ / tick_); ++k) {
      const double rate = k * tick_;
      svg_.line({kLeft, y(rate)}, {kRight, y(rate)}, plot::kGrid);
      svg_.text({kLeft - kGap, y(rate) + kBaseline}, run::format_count(rate), "text-anchor=\"end\"");
    }
    const int every = 1 + static_cast<int>(high_ - low_) / kMostXTicks;
    for (int doublings = static_cast<int>(low_); doublings <= static_cast<int>(high_); doublings += every) {
      svg_.line({x(doublings), kBottom}, {x(doublings), kBottom + kBaseline}, plot::kInk);
      svg_.text({x(doublings), kBottom + kLineHeight}, run::format_count(std::exp2(doublings)),
                "text-anchor=\"middle\"");
    }
    svg_.line({kLeft, kBottom}, {kRight, kBottom}, plot::kInk);
    svg_.text({0.5 * (kLeft + kRight), kBottom + 2.3 * kLineHeight}, "replicas (logarithmic)",
              "text-anchor=\"middle\"");
    svg_.upright({20, 0.5 * (kTop + kBottom)}, "environment steps per second [1/s]");
  }

  // One for each T, in the order of replicas.
  void lines() {
    std::map<std::int64_t, std::map<std::int64_t, std::vector<double>>> rates;
    for (const Try& one : result_.tries) {
      if (one.outcome.kind == Kind::kFits)
        rates[one.probe.rollout_steps][one.probe.num_envs].push_back(one.outcome.env_steps_per_s);
    }
    for (auto& [steps, by_replicas] : rates) {
      colours_[steps] = plot::kColours[colours_.size() % plot::kColours.size()];
      std::vector<plot::Svg::Place> points;
      for (auto& [replicas, values] : by_replicas) {
        std::ranges::sort(values);
        points.push_back({x({replicas, steps}), y(values[values.size() / 2])});
      }
      svg_.polyline(points, colours_[steps]);
    }
  }

  // Hovering tells the line of the table.
  void mark(const Try& one) {
    if (one.outcome.kind == Kind::kFits) {
      svg_.dot({x(one.probe), y(one.outcome.env_steps_per_s)}, 4, colours_[one.probe.rollout_steps],
               table_line(one, report_.total_steps));
    } else {
      svg_.cross({x(one.probe), kBottom}, colour_of(one.outcome.kind), table_line(one, report_.total_steps));
    }
  }
  static const char* colour_of(Kind kind) {
    if (kind == Kind::kSkipped || kind == Kind::kCutShort) return "#999";
    return kind == Kind::kTooSlow ? "#d55e00" : "#c00";
  }

  void ring() { svg_.ring({x(result_.chosen), y(result_.env_steps_per_s)}, 8); }

  void legend() {
    constexpr double kSide = kRight + 24, kIndent = 14, kBaseline = 4;
    double at = kTop;
    const auto entry = [&](const std::string& words) {
      svg_.text({kSide + kIndent, at + kBaseline}, words);
      at += kLineHeight;
    };
    std::size_t shown = 0;
    for (const auto& [steps, colour] : colours_) {
      if (++shown > kMostLines) break;
      svg_.dot({kSide, at}, 4, colour);
      entry(concat("T = ", steps, shown == kMostLines ? " and more" : ""));
    }
    for (const Kind kind :
         {Kind::kOutOfMemory, Kind::kTooSlow, Kind::kFailed, Kind::kSkipped, Kind::kCutShort}) {
      if (std::ranges::none_of(result_.tries, [kind](const Try& one) { return one.outcome.kind == kind; }))
        continue;
      svg_.cross({kSide, at}, colour_of(kind));
      entry(name_of(kind));
    }
    if (result_.status != Status::kChosen) return;
    svg_.ring({kSide, at}, 6);
    entry("chosen:");
    for (const std::string& words :
         {concat(result_.chosen.num_envs, " replicas"), concat("T = ", result_.chosen.rollout_steps),
          run::format_count(result_.env_steps_per_s) + " steps/s"})
      entry(words);
  }

  const Report& report_;
  const SearchResult& result_;
  double low_, high_, tick_, top_;  // doublings; env steps a second
  std::map<std::int64_t, const char*> colours_;
  plot::Svg svg_{kWidth, kHeight};
};

}  // namespace

std::string svg(const Report& report) { return Picture(report).draw(); }

}  // namespace wd::scaling
