// lanes.cpp: allocates lanes, runs their blocks, and adds their sums.
#include "wd/lanes.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>

#include "kernels/record.h"
#include "kernels/reduce.h"
#include "src/device/device.h"
#include "src/device/lockstep.h"
#include "src/device/tensor_device.h"
#include "wd/detail/vectors.h"
#include "wd/error.h"
#include "wd/heartbeat.h"

namespace wd {

const Lane::Part& Lane::part(const Network& network) const {
  const auto found = std::ranges::find(parts_, &network, &Part::network);
  WD_CHECK(found != parts_.end(), "a pass uses a network that its lanes were not made for");
  return *found;
}

const at::Tensor& Lane::numbers(const Model& model) const {
  const auto found = std::ranges::find(learned_, &model, &Learned::model);
  WD_CHECK(found != learned_.end(), "a pass learns a model that its lanes were not made for");
  return found->numbers;
}

const Network* Lane::together(const Model& model) const {
  const Network* const all = model.together();
  return all != nullptr && std::ranges::find(parts_, all, &Part::network) != parts_.end() ? all : nullptr;
}

const Lane::Rows& Lane::rows_called(std::string_view name) const {
  const auto found = std::ranges::find_if(rows_, [&](const Rows& rows) { return rows.name == name; });
  WD_CHECK(found != rows_.end(), "lanes have no rows called ", name);
  return *found;
}

const at::Tensor& Lane::rows(std::string_view name, int k) const {
  return rows_called(name).each.at(static_cast<std::size_t>(k));
}

const at::Tensor& Lane::all_rows(std::string_view name) const { return rows_called(name).all; }

void Lane::begin() {
  is_new_ = true;
  for (const Learned& learned : learned_) {
    const at::Tensor& cleared = learned.clears ? learned.gradients : learned.numbers;
    if (cleared.numel() > 0) zero_together(cleared);
  }
  for (const Part& part : parts_) {
    if (part.gradient == nullptr) continue;
    part.gradient->is_old = part.network->overwrites();
    if (part.gradient->derived.defined()) zero_together(part.gradient->derived);
  }
}

void Lane::end() {
  if (is_new_ && totals_.defined()) totals_.zero_();
  for (const Part& part : parts_)
    if (part.gradient != nullptr && std::exchange(part.gradient->is_old, false))
      zero_together(part.gradient->flat);
}

Lanes::Lanes(std::vector<ModelUse> models, int sums, std::vector<RowMemory> rows, Device device)
    : models_(std::move(models)),
      sums_(sums),
      memory_(std::move(rows)),
      device_(device),
      totals_(at::zeros({sums}, at::TensorOptions().dtype(at::kDouble).device(torch_device(device)))) {
  WD_CHECK(sums <= kMaxSums, "an algorithm sums ", sums, " numbers per row; at most ", kMaxSums);
}

void Lanes::make(Lane& lane, std::int64_t rows, bool first) const {
  const auto floats = at::TensorOptions().dtype(at::kFloat).device(torch_device(device_));
  for (const auto& [model, depth, together] : models_) {
    at::Tensor gradients;
    if (depth == ModelUse::kLearns) {
      gradients = first ? model->gradients() : at::zeros_like(model->parameters());
      lane.learned_.push_back({model, gradients, model->numbers(gradients), model->networks().empty()});
    }
    const auto add = [&](const Network& network, const at::Tensor& gradient) {
      if (gradient.defined() && !network.overwrites()) lane.learned_.back().clears = true;
      lane.parts_.push_back({&network, network.make_workspace(rows, depth != ModelUse::kForward),
                             gradient.defined() ? network.make_gradient(gradient) : nullptr});
    };
    if (together && model->together() != nullptr) {
      add(*model->together(), gradients);
      continue;
    }
    for (std::size_t k = 0; k < model->networks().size(); ++k)
      add(model->network(k), gradients.defined() ? model->section(gradients, k) : at::Tensor());
  }
  for (const auto& [name, columns, as_output, count, shared_by] : memory_) {
    const std::int64_t own = (rows + shared_by - 1) / shared_by;
    const at::Tensor all = (as_output ? make_output(count * own, columns, floats)
                                      : zeros_together({count * own, columns}, floats))
                               .unflatten(0, {count, own});
    lane.rows_.push_back({name, all, all.unbind()});
  }
  if (sums_ == 0) return;
  lane.row_sums_ = at::empty({sums_, rows}, floats);
  lane.partial_ = at::empty({sums_ * num_chunks(rows)}, floats.dtype(at::kDouble));
  lane.totals_ = first ? totals_ : at::zeros_like(totals_);
}

// More rows never mean fewer lanes, so the first lane is as large as any.
void Lanes::reserve(const Blocks& blocks) {
  const std::int64_t rows = std::min(blocks.max_rows, blocks.rows);
  if (rows_ < rows) lanes_.clear();
  if (lanes_.empty()) rows_ = rows;
  while (static_cast<std::int64_t>(lanes_.size()) < blocks.lanes) {
    const bool first = lanes_.empty();
    make(lanes_.emplace_back(), rows_, first);
  }
}

// Adds the other lanes' tensors to that of the first lane, in lane order. A GPU has one lane.
void Lanes::sum(std::int64_t count, const std::function<const at::Tensor&(const Lane&)>& tensor) const {
  if (count == 1) return;
  const at::Tensor& sum = tensor(lanes_[0]);
  auto* const to = sum.mutable_data_ptr<float>();
  parallel_for(sum.numel(), 32768, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t l = 1; l < count; ++l) {
      const auto* const lane = tensor(lanes_[static_cast<std::size_t>(l)]).const_data_ptr<float>();
      with_vectors([&](auto) {
        for (std::int64_t i = begin; i < end; ++i) to[i] += lane[i];
      });
    }
  });
}

