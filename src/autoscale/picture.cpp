// picture.cpp: replicas to the right, a doubling a step; environment steps a second upwards, from 0.
#include "src/autoscale/picture.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <map>

#include "src/autoscale/xml.h"
#include "src/run/format.h"
#include "wd/error.h"

namespace wd::scaling {
namespace {

constexpr double kWidth = 760, kHeight = 440;
constexpr double kLeft = 84, kRight = 580, kTop = 52, kBottom = 366;  // the plot
constexpr double kLineHeight = 18;
constexpr int kYTicks = 5;
constexpr std::size_t kMostLines = 12;  // of the legend
constexpr int kMostXTicks = 12;
// Told apart by people who see no red or no green (Okabe and Ito).
constexpr std::array kColours{"#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00"};

std::string fixed(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f", value);
  return text.data();
}

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
    out_ = concat("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 ", kWidth, " ", kHeight,
                  "\" font-family=\"sans-serif\" font-size=\"12\" fill=\"#222\">\n",
                  "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n");
    text(kLeft, 22, concat("Speed of training: ", report_.env, " on ", report_.device), "font-size=\"15\"");
    axes();
    lines();
    for (const Try& one : result_.tries) mark(one);
    if (result_.status == Status::kChosen) ring();
    legend();
    return out_ + "</svg>\n";
  }

 private:
  double x(const Probe& probe) const { return x(std::log2(static_cast<double>(probe.num_envs))); }
  double x(double doublings) const { return kLeft + (kRight - kLeft) * (doublings - low_) / (high_ - low_); }
  double y(double rate) const { return kBottom - (kBottom - kTop) * rate / top_; }

  void text(double at_x, double at_y, std::string_view words, const char* attributes = "") {
    out_ += concat("<text x=\"", fixed(at_x), "\" y=\"", fixed(at_y), "\" ", attributes, ">", xml_text(words),
                   "</text>\n");
  }
  void line(double x1, double y1, double x2, double y2, const char* colour) {
    out_ += concat("<line x1=\"", fixed(x1), "\" y1=\"", fixed(y1), "\" x2=\"", fixed(x2), "\" y2=\"",
                   fixed(y2), "\" stroke=\"", colour, "\"/>\n");
  }

  void axes() {
    constexpr double kGap = 8, kBaseline = 4;
    for (int k = 0; k <= std::lround(top_ / tick_); ++k) {
      const double rate = k * tick_;
      line(kLeft, y(rate), kRight, y(rate), "#ddd");
      text(kLeft - kGap, y(rate) + kBaseline, run::format_count(rate), "text-anchor=\"end\"");
    }
    const int every = 1 + static_cast<int>(high_ - low_) / kMostXTicks;
    for (int doublings = static_cast<int>(low_); doublings <= static_cast<int>(high_); doublings += every) {
      line(x(doublings), kBottom, x(doublings), kBottom + kBaseline, "#222");
      text(x(doublings), kBottom + kLineHeight, run::format_count(std::exp2(doublings)),
           "text-anchor=\"middle\"");
    }
    line(kLeft, kBottom, kRight, kBottom, "#222");
    text(0.5 * (kLeft + kRight), kBottom + 2.3 * kLineHeight, "replicas (logarithmic)",
         "text-anchor=\"middle\"");
    out_ += concat("<text transform=\"translate(20 ", fixed(0.5 * (kTop + kBottom)),
                   ") rotate(-90)\" text-anchor=\"middle\">environment steps per second [1/s]</text>\n");
  }

  // One for each T, in the order of replicas.
  void lines() {
    std::map<std::int64_t, std::map<std::int64_t, std::vector<double>>> rates;
    for (const Try& one : result_.tries) {
      if (one.outcome.kind == Kind::kFits)
        rates[one.probe.rollout_steps][one.probe.num_envs].push_back(one.outcome.env_steps_per_s);
    }
    for (auto& [steps, by_replicas] : rates) {
      colours_[steps] = kColours[colours_.size() % kColours.size()];
      std::string points;
      for (auto& [replicas, values] : by_replicas) {
        std::ranges::sort(values);
        points += concat(fixed(x({replicas, steps})), ",", fixed(y(values[values.size() / 2])), " ");
      }
      out_ += concat("<polyline points=\"", points, "\" fill=\"none\" stroke=\"", colours_[steps], "\"/>\n");
    }
  }

