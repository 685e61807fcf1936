// entries.cpp: searches entries for what cannot be learned from.
#include "src/recorded/entries.h"

#include <ATen/ATen.h>

#include <cmath>

#include "wd/error.h"

namespace wd {

namespace {

using Fault = std::optional<EntryFault>;

// The place of the first number that is not usable, or nothing. NaN is not less than anything.
std::optional<std::int64_t> first_unusable(const at::Tensor& rows) {
  if (rows.numel() == 0) return {};
  const at::Tensor good = rows.abs().le(kLargestNumber);
  if (good.all().item<bool>()) return {};
  return good.flatten().logical_not().nonzero()[0].item<std::int64_t>();
}

}  // namespace

Fault number_fault(const std::string& name, const at::Tensor& rows) {
  if (!rows.defined() || rows.scalar_type() == at::kByte) return {};
  const auto at = first_unusable(rows);
  if (!at) return {};
  const std::int64_t agents = rows.size(1), columns = rows.dim() > 2 ? rows.size(2) : 1;
  const auto value = rows.flatten()[*at].item<double>();
  std::string what = concat(value, rows.dim() > 2 ? concat(" in column ", *at % columns) : "");
  if (std::isfinite(value)) what += concat(", and numbers above ", kLargestNumber, " cannot be learned from");
  return EntryFault{name, *at / (columns * agents), *at / columns % agents, std::move(what)};
}

namespace {

// One agent's step.
struct Row {
  std::int64_t entry, agent;
  const std::uint8_t* legal;  // or null
};

std::string head_name(const ActionSpace& space, std::size_t k) {
  return concat("head ", k, space.names.empty() ? "" : concat(" (", space.name(k), ')'));
}

Fault wrong_choice(const ActionSpace& space, const Row& row, const std::int32_t* action) {
  const std::uint8_t* legal = row.legal;
  for (std::size_t k = 0; k < space.heads.size(); ++k) {
    const int n = space.heads[k];
    if (action[k] < 0 || action[k] >= n)
      return EntryFault{"action", row.entry, row.agent,
                        concat(action[k], ", and ", head_name(space, k), " has the choices 0 to ", n - 1)};
    if (legal == nullptr) continue;
    if (legal[action[k]] == 0)
      return EntryFault{"action", row.entry, row.agent,
                        concat(action[k], " for ", head_name(space, k), ", which action_mask forbids")};
    legal += n;
  }
  return {};
}

Fault wrong_number(const ActionSpace& space, const Row& row, const float* action) {
  for (std::size_t k = 0; k < space.bounds.size(); ++k) {
    const bool bounded = space.bounds[k].are_finite();
    const double largest = bounded ? kLargestHalfWidths : kLargestNumber;
    if (std::abs(static_cast<double>(action[k])) <= largest) continue;
    return EntryFault{
        "action", row.entry, row.agent,
        concat(action[k], " for component ", k, space.names.empty() ? "" : concat(" (", space.name(k), ')'),
               bounded ? concat(", which is bounded: it must be in half-widths from the middle "
                                "of its bounds, between -1 and 1")
                       : std::string(", which cannot be learned from"))};
  }
  return {};
}

Fault wrong_action(const Entries& entries, const ActionSpace& space) {
  const std::int64_t n = entries.action.size(0), A = entries.action.size(1), width = entries.action.size(2);
  const std::uint8_t* const played = entries.played.const_data_ptr<std::uint8_t>();
  const std::uint8_t* const legal =
      entries.action_mask.defined() ? entries.action_mask.const_data_ptr<std::uint8_t>() : nullptr;
  for (std::int64_t i = 0; i < n * A; ++i) {
    if (played[i] == 0) continue;
    const Row row{i / A, i % A, legal == nullptr ? nullptr : legal + i * space.choices()};
    const Fault fault =
        space.is_continuous()
            ? wrong_number(space, row, entries.action.const_data_ptr<float>() + i * width)
            : wrong_choice(space, row, entries.action.const_data_ptr<std::int32_t>() + i * width);
    if (fault) return fault;
  }
  return {};
}

}  // namespace

Fault entry_fault(const Entries& entries, const ActionSpace& space) {
  if (const Fault fault = number_fault("observation", entries.observation)) return fault;
  if (const Fault fault = number_fault("reward", entries.reward)) return fault;
  return entries.action.defined() ? wrong_action(entries, space) : Fault();
}

void erase_impossible_actions(const at::Tensor& action, const ActionSpace& space) {
  for (std::int64_t k = 0; k < action.size(-1); ++k) {
    const at::Tensor column = action.select(-1, k);
    const auto at = static_cast<std::size_t>(k);
    const at::Tensor possible =
        space.is_continuous()
            ? column.abs().le(space.bounds[at].are_finite() ? kLargestHalfWidths : kLargestNumber)
            : column.ge(0).logical_and(column.lt(space.heads[at]));
    column.masked_fill_(possible.logical_not(), 0);
  }
}

}  // namespace wd
