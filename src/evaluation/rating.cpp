// rating.cpp: Newton's method on a concave likelihood; intervals from its curvature and how points vary.
#include "src/evaluation/rating.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

namespace wd {
namespace {

constexpr double kPrior = 1.0 / (4.6 * 4.6);
constexpr double kSeen = 0.25;    // a game more, which is not drawn, in what is known of the variance
constexpr double kNormal = 1.96;  // 97.5 % quantile

}  // namespace

double elo(double rating) { return rating * 400.0 / std::log(10.0); }

Ratings rate(int players, std::span<const SeatedGames> games, bool seats) {
  const std::int64_t K = players, N = K + 1;  // the seat is the last one
  at::Tensor strengths = at::zeros({N}, at::kDouble), curvature, scatter;
  auto* const r = strengths.mutable_data_ptr<double>();
  for (int k = 0; k < 100; ++k) {
    at::Tensor gradient = -kPrior * strengths;
    curvature = kPrior * at::eye(N, at::kDouble);
    scatter = curvature.clone();
    auto slope = gradient.accessor<double, 1>();
    auto curve = curvature.accessor<double, 2>(), varied = scatter.accessor<double, 2>();
    for (const SeatedGames& each : games) {
      const double side[] = {1.0, -1.0, seats ? 1.0 : 0.0};
      const std::int64_t at[] = {each.first, each.second, K};
      double ahead = 0.0;
      for (int i = 0; i < 3; ++i) ahead += side[i] * r[at[i]];
      const double p = 1.0 / (1.0 + std::exp(-ahead)), bent = each.games() * p * (1.0 - p);
      // Points of a game vary by p (1 - p), less a quarter if it is drawn.
      const double varies = std::min(bent, std::max(0.0, bent - each.draws / 4.0) + kSeen);
      for (int i = 0; i < 3; ++i) {
        slope[at[i]] += side[i] * (each.wins + each.draws / 2.0 - each.games() * p);
        for (int j = 0; j < 3; ++j) {
          curve[at[i]][at[j]] += side[i] * side[j] * bent;
          varied[at[i]][at[j]] += side[i] * side[j] * varies;
        }
      }
    }
    const at::Tensor step = at::matmul(curvature.inverse(), gradient).clamp(-1.0, 1.0);
    strengths.add_(step);
    if (step.abs().max().item<double>() < 1e-10) break;
  }
  const at::Tensor inverse = curvature.inverse(), covariance = inverse.matmul(scatter).matmul(inverse);
  // The mean of the players is 0.
  at::Tensor center = at::eye(N, at::kDouble);
  center.narrow(0, 0, K).narrow(1, 0, K).sub_(1.0 / static_cast<double>(K));
  const at::Tensor value = at::matmul(center, strengths),
                   deviation =
                       at::matmul(at::matmul(center, covariance), center).diagonal().clamp_min(0.0).sqrt();
  Ratings ratings;
  for (std::int64_t i = 0; i < N; ++i) {
    const double at = value[i].item<double>(), wide = kNormal * deviation[i].item<double>();
    (i < K ? ratings.players.emplace_back() : ratings.first_seat) = {at, at - wide, at + wide};
  }
  return ratings;
}

}  // namespace wd