// Sums gradients and totals over lanes, in lane order; the first lane's are the result.
void Lanes::reduce(std::int64_t count) {
  for (std::size_t m = 0; m < lanes_[0].learned_.size(); ++m)
    sum(count, [m](const Lane& lane) -> const at::Tensor& { return lane.learned_[m].gradients; });
  for (std::size_t k = 0; k < lanes_[0].parts_.size(); ++k) {
    const Lane::Part& part = lanes_[0].parts_[k];
    if (part.gradient == nullptr || !part.gradient->derived.defined()) continue;
    sum(count, [k](const Lane& lane) -> const at::Tensor& { return lane.parts_[k].gradient->derived; });
    part.network->finish_gradient(part.gradient->derived, part.gradient->flat);
  }
  for (std::int64_t l = 1; l < count; ++l)
    for (int k = 0; k < sums_; ++k)
      totals_.mutable_data_ptr<double>()[k] +=
          lanes_[static_cast<std::size_t>(l)].totals_.const_data_ptr<double>()[k];
}

at::Tensor Lanes::run(const Blocks& blocks, const Pass& pass, const std::function<bool()>& should_stop) {
  if (blocks.rows == 0) {
    for (const auto& [model, depth, together] : models_)
      if (depth == ModelUse::kLearns) model->gradients().zero_();
    return totals_.zero_();
  }
  reserve(blocks);
  const auto each_lane = [&](void (Lane::*f)()) {
    for (std::int64_t l = 0; l < blocks.lanes; ++l) (lanes_[static_cast<std::size_t>(l)].*f)();
  };
  each_lane(&Lane::begin);
  const Queue queue = current_queue(device_);
  blocks.each([&](std::int64_t l, std::int64_t begin, std::int64_t end) {
    if (should_stop && should_stop()) return;
    heartbeat::beat();
    Lane& lane = lanes_[static_cast<std::size_t>(l)];
    pass(lane, begin, end);
    if (sums_ > 0)
      sum_rows(queue, lane.row_sums_.const_data_ptr<float>(), sums_, end - begin, !lane.is_new_,
               lane.partial_.mutable_data_ptr<double>(), lane.totals_.mutable_data_ptr<double>());
    lane.is_new_ = false;
  });
  each_lane(&Lane::end);
  reduce(blocks.lanes);
  return totals_;
}

}  // namespace wd
