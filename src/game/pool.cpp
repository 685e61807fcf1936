// pool.cpp: which copies there are, and which of them play.
#include "src/game/pool.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <tuple>

#include "kernels/games.h"
#include "src/device/device.h"
#include "src/rollout/who_plays.h"
#include "wd/error.h"
#include "wd/safetensors.h"
#include "wd/weights.h"

namespace wd {
namespace {

// Copies tensors to those of a policy of the same shape, in the same order.
void put(const std::vector<NamedTensor>& from, Policy& policy) {
  const std::vector<NamedTensor> to = policy.saved();
  for (std::size_t k = 0; k < to.size(); ++k) to[k].tensor.copy_(from[k].tensor);
  policy.refresh_shadow();
}

}  // namespace

Pool::Pool(const PoolSettings& settings, const Policy& own, std::vector<Policy*> slots, int first_player)
    : settings_(settings), own_(own), slots_(std::move(slots)), first_player_(first_player) {
  const auto S = static_cast<std::int64_t>(slots_.size());
  const auto doubles = own.parameters().options().dtype(at::kDouble);
  for (at::Tensor* const counts : {&results_, &recent_, &interval_}) *counts = at::zeros({S + 1, 2}, doubles);
  weight_ = at::zeros({S}, doubles);
}

void Pool::begin(const std::vector<FoundPlayer>& from) {
  members_.clear();
  results_.zero_();
  for (const FoundPlayer& found : from) {
    if (members_.size() == slots_.size() - 1) break;  // find_opponents() has refused more
    const int slot = static_cast<int>(members_.size());
    load_weights(*slots_[static_cast<std::size_t>(slot)], found.frozen->weights, found.frozen->prefix);
    members_.push_back({.order = order_++, .slot = slot});
  }
  if (from.empty()) fill(members_.emplace_back(), 0, own_.saved());
  refresh();
}

void Pool::fill(Member& member, int slot, const std::vector<NamedTensor>& weights) {
  put(weights, *slots_[static_cast<std::size_t>(slot)]);
  results_[slot].copy_(at::tensor({member.results[0], member.results[1]}, at::kDouble));
  member.slot = slot;
  member.order = order_++;
  member.weights.clear();
}

// To the host.
void Pool::take_out(Member& member) {
  for (const NamedTensor& named : host_copies(slots_[static_cast<std::size_t>(member.slot)]->saved()))
    member.weights.push_back(named.tensor);
  const at::Tensor results = results_[member.slot].cpu();
  std::copy_n(results.const_data_ptr<double>(), 2, member.results);
  member.slot = -1;
  member.leaves = false;
  member.order = order_++;
}

// Slots with which a game is under way, on any rank.
std::vector<bool> Pool::busy_slots(const PolicyBuffers& buffers, const ProcessGroup& group) const {
  const at::Tensor playing =
      buffers.opponent.select(0, buffers.opponent.size(0) - 1).bitwise_and(0xffff).cpu();
  at::Tensor busy = at::zeros({static_cast<std::int64_t>(slots_.size())}, at::kLong);
  for (std::int64_t e = 0; e < playing.numel(); ++e)
    if (const int slot = playing.const_data_ptr<std::int32_t>()[e] - first_player_;
        slot >= 0 && slot < busy.numel())
      busy[slot] = 1;
  group.all_reduce(busy);
  std::vector<bool> found;
  for (std::int64_t slot = 0; slot < busy.numel(); ++slot)
    found.push_back(busy[slot].item<std::int64_t>() > 0);
  return found;
}

int Pool::free_slot(const std::vector<bool>& busy) const {
  for (int slot = 0; slot < static_cast<int>(slots_.size()); ++slot)
    if (!busy[static_cast<std::size_t>(slot)] && !std::ranges::count(members_, slot, &Member::slot))
      return slot;
  return -1;
}

void Pool::keep_one_spare() {
  Member* longest = nullptr;
  std::size_t staying = 0;
  for (Member& member : members_) {
    if (member.slot < 0 || member.leaves) continue;
    ++staying;
    if (&member != &members_.back() && (longest == nullptr || member.order < longest->order))
      longest = &member;
  }
  if (staying == slots_.size() && longest != nullptr) longest->leaves = true;
}

void Pool::refresh() {
  const at::Tensor drawn = at::zeros({static_cast<std::int64_t>(slots_.size())}, at::kDouble);
  for (const Member& member : members_)
    if (member.slot >= 0 && !member.leaves && (settings_.draw != "latest" || &member == &members_.back()))
      drawn[member.slot] = 1.0;
  weight_.copy_(drawn);
}

at::Tensor Pool::shares() const {
  const at::Tensor of_slots = results_.slice(0, 0, weight_.numel());
  at::Tensor weight = weight_;
  if (settings_.draw == "pfsp")
    weight = weight *
             (1.0 - (of_slots.select(1, 0) + 1.0) / (of_slots.select(1, 1) + 2.0)).pow(settings_.exponent);
  return weight / weight.sum();
}

void Pool::iteration_ended(const PolicyBuffers& buffers, const EndedGames& games,
                           const std::vector<std::size_t>& learners, std::int64_t env_steps,
                           const ProcessGroup& group) {
  GamesArgs args;
  args.rows = games.length.numel();
  args.who = who_plays(buffers);
  args.length = games.length.const_data_ptr<std::int32_t>();
  for (const std::size_t p : learners)
    args.returns[args.num_learners++] = games.returns[p].const_data_ptr<float>();
  args.win_above = static_cast<float>(settings_.win_above);
  args.first_player = first_player_;
  args.num_slots = static_cast<int>(slots_.size());
  if (!partial_.defined())
    partial_ = at::zeros({games_chunks(args.rows), recent_.numel()}, recent_.options());
  args.partial = partial_.mutable_data_ptr<double>();
  args.results = recent_.mutable_data_ptr<double>();
  const Queue queue = current_queue(own_.device());
  count_games(queue, args);
  sum_games(queue, args);
  group.all_reduce(recent_);
  results_.add_(recent_);
  interval_.add_(recent_);
  due_ = due_ || env_steps / settings_.every > counted_steps_ / settings_.every;
  counted_steps_ = env_steps;
  const bool waits =
      std::ranges::any_of(members_, [](const Member& one) { return one.slot < 0 || one.leaves; });
  if (!due_ && !waits) return;
  const std::vector<bool> busy = busy_slots(buffers, group);
  for (Member& member : members_)
    if (member.leaves && !busy[static_cast<std::size_t>(member.slot)]) take_out(member);
  const int place = free_slot(busy);
  if (place < 0) return;
  const auto size = static_cast<std::size_t>(settings_.size);
  if (std::exchange(due_, false)) {
    if (members_.size() >= size)
      members_.erase(members_.begin(), members_.end() - static_cast<std::ptrdiff_t>(size) + 1);
    fill(members_.emplace_back(Member{.steps = env_steps}), place, own_.saved());
  } else {
    Member* in = nullptr;  // that has waited longest
    for (Member& member : members_)
      if (member.slot < 0 && (in == nullptr || member.order < in->order)) in = &member;
    if (in == nullptr) return;
    std::vector<NamedTensor> weights;
    for (const at::Tensor& tensor : in->weights) weights.push_back({"", tensor});
    fill(*in, place, weights);
  }
  keep_one_spare();
  refresh();
}

std::vector<std::pair<std::string, double>> Pool::metrics(std::int64_t env_steps) {
  const at::Tensor all = results_.cpu(), since = interval_.clone().cpu();
  interval_.zero_();
  const auto at = [](const at::Tensor& counts, std::int64_t row, int column) {
    return counts.const_data_ptr<double>()[2 * row + column];
  };
  const auto S = static_cast<std::int64_t>(slots_.size());
  double past = 0.0;
  for (std::int64_t slot = 0; slot < S; ++slot) past += at(since, slot, 1);
  std::vector<std::pair<std::string, double>> found = {
      {"past_share", past / at(since, S, 1)},
      {"past_oldest", static_cast<double>(env_steps - members_.front().steps)}};
  std::vector<double> wins(static_cast<std::size_t>(std::min(settings_.size, kActive))), played(wins.size());
  for (std::size_t k = 0; k < members_.size(); ++k) {  // from the latest one on
    const std::size_t group = k * wins.size() / static_cast<std::size_t>(settings_.size);
    const Member& member = members_[members_.size() - 1 - k];
    wins[group] += member.slot < 0 ? member.results[0] : at(all, member.slot, 0);
    played[group] += member.slot < 0 ? member.results[1] : at(all, member.slot, 1);
  }
  for (std::size_t group = 0; group < wins.size(); ++group)
    found.emplace_back(concat("past_win_rate/", group), wins[group] / played[group]);
  return found;
}

std::vector<NamedTensor> Pool::saved() const {
  std::vector<NamedTensor> saved;
  const at::Tensor members = at::zeros({static_cast<std::int64_t>(members_.size()), 4}, at::kLong),
                   results = at::zeros({members.size(0), 2}, at::kDouble);
  for (std::size_t k = 0; k < members_.size(); ++k) {
    const auto row = static_cast<std::int64_t>(k);
    const Member& member = members_[k];
    members[row].copy_(at::tensor(
        {member.steps, member.order, std::int64_t{member.slot}, std::int64_t{member.leaves}}, at::kLong));
    results[row].copy_(at::tensor({member.results[0], member.results[1]}, at::kDouble));
    const std::vector<NamedTensor> names = slots_[0]->saved();
    for (std::size_t w = 0; w < member.weights.size(); ++w)
      saved.push_back({concat("member", k, '/', names[w].name), member.weights[w]});
  }
  saved.push_back({"members", members});
  saved.push_back({"host_results", results});
  saved.push_back({"results", results_});
  saved.push_back({"interval", interval_});
  saved.push_back({"counts", at::tensor({counted_steps_, order_, std::int64_t{due_}}, at::kLong)});
  for (std::size_t slot = 0; slot < slots_.size(); ++slot)
    for (const NamedTensor& named : slots_[slot]->saved())
      saved.push_back({concat("slot", slot, '/', named.name), named.tensor});
  return saved;
}

int Pool::slots_in(const std::filesystem::path& file, const std::string& prefix) {
  const SafetensorsReader reader(file);
  const TensorInfo* const results = reader.find(prefix + "results");
  WD_CHECK(results != nullptr && !results->shape.empty(), file.string(), ": is no pool");
  return static_cast<int>(results->shape[0]) - 1;
}

void Pool::restore(const std::filesystem::path& file, const std::string& prefix) {
  const SafetensorsReader reader(file);
  const TensorInfo* const has = reader.find(prefix + "members");
  WD_CHECK(has != nullptr && has->shape.size() == 2, file.string(), ": is no pool");
  if (const int before = slots_in(file, prefix); before != static_cast<int>(slots_.size()))
    throw UsageError(concat(file.string(), ": this pool has ", before, " slots, and its settings now mean ",
                            slots_.size(),
                            ": keep its size, or begin a new run with the weights (--warm_start)"));
  const at::Tensor members = at::zeros({has->shape[0], 4}, at::kLong);
  reader.read(prefix + "members", "I64", members.sizes(),
              {static_cast<std::byte*>(members.mutable_data_ptr()), members.nbytes()});
  members_.assign(static_cast<std::size_t>(members.size(0)), {});
  for (std::size_t k = 0; k < members_.size(); ++k) {
    const auto* const row = members.const_data_ptr<std::int64_t>() + 4 * k;
    members_[k] = {.steps = row[0], .order = row[1], .slot = static_cast<int>(row[2]), .leaves = row[3] != 0};
    if (row[2] >= 0) continue;
    for (const NamedTensor& named : slots_[0]->saved())
      members_[k].weights.push_back(at::empty_like(named.tensor, at::kCPU));
  }
  std::vector<NamedTensor> mine = saved();
  std::vector<TensorForm> forms;
  for (const NamedTensor& named : mine) forms.push_back(form_of({prefix + named.name, named.tensor}));
  const std::vector<NamedTensor> read = read_tensors(file, forms);
  for (std::size_t k = 0; k < mine.size(); ++k) {
    mine[k].tensor.copy_(read[k].tensor);
    if (mine[k].name == "host_results")
      for (std::size_t m = 0; m < members_.size(); ++m)
        std::copy_n(read[k].tensor.const_data_ptr<double>() + 2 * m, 2, members_[m].results);
    if (mine[k].name != "counts") continue;
    const auto* const counts = read[k].tensor.const_data_ptr<std::int64_t>();
    std::tie(counted_steps_, order_, due_) = std::tuple(counts[0], counts[1], counts[2] != 0);
  }
  for (Policy* const slot : slots_) slot->refresh_shadow();
  refresh();
}

}  // namespace wd
