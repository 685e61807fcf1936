// reader.cpp: checks the parts of a recording against each other, and reads entries from them.
#include <ATen/ATen.h>

#include <algorithm>

#include "kernels/replay_body.h"
#include "src/base/whole_number.h"
#include "src/checkpoint/safetensors_header.h"
#include "src/recorded/fields.h"
#include "src/recorded/recording.h"
#include "wd/error.h"
#include "wd/named_tensor.h"

namespace wd {

namespace {

constexpr std::int64_t kPieceBytes = std::int64_t{64} << 20;

at::ScalarType type_of(const std::string& dtype) {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16, at::kInt, at::kByte})
    if (dtype_of(type) == dtype) return type;
  throw std::runtime_error("has a tensor of type " + dtype);
}

std::int64_t number(const SafetensorsReader& file, const char* key) {
  const auto found = file.metadata().find(key);
  WD_CHECK(found != file.metadata().end(), "has no '", key, "' in its metadata");
  const auto value = whole_number<std::int64_t>(found->second);
  WD_CHECK(value && *value >= 0, "has '", key, "' = ", found->second,
           " in its metadata, which is no number of steps");
  return *value;
}

// Checks a part by itself. Returns [replicas, steps].
std::pair<std::int64_t, std::int64_t> shape_of(const SafetensorsReader& file) {
  const auto format = file.metadata().find("format");
  WD_CHECK(format != file.metadata().end() && format->second == kRecordingFormat, "is not of format ",
           kRecordingFormat);
  const TensorInfo* const first = file.find("observation");
  WD_CHECK(first != nullptr, "has no tensor 'observation'");
  std::pair<std::int64_t, std::int64_t> shape;
  for (const TensorInfo& info : file.tensors()) {
    WD_CHECK(info.shape.size() >= 2 && first->shape.size() >= 2, "has a tensor '", info.name,
             "' without replicas and steps");
    shape = {info.shape[0], info.shape[1]};
    WD_CHECK(shape == std::pair(first->shape[0], first->shape[1]) && shape.first > 0 && shape.second > 0,
             "has ", shape.first, " replicas and ", shape.second, " steps of '", info.name, "', and ",
             first->shape[0], " and ", first->shape[1], " of 'observation'");
  }
  return shape;
}

}  // namespace

std::int64_t row_bytes(const TensorInfo& form) {
  const auto bytes = static_cast<std::int64_t>(tensor_bytes(form.dtype, std::span(form.shape).subspan(2)));
  WD_CHECK(bytes > 0, "has rows of '", form.name, "' without a number");
  return bytes;
}

void Recording::fail(const std::filesystem::path& file, const std::string& reason) const {
  throw UsageError(concat(file.string(), ": ", reason, ": record again, or name another folder"));
}

Recording::Recording(std::filesystem::path folder) : folder_(std::move(folder)) {
  std::error_code unknown;  // a link in a circle, a name that is too long
  if (!std::filesystem::is_directory(folder_, unknown))
    fail(folder_, "there is no such folder of recorded transitions");
  std::int64_t at = 0;
  while (parts_.empty() || at < steps_) {
    const std::filesystem::path path = recorded_part(folder_, parts());
    if (!std::filesystem::exists(path, unknown))
      fail(path, parts_.empty() ? std::string("there is no such file")
                                : concat("is missing: the parts before it have ", at, " of ", steps_,
                                         " steps of each replica"));
    try {
      auto file = std::make_unique<SafetensorsReader>(path);
      const auto [replicas, steps] = shape_of(*file);
      if (parts_.empty()) {
        replicas_ = replicas;
        steps_ = number(*file, "steps");
      }
      const std::int64_t all = number(*file, "steps"), first = number(*file, "first_step");
      WD_CHECK(all == steps_ && first == at && at + steps <= steps_ && replicas == replicas_,
               "does not continue the part before it: has steps ", first, " to ", first + steps - 1, " of ",
               all, " of ", replicas, " replicas where steps from ", at, " on of ", steps_, " of ", replicas_,
               " are expected");
      parts_.push_back({path, std::move(file), at, steps});
      at += steps;
    } catch (const std::runtime_error& error) {
      fail(path, reason_of(path, error));
    }
  }
}

Recording::~Recording() = default;

at::Tensor Recording::rows(const Part& part, const std::string& field, std::int64_t first,
                           std::int64_t n) const {
  const TensorInfo* const form = part.file->find(field);
  WD_CHECK(form != nullptr, folder_.string(), ": has no tensor '", field, "'");
  std::vector<std::int64_t> shape = {n};
  shape.insert(shape.end(), form->shape.begin() + 2, form->shape.end());
  const at::Tensor rows = at::empty(shape, type_of(form->dtype));
  const std::int64_t bytes = row_bytes(*form);
  part.file->read_part(field, static_cast<std::uint64_t>(first * bytes),
                       {static_cast<std::byte*>(rows.data_ptr()), static_cast<std::size_t>(rows.nbytes())});
  return rows;
}

void Recording::read(const std::string& field, std::int64_t first, std::int64_t n,
                     const std::function<void(std::int64_t at, const at::Tensor& rows)>& use) const {
  for (std::int64_t done = 0; done < n;) {
    const std::int64_t replica = (first + done) / steps_, step = (first + done) % steps_;
    const Part& part = *std::prev(std::ranges::upper_bound(parts_, step, {}, &Part::first));
    const TensorInfo* const form = part.file->find(field);
    WD_CHECK(form != nullptr, folder_.string(), ": has no tensor '", field, "'");
    const std::int64_t most = std::max<std::int64_t>(kPieceBytes / row_bytes(*form), 1);
    const std::int64_t count = std::min({n - done, part.first + part.steps - step, most});
    use(done, rows(part, field, replica * part.steps + step - part.first, count));
    done += count;
  }
}

at::Tensor recorded_flags(const Recording& recording, std::int64_t first, std::int64_t n) {
  const auto whole = [&](const char* field) {
    std::vector<at::Tensor> pieces;
    recording.read(field, first, n, [&](std::int64_t, const at::Tensor& rows) { pieces.push_back(rows); });
    return at::cat(pieces);
  };
  const at::Tensor active = whole("active"), agent_terminated = whole("agent_terminated"),
                   terminated = whole("terminated"), truncated = whole("truncated"),
                   reset_step = whole("reset_step");
  const at::Tensor flags = at::empty_like(active);
  const std::int64_t A = active.size(1), L = recording.steps();
  const auto at = [](const at::Tensor& tensor, std::int64_t i) {
    return tensor.const_data_ptr<std::uint8_t>()[i];
  };
  auto* const out = flags.mutable_data_ptr<std::uint8_t>();
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int64_t left = L - 1 - (first + i) % L;  // steps of this recorded replica behind this one
    for (std::int64_t a = 0; a < A; ++a) {
      const std::int64_t k = i * A + a;
      out[k] = replay_flag(at(active, k), at(agent_terminated, k), at(terminated, i), at(truncated, i),
                           at(reset_step, i));
      if (left == 0 && i + 1 < n) out[k] &= static_cast<std::uint8_t>(~kReplayPlayed);
      if (left == 1 && i + 2 < n) out[k] |= kReplayEnds;
    }
  }
  return flags;
}

}  // namespace wd
