// safetensors_header.h: encodes and checks the JSON between the length and the data, and what else this
// program knows of safetensors files.
#pragma once

#include <stdexcept>

#include "src/base/atomic_file.h"
#include "wd/safetensors.h"

namespace wd {

constexpr std::uint64_t kSafetensorsPrefix = 8;  // bytes that hold the header's length

struct SafetensorsHeader {
  std::vector<TensorInfo> tensors;  // in the order of their data
  TensorMetadata metadata;
};

// Returns the text of a header, padded so that the data begins at a multiple of 8 bytes.
std::string encode_header(const SafetensorsHeader& header);

// Throws std::runtime_error unless the text is a header whose tensors cover exactly `data_bytes` without
// overlap.
SafetensorsHeader decode_header(std::string_view text, std::uint64_t data_bytes);

// Elements of the shape times bytes of the dtype. Throws std::runtime_error if a size is negative or the
// product is 2^63 or more.
std::uint64_t tensor_bytes(const std::string& dtype, std::span<const std::int64_t> shape);

// What SafetensorsReader says is wrong with a file, without the file's name in front.
inline std::string reason_of(const std::filesystem::path& file, const std::runtime_error& error) {
  const std::string text = error.what(), begin = file.string() + ": ";
  return text.starts_with(begin) ? text.substr(begin.size()) : text;
}

// The same as for users, who get kSync; files of a checkpoint are synced together.
void write_safetensors(const std::filesystem::path& path, std::span<const TensorView> tensors,
                       const TensorMetadata& metadata, Durability durability);

// For example "F32 [3, 4]".
std::string describe_tensor(std::string_view dtype, std::span<const std::int64_t> shape);

}  // namespace wd
