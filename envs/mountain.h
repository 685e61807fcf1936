// mountain.h: what both games of the car in the valley have in common, with numbers of type Real.
//
// Moore, "Efficient memory-based learning for robot control", 1990.
#pragma once

#include <wd/env.h>

namespace mountain {

template <typename Real>
struct Track {
  Real min_position = Real(-1.2), max_position = Real(0.6), max_speed = Real(0.07), goal_position = Real(0.5),
       goal_velocity = Real(0.0);

  void describe(auto&& field) {
    field("min_position", min_position, {-1e3, -0.6}, "left end of the track, a wall");
    field("max_position", max_position, {-0.4, 1e3}, "right end of the track");
    field("max_speed", max_speed, wd::above(0.0, 1.0), "maximum speed [1/step]");
    field("goal_position", goal_position, {-0.4, 1e3}, "the episode ends from this position on");
    field("goal_velocity", goal_velocity, {-1.0, 1.0}, "with at least this velocity [1/step]");
  }

  wd::Drawing drawing() const {
    const auto height = [](double position) { return 0.45 * wd::sin(3.0 * position) + 0.55; };
    const auto left = static_cast<double>(min_position), right = static_cast<double>(max_position),
               goal = static_cast<double>(goal_position);
    const double foot = height(goal);
    std::vector<wd::drawing::Shape> all = wd::drawing::curve(height, left, right);
    all.push_back(wd::drawing::line(goal, foot, 0.2, 0.5 * wd::kPiDouble));
    all.push_back(wd::drawing::rectangle(goal + 0.035, foot + 0.18, 0.07, 0.04));
    all.push_back(wd::drawing::rectangle("position", {"height", 1.0, 0.05}, 0.12, 0.06, "slope"));
    return {.left = left, .bottom = 0.0, .right = right, .top = 1.3, .shapes = all};
  }
};

// The height of the ground and its slope, as Gymnasium draws them, follow from the position.
template <typename Real>
struct Car {
  wd::PerAgent<Real> position, velocity;  // [1], [1/step]
  wd::PerAgent<double> height, slope;     // 0.45 sin(3 position) + 0.55, cos(3 position)

  void describe(auto&& field) {
    field("position", position), field("velocity", velocity), field("height", height), field("slope", slope);
  }

  // `drawn` is uniform in [0, 1).
  WD_FN void start(double drawn) {
    position[0] = static_cast<Real>(-0.6 + (-0.4 - -0.6) * drawn);
    velocity[0] = Real(0.0);
    follow_ground();
  }

  // Returns true if the car has arrived.
  WD_FN bool move(const Track<Real>& track, Real push) {
    velocity[0] = wd::clamp(velocity[0] + push, -track.max_speed, track.max_speed);
    position[0] = wd::clamp(position[0] + velocity[0], track.min_position, track.max_position);
    if (position[0] == track.min_position && velocity[0] < Real(0.0)) velocity[0] = Real(0.0);
    follow_ground();
    return position[0] >= track.goal_position && velocity[0] >= track.goal_velocity;
  }

  // Three times the position is rounded to Real.
  WD_FN void follow_ground() {
    const auto [sine, cosine] = wd::sincos(static_cast<double>(Real(3.0) * position[0]));
    height[0] = 0.45 * sine + 0.55;
    slope[0] = cosine;
  }
};

}  // namespace mountain
