// safetensors.h: named tensors in a file: 8 bytes of header length, a JSON header, raw little-endian data.
// Python's `safetensors` reads these files, and this code reads Python's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace wd {

class File;

// A tensor to be written. The caller owns the bytes, which are row-major.
struct TensorView {
  std::string name;
  std::string dtype;  // F64 F32 F16 BF16 I64 I32 I16 I8 U64 U32 U16 U8 BOOL
  std::vector<std::int64_t> shape;
  std::span<const std::byte> bytes;
};

// A tensor found in a file.
struct TensorInfo {
  std::string name;
  std::string dtype;
  std::vector<std::int64_t> shape;
  std::uint64_t begin = 0;  // within the data section, in bytes
  std::uint64_t bytes = 0;
};

using TensorMetadata = std::map<std::string, std::string>;

// Bytes of one element. Throws std::runtime_error for an unknown dtype.
std::size_t dtype_bytes(std::string_view dtype);

// Writes atomically and durably. Throws std::runtime_error if names repeat, if bytes do not match dtype and
// shape, or if writing to disk fails. Data are in descending order of element size, so that each tensor is
// aligned.
void write_safetensors(const std::filesystem::path& path, std::span<const TensorView> tensors,
                       const TensorMetadata& metadata = {});

// Writes a file in pieces, of tensors that are together too large for memory. The file is neither atomic nor
// durable.
class SafetensorsWriter {
 public:
  // Replaces the file. Of the tensors, name, dtype and shape count. Throws std::runtime_error naming the file
  // if it cannot be written.
  SafetensorsWriter(const std::filesystem::path& path, std::vector<TensorInfo> tensors);
  ~SafetensorsWriter();

  // Writes bytes of a tensor from this offset on. Throws like the constructor. Every byte must be written.
  void write(std::string_view name, std::uint64_t offset, std::span<const std::byte> bytes);

 private:
  std::unique_ptr<File> file_;
  std::map<std::string, std::uint64_t, std::less<>> at_;  // of each tensor in the file
};

// An open file whose header has been checked completely: lengths, types, shapes, and that the tensors cover
// the data exactly, without overlap. No number in a header leads to an allocation: the caller provides the
// memory for data.
class SafetensorsReader {
 public:
  // Throws std::runtime_error naming the file and what is wrong with it.
  explicit SafetensorsReader(const std::filesystem::path& path);
  ~SafetensorsReader();

  const std::vector<TensorInfo>& tensors() const { return tensors_; }  // in the order of their data
  const TensorMetadata& metadata() const { return metadata_; }
  const TensorInfo* find(std::string_view name) const;  // null if there is none

  // Reads one tensor. Throws if it is missing, or has another dtype or shape than expected; the message gives
  // both.
  void read(const std::string& name, std::string_view dtype, std::span<const std::int64_t> shape,
            std::span<std::byte> into) const;
  // Reads bytes of a tensor from this offset on. Throws if it does not have so many.
  void read_part(const std::string& name, std::uint64_t offset, std::span<std::byte> into) const;

 private:
  std::unique_ptr<File> file_;
  std::uint64_t data_at_ = 0;
  std::vector<TensorInfo> tensors_;
  std::map<std::string, std::size_t, std::less<>> index_;  // into tensors_, by name
  TensorMetadata metadata_;
};

}  // namespace wd
