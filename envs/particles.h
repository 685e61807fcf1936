// particles.h: how agents move in those games of mpe2 in which nothing collides, and what they see in those
// in which they do.
#pragma once

#include <wd/env.h>

namespace particles {

struct Motion {
  float acceleration = 5.0f, dt = 0.1f, damping = 0.25f;

  void describe(auto&& field) {
    field("acceleration", acceleration, {0.0, 1e3}, "of an agent that moves");
    field("dt", dt, wd::above(0.0, 1.0), "time of a step");
    field("damping", damping, {0.0, 1.0}, "part of the velocity that a step takes away");
  }

  // The old velocity moves; then the choice (stay, left, right, down, up) changes it.
  WD_FN void move(int choice, float& x, float& y, float& vx, float& vy) const {
    x += vx * dt;
    y += vy * dt;
    const float push_x = ((choice == 2 ? 1.0f : 0.0f) - (choice == 1 ? 1.0f : 0.0f)) * acceleration,
                push_y = ((choice == 4 ? 1.0f : 0.0f) - (choice == 3 ? 1.0f : 0.0f)) * acceleration;
    vx = vx * (1.0f - damping) + push_x * dt;
    vy = vy * (1.0f - damping) + push_y * dt;
  }

  // A script's choice to go to a place that is (dx, dy) away. It looks three steps ahead, since a push moves
  // from the second step on, and pushes along the axis of the larger miss if that makes the miss smaller.
  int toward(float dx, float dy, float vx, float vy) const {
    const float kept = 1.0f - damping, coast = dt * (1.0f + kept + kept * kept);
    const float miss_x = dx - coast * vx, miss_y = dy - coast * vy;
    const float push = acceleration * dt * dt * (1.0f + kept);  // how far one carries by then
    if (wd::max(wd::abs(miss_x), wd::abs(miss_y)) <= 0.5f * push) return 0;
    return wd::abs(miss_x) > wd::abs(miss_y) ? (miss_x < 0.0f ? 1 : 2) : (miss_y < 0.0f ? 3 : 4);
  }
};

// What an agent sees: two numbers.
struct Pair {
  float x, y;
  WD_FN float operator()(int k) const { return k == 0 ? x : y; }
};

// Pair c of agent i's observation: its velocity, its position, and from there the landmarks and then the
// other agents, in order of id.
WD_FN Pair seen(const auto& s, int landmarks, int i, int c) {
  if (c == 0) return {s.vx[i], s.vy[i]};
  if (c == 1) return {s.x[i], s.y[i]};
  const int l = c - 2, k = l - landmarks, j = k < i ? k : k + 1;
  return {(l < landmarks ? s.landmark_x[l] : s.x[j]) - s.x[i],
          (l < landmarks ? s.landmark_y[l] : s.y[j]) - s.y[i]};
}

}  // namespace particles
