// measure.h: measurements that say why something does not learn. They are computed when metrics are asked
// for, from tensors that already exist, so that training is as fast without them.
#pragma once

#include <ATen/core/Tensor.h>

#include <span>
#include <vector>

#include "wd/kernels/action_layout.h"
#include "wd/network.h"
#include "wd/policy.h"
#include "wd/process_group.h"

namespace wd {

// Of all ranks, about.
inline constexpr std::int64_t kSampledRows = 1024;

// How many of `rows` rows of this rank measurements read, at most about kSampledRows of all ranks: a
// multiple of `unit` rows, which stay together.
std::int64_t sampled_rows(std::int64_t rows, std::int64_t unit, const ProcessGroup& group);

// A network with the input of some rows.
struct Probe {
  const Network* network;
  NetworkInput input;
};

// Runs the network in memory of its own, and returns that; null without rows. Enqueues.
std::unique_ptr<Network::Workspace> run_once(const Probe& probe, std::int64_t rows);

// The networks that compute a policy's outputs, for rows [0, rows) of a batch, which with sequences are those
// of whole blocks.
std::vector<Probe> probes_of(const Policy& policy, const Batch& batch, std::int64_t rows);

// The share of dormant units in the hidden layers of these networks (Sokar et al. 2023, arXiv 2302.12902): of
// units whose mean |activation| over the rows is at most 0.025 times the mean over their layer. mask: of the
// rows that count, [rows or more] uint8. NaN if no network shows its hidden layers (Network::hidden), or no
// row counts. Synchronizes on CUDA. All ranks.
double dormant_share(std::span<const Probe> probes, const at::Tensor& mask, std::int64_t rows,
                     const ProcessGroup& group);

// The share of gates of these networks (Network::gates) below 0.05 or above 0.95, over the rows of a batch's
// first block of sequences; NaN if no network shows its gates. Synchronizes on CUDA. All ranks.
double saturated_share(const Policy& policy, const Batch& batch, const ProcessGroup& group);

// Quantiles of the numbers [rows] whose mask [rows] is not 0, of all ranks; NaN if there are none.
// Synchronizes on CUDA. All ranks.
std::vector<double> quantiles_of(const at::Tensor& numbers, const at::Tensor& mask,
                                 std::vector<double> shares, const ProcessGroup& group);

// The mean of the numbers [rows] whose mask [rows] is not 0, of all ranks; NaN if there are none.
// Synchronizes on CUDA. All ranks.
double mean_of(const at::Tensor& numbers, const at::Tensor& mask, const ProcessGroup& group);

// The discounted return that followed each step, and whether it is known: until the episode ended for the
// agent, or until what is left weighs at most 5 %: so not close to a truncation, or to the end of the T
// steps, or there only if the episode ends: short of T, that selects by outcome. With `next`, the value after
// each step, returns are completed with it where they are cut, and all are known.
struct Followed {
  at::Tensor value, known;  // [T, N] float64, and uint8
};
// reward, next [T, N]; over, ended: StepEnd of each step (kernels/ends.h), [T, N] bool. On the CPU.
Followed returns_followed(const at::Tensor& reward, const at::Tensor& over, const at::Tensor& ended,
                          double gamma, const at::Tensor& next = {});

// The values of choices that were taken, summed over heads: [n] of values [n, choices of all heads] and
// actions [n, heads] int32. On the CPU.
at::Tensor taken_values(const at::Tensor& values, const at::Tensor& actions, const ActionLayout& layout);

}  // namespace wd
