// measure.cpp: reductions in double precision on the CPU, over the rows of all ranks.
#include "src/algorithm/measure.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "wd/rollout_algorithm.h"

namespace wd {

namespace {

at::Tensor on_host(const at::Tensor& numbers) { return numbers.cpu().to(at::kDouble); }

}  // namespace

std::int64_t sampled_rows(std::int64_t rows, std::int64_t unit, const ProcessGroup& group) {
  return std::min(rows, std::max<std::int64_t>(kSampledRows / (group.size() * unit), 1) * unit);
}

std::unique_ptr<Network::Workspace> run_once(const Probe& probe, std::int64_t rows) {
  auto workspace = probe.network->make_workspace(std::max<std::int64_t>(rows, 1), false);
  if (rows > 0) probe.network->forward(probe.input, *workspace);
  return workspace;
}

std::vector<Probe> probes_of(const Policy& policy, const Batch& batch, std::int64_t rows) {
  std::vector<Probe> probes = {{&policy.model().network(0), policy.input(batch, 0, rows)}};
  if (policy.has_critic())
    probes.push_back({&policy.model().network(1), policy.critic_input(batch, 0, rows)});
  return probes;
}

double dormant_share(std::span<const Probe> probes, const at::Tensor& mask, std::int64_t rows,
                     const ProcessGroup& group) {
  constexpr double kDormant = 0.025;
  const at::Tensor counts = on_host(mask.narrow(0, 0, rows)).view({rows, 1});
  std::vector<at::Tensor> sums = {counts.sum().view({1})};  // rows, then a number for each unit
  for (const Probe& probe : probes) {
    const auto workspace = run_once(probe, rows);
    for (const at::Tensor& layer : probe.network->hidden(*workspace))
      sums.push_back((on_host(layer.narrow(0, 0, rows)).abs() * counts).sum(0));
  }
  at::Tensor all = at::cat(sums);
  group.all_reduce(all);
  if (sums.size() == 1 || !(all[0].item<double>() > 0.0)) return std::nan("");
  double dormant = 0.0;
  std::int64_t first = 1;
  for (std::size_t l = 1; l < sums.size(); ++l) {
    const at::Tensor layer = all.narrow(0, first, sums[l].numel());
    dormant += layer.le(kDormant * layer.mean()).sum().item<double>();
    first += sums[l].numel();
  }
  return dormant / static_cast<double>(first - 1);
}

double saturated_share(const Policy& policy, const Batch& batch, const ProcessGroup& group) {
  constexpr double kSaturated = 0.05;
  const std::int64_t rows = std::min(policy.blocks(batch).max_rows, batch.mask.size(0));
  const at::Tensor sums = at::zeros({2}, at::kDouble);  // gates, and those that are saturated
  for (const Probe& probe : probes_of(policy, batch, rows)) {
    const at::Tensor gates = probe.network->gates(*run_once(probe, rows));
    if (!gates.defined()) continue;
    sums[0] += static_cast<double>(gates.numel());
    sums[1] += (on_host(gates) - 0.5).abs().gt(0.5 - kSaturated).sum();
  }
  group.all_reduce(sums);
  return ratio(sums[1].item<double>(), sums[0].item<double>());
}

std::vector<double> quantiles_of(const at::Tensor& numbers, const at::Tensor& mask,
                                 std::vector<double> shares, const ProcessGroup& group) {
  const at::Tensor all = group.all_gather_rows(on_host(numbers).masked_select(mask.cpu().ne(0)));
  for (double& share : shares)
    share = all.numel() > 0 ? at::quantile(all, share).item<double>() : std::nan("");
  return shares;
}

double mean_of(const at::Tensor& numbers, const at::Tensor& mask, const ProcessGroup& group) {
  const at::Tensor counted = on_host(numbers).masked_select(mask.cpu().ne(0));
  const at::Tensor sums = at::stack({counted.sum(), at::full({}, counted.numel(), at::kDouble)});
  group.all_reduce(sums);
  return ratio(sums[0].item<double>(), sums[1].item<double>());
}

Followed returns_followed(const at::Tensor& reward, const at::Tensor& over, const at::Tensor& ended,
                          double gamma, const at::Tensor& next) {
  constexpr double kLeft = 0.05;
  const at::Tensor rewards = reward.to(at::kDouble).contiguous(), overs = over.contiguous(),
                   ends = ended.contiguous(),
                   cut = next.defined() ? next.to(at::kDouble).contiguous() : at::zeros_like(rewards);
  const Followed followed{at::empty_like(rewards), at::empty(rewards.sizes(), at::kByte)};
  const std::int64_t T = rewards.size(0), N = rewards.size(1);
  const auto* const r = rewards.const_data_ptr<double>();
  auto* const value = followed.value.mutable_data_ptr<double>();
  std::vector<double> sum(static_cast<std::size_t>(N)), left(sum.size());  // of the step behind
  for (std::int64_t i = T * N; i-- > 0;) {
    const auto n = static_cast<std::size_t>(i % N);
    if (i >= (T - 1) * N || ends.const_data_ptr<bool>()[i]) {
      const bool is_over = overs.const_data_ptr<bool>()[i];
      sum[n] = is_over ? 0.0 : cut.const_data_ptr<double>()[i];
      left[n] = is_over || next.defined() ? 0.0 : 1.0;
    }
    value[i] = sum[n] = r[i] + gamma * sum[n];
    left[n] *= gamma;
    followed.known.mutable_data_ptr<std::uint8_t>()[i] = left[n] <= kLeft ? 1 : 0;
  }
  return followed;
}

at::Tensor taken_values(const at::Tensor& values, const at::Tensor& actions, const ActionLayout& layout) {
  const at::Tensor columns = actions.to(at::kLong).clone();
  std::int64_t first = 0;
  for (int h = 0; h < layout.num_heads; ++h) {
    columns.select(1, h).add_(first);
    first += layout.head_size[h];
  }
  return values.gather(1, columns).sum(1);
}

}  // namespace wd