  // Hovering tells the line of the table.
  void mark(const Try& one) {
    const std::string title = "<title>" + xml_text(table_line(one)) + "</title>";
    if (one.outcome.kind == Kind::kFits) {
      out_ += concat("<circle cx=\"", fixed(x(one.probe)), "\" cy=\"", fixed(y(one.outcome.env_steps_per_s)),
                     "\" r=\"4\" fill=\"", colours_[one.probe.rollout_steps], "\" fill-opacity=\"0.7\">",
                     title, "</circle>\n");
    } else {
      out_ += concat("<path d=\"", cross(x(one.probe), kBottom), "\" stroke=\"", colour_of(one.outcome.kind),
                     "\" stroke-width=\"2\">", title, "</path>\n");
    }
  }
  static std::string cross(double at_x, double at_y) {
    constexpr double kArm = 5;
    return concat("M", fixed(at_x - kArm), " ", fixed(at_y - kArm), "L", fixed(at_x + kArm), " ",
                  fixed(at_y + kArm), "M", fixed(at_x - kArm), " ", fixed(at_y + kArm), "L",
                  fixed(at_x + kArm), " ", fixed(at_y - kArm));
  }
  static const char* colour_of(Kind kind) {
    if (kind == Kind::kSkipped) return "#999";
    return kind == Kind::kTooSlow ? "#d55e00" : "#c00";
  }

  void ring() {
    out_ += concat("<circle cx=\"", fixed(x(result_.chosen)), "\" cy=\"", fixed(y(result_.env_steps_per_s)),
                   "\" r=\"8\" fill=\"none\" stroke=\"#222\" stroke-width=\"2\"/>\n");
  }

  void legend() {
    constexpr double kSide = kRight + 24, kIndent = 14, kBaseline = 4;
    double at = kTop;
    const auto entry = [&](const std::string& sign, const std::string& words) {
      out_ += sign;
      text(kSide + kIndent, at + kBaseline, words);
      at += kLineHeight;
    };
    std::size_t shown = 0;
    for (const auto& [steps, colour] : colours_) {
      if (++shown > kMostLines) break;
      entry(concat("<circle cx=\"", kSide, "\" cy=\"", fixed(at), "\" r=\"4\" fill=\"", colour, "\"/>\n"),
            concat("T = ", steps, shown == kMostLines ? " and more" : ""));
    }
    for (const Kind kind : {Kind::kOutOfMemory, Kind::kTooSlow, Kind::kFailed, Kind::kSkipped}) {
      if (std::ranges::none_of(result_.tries, [kind](const Try& one) { return one.outcome.kind == kind; }))
        continue;
      entry(concat("<path d=\"", cross(kSide, at), "\" stroke=\"", colour_of(kind),
                   "\" stroke-width=\"2\"/>\n"),
            name_of(kind));
    }
    if (result_.status != Status::kChosen) return;
    entry(concat("<circle cx=\"", kSide, "\" cy=\"", fixed(at),
                 "\" r=\"6\" fill=\"none\" stroke=\"#222\" stroke-width=\"2\"/>\n"),
          "chosen:");
    for (const std::string& words :
         {concat(result_.chosen.num_envs, " replicas"), concat("T = ", result_.chosen.rollout_steps),
          run::format_count(result_.env_steps_per_s) + " steps/s"})
      entry("", words);
  }

  const Report& report_;
  const SearchResult& result_;
  double low_, high_, tick_, top_;  // doublings; env steps a second
  std::map<std::int64_t, const char*> colours_;
  std::string out_;
};

}  // namespace

std::string svg(const Report& report) { return Picture(report).draw(); }

}  // namespace wd::scaling
