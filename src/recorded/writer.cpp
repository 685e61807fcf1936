// writer.cpp: collects the steps of all replicas and writes them part by part.
#include <ATen/ATen.h>

#include <algorithm>

#include "src/base/join.h"
#include "src/base/name.h"
#include "src/recorded/fields.h"
#include "src/recorded/recording.h"
#include "wd/error.h"
#include "wd/named_tensor.h"

namespace wd {

namespace {

std::string box(const std::vector<Bounds>& bounds) {
  std::vector<std::string> words;
  for (const Bounds& side : bounds) words.push_back(concat(side.low, "..", side.high));
  return join(words, ",");
}

// As the environment took them: a Gaussian may draw beyond the bounds, which bound what the environment gets.
at::Tensor taken_actions(const PolicyBuffers& buffers) {
  if (buffers.unit == ActionUnit::kEnvironment) return buffers.action;
  at::Tensor taken = buffers.action.clone();
  for (std::size_t k = 0; k < buffers.action_space.bounds.size(); ++k)
    if (buffers.action_space.bounds[k].are_finite())
      taken.select(-1, static_cast<std::int64_t>(k)).clamp_(-1.0, 1.0);
  return taken;
}

// Of the entries of one step, without padding.
at::Tensor columns_of(const BufferField& field, const PolicyBuffers& buffers) {
  if (field.tensor == &PolicyBuffers::action) return taken_actions(buffers);
  const std::int64_t columns = field.form(buffers)->columns;
  const at::Tensor& tensor = field.of(buffers);
  return columns > 0 ? tensor.narrow(-1, 0, columns) : tensor;
}

}  // namespace

TensorMetadata recording_metadata(const std::string& environment, const Spec& spec,
                                  const PolicyLayout& policy) {
  std::vector<std::string> roles;
  for (const int r : policy.roles) roles.push_back(spec.roles[static_cast<std::size_t>(r)].name);
  const ActionSpace& actions = policy.action_space;
  return {{"environment", kept_name(environment)},
          {"roles", join(roles, ",")},
          {"agents", std::to_string(policy.num_agents)},
          {"observations", policy.as_table() ? "table" : "rows"},
          {"observation_size", std::to_string(policy.row_size())},
          {"actions", actions.is_continuous() ? box(actions.bounds) : join(actions.heads, ",")},
          {"action_mask", policy.has_action_mask ? "true" : "false"}};
}

std::filesystem::path recorded_part(const std::filesystem::path& folder, std::int64_t part) {
  const std::string number = std::to_string(part);
  return folder /
         concat("part-", std::string(number.size() < 5 ? 5 - number.size() : 0, '0'), number, ".safetensors");
}

RecordingWriter::RecordingWriter(std::filesystem::path folder, const PolicyBuffers& buffers,
                                 TensorMetadata metadata, std::int64_t steps, std::int64_t part_bytes)
    : folder_(std::move(folder)), buffers_(buffers), metadata_(std::move(metadata)), steps_(steps) {
  std::error_code failed;
  std::filesystem::create_directories(folder_, failed);
  if (failed)
    throw UsageError(concat(folder_.string(), ": cannot be made: ", failed.message(),
                            ": name a folder in which you may write"));
  if (!std::filesystem::is_empty(folder_))
    throw UsageError(concat(folder_.string(), ": is not empty: name a new folder, or remove it"));
  const std::int64_t E = buffers.reward.size(1);
  std::int64_t bytes = 0;  // of one step
  for (const BufferField& field : recorded_fields())
    if (field.of(buffers).defined()) held_.push_back({&field, {}});
  for (const Held& held : held_) {
    const at::Tensor row = columns_of(*held.field, buffers)[0];
    bytes += row.numel() * row.element_size();
  }
  part_steps_ = std::clamp<std::int64_t>(part_bytes / bytes, 1, steps_);
  for (Held& held : held_) {
    const at::Tensor rows = columns_of(*held.field, buffers);
    std::vector<std::int64_t> shape = {E, part_steps_};
    shape.insert(shape.end(), rows.sizes().begin() + 2, rows.sizes().end());
    held.rows = at::empty(shape, rows.options().device(at::kCPU));
  }
}

void RecordingWriter::append(std::int64_t steps) {
  WD_CHECK(written_ + held_steps_ + steps <= steps_, "more steps than were announced: ", steps_);
  for (std::int64_t begin = 0; begin < steps;) {
    const std::int64_t n = std::min(steps - begin, part_steps_ - held_steps_);
    for (const Held& held : held_)
      held.rows.narrow(1, held_steps_, n)
          .copy_(columns_of(*held.field, buffers_).narrow(0, begin, n).transpose(0, 1));
    begin += n;
    held_steps_ += n;
    if (held_steps_ == part_steps_ || written_ + held_steps_ == steps_) write_part();
  }
}

void RecordingWriter::write_part() {
  std::vector<NamedTensor> tensors;
  for (const Held& held : held_)
    tensors.push_back({held.field->name_of(buffers_), held.rows.narrow(1, 0, held_steps_).contiguous()});
  TensorMetadata metadata = metadata_;
  metadata["format"] = kRecordingFormat;
  metadata["steps"] = std::to_string(steps_);
  metadata["first_step"] = std::to_string(written_);
  write_safetensors(recorded_part(folder_, parts_++), views_of(tensors), metadata);
  written_ += held_steps_;
  held_steps_ = 0;
}

}  // namespace wd
