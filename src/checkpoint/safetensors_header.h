// safetensors_header.h: the JSON between the length and the data, made and checked.
#pragma once

#include "wd/safetensors.h"

namespace wd {

constexpr std::uint64_t kSafetensorsPrefix = 8;  // bytes that hold the header's length

struct SafetensorsHeader {
  std::vector<TensorInfo> tensors;  // in the order of their data
  TensorMetadata metadata;
};

// Text of a header, padded so that data begin at a multiple of 8 bytes.
std::string encode_header(const SafetensorsHeader& header);

// Throws std::runtime_error unless the text is a header whose tensors cover exactly `data_bytes` without
// overlap.
SafetensorsHeader decode_header(std::string_view text, std::uint64_t data_bytes);

// Elements of the shape times bytes of the dtype. Throws std::runtime_error when negative or above 2^63.
std::uint64_t tensor_bytes(const std::string& dtype, std::span<const std::int64_t> shape);

// "F32 [3, 4]"
std::string describe_tensor(std::string_view dtype, std::span<const std::int64_t> shape);

}  // namespace wd
