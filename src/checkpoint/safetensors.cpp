// safetensors.cpp: writes and reads files of named tensors.
#include "wd/safetensors.h"

#include <fcntl.h>

#include <algorithm>
#include <bit>

#include "src/base/atomic_file.h"
#include "src/base/files.h"
#include "src/checkpoint/safetensors_header.h"
#include "wd/error.h"

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

namespace wd {
namespace {

// A header has a few hundred bytes per tensor; the parsed JSON takes many times the size of its text.
constexpr std::uint64_t kLongestHeader = std::uint64_t{4} << 20;

// Opening a named pipe would wait for a writer: hence O_NONBLOCK, and only regular files are accepted.
std::unique_ptr<File> open_regular(const std::filesystem::path& path) {
  auto file = std::make_unique<File>(path, O_RDONLY | O_NONBLOCK);
  WD_CHECK(file->is_regular(), path.string(), ": is not a regular file");
  return file;
}

std::string read_header_text(const File& file, std::uint64_t size) {
  WD_CHECK(size >= kSafetensorsPrefix, "is ", size, " bytes long: no safetensors file");
  std::uint64_t length = 0;
  file.read_at(0, std::as_writable_bytes(std::span(&length, 1)));
  WD_CHECK(length <= size - kSafetensorsPrefix, "claims a header of ", length, " bytes in a file of ", size);
  WD_CHECK(length <= kLongestHeader, "has a header of ", length, " bytes, above the limit of ",
           kLongestHeader);
  std::string text(length, '\0');
  file.read_at(kSafetensorsPrefix, std::as_writable_bytes(std::span(text.data(), text.size())));
  return text;
}

TensorInfo place(const TensorView& tensor, std::uint64_t begin) {
  const std::uint64_t needed = tensor_bytes(tensor.dtype, tensor.shape);
  WD_CHECK(tensor.bytes.size() == needed, "tensor '", tensor.name, "' has ", tensor.bytes.size(),
           " bytes where ", describe_tensor(tensor.dtype, tensor.shape), " needs ", needed);
  return {.name = tensor.name, .dtype = tensor.dtype, .shape = tensor.shape, .begin = begin, .bytes = needed};
}

}  // namespace

void write_safetensors(const std::filesystem::path& path, std::span<const TensorView> tensors,
                       const TensorMetadata& metadata) {
  write_safetensors(path, tensors, metadata, Durability::kSync);
}

void write_safetensors(const std::filesystem::path& path, std::span<const TensorView> tensors,
                       const TensorMetadata& metadata, Durability durability) {
  std::vector<const TensorView*> ordered;
  for (const TensorView& tensor : tensors) ordered.push_back(&tensor);
  std::stable_sort(ordered.begin(), ordered.end(), [](const TensorView* a, const TensorView* b) {
    return dtype_bytes(a->dtype) > dtype_bytes(b->dtype);
  });

  SafetensorsHeader header{.tensors = {}, .metadata = metadata};
  std::uint64_t end = 0;
  for (const TensorView* tensor : ordered) {
    header.tensors.push_back(place(*tensor, end));
    end += tensor->bytes.size();
  }
  const std::string text = encode_header(header);
  const std::uint64_t length = text.size();

  std::vector<std::span<const std::byte>> parts{std::as_bytes(std::span(&length, 1)), bytes_of(text)};
  for (const TensorView* tensor : ordered) parts.push_back(tensor->bytes);
  write_file_atomically(path, parts, durability);
}

SafetensorsWriter::SafetensorsWriter(const std::filesystem::path& path, std::vector<TensorInfo> tensors) {
  std::ranges::stable_sort(tensors, std::greater(), [](const TensorInfo& t) { return dtype_bytes(t.dtype); });
  std::uint64_t end = 0;
  for (TensorInfo& tensor : tensors) {
    tensor.begin = end;
    tensor.bytes = tensor_bytes(tensor.dtype, tensor.shape);
    end += tensor.bytes;
  }
  const std::string text = encode_header({.tensors = tensors, .metadata = {}});
  const std::uint64_t length = text.size();
  file_ = std::make_unique<File>(path, O_WRONLY | O_CREAT | O_TRUNC, FileKind::kOwn);
  file_->write(std::as_bytes(std::span(&length, 1)));
  file_->write(bytes_of(text));
  for (const TensorInfo& tensor : tensors)
    at_.emplace(tensor.name, kSafetensorsPrefix + length + tensor.begin);
}

SafetensorsWriter::~SafetensorsWriter() = default;

void SafetensorsWriter::write(std::string_view name, std::uint64_t offset, std::span<const std::byte> bytes) {
  const auto found = at_.find(name);
  WD_CHECK(found != at_.end(), file_->path().string(), ": has no tensor '", name, "'");
  file_->write_at(found->second + offset, bytes);
}

SafetensorsReader::SafetensorsReader(const std::filesystem::path& path) : file_(open_regular(path)) {
  try {
    const std::uint64_t size = file_->size();
    const std::string text = read_header_text(*file_, size);
    data_at_ = kSafetensorsPrefix + text.size();
    SafetensorsHeader header = decode_header(text, size - data_at_);
    tensors_ = std::move(header.tensors);
    for (std::size_t i = 0; i < tensors_.size(); ++i) index_.emplace(tensors_[i].name, i);
    metadata_ = std::move(header.metadata);
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(concat(path.string(), ": ", error.what()));
  }
}

SafetensorsReader::~SafetensorsReader() = default;

const TensorInfo* SafetensorsReader::find(std::string_view name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : &tensors_[found->second];
}

void SafetensorsReader::read(const std::string& name, std::string_view dtype,
                             std::span<const std::int64_t> shape, std::span<std::byte> into) const {
  const TensorInfo* tensor = find(name);
  WD_CHECK(tensor != nullptr, file_->path().string(), ": has no tensor '", name, "'");
  WD_CHECK(tensor->dtype == dtype && std::ranges::equal(tensor->shape, shape), file_->path().string(),
           ": tensor '", name, "' is ", describe_tensor(tensor->dtype, tensor->shape), " where ",
           describe_tensor(dtype, shape), " is expected");
  WD_CHECK(into.size() == tensor->bytes, "tensor '", name, "': buffer of ", into.size(), " bytes for ",
           tensor->bytes);
  file_->read_at(data_at_ + tensor->begin, into);
}

void SafetensorsReader::read_part(const std::string& name, std::uint64_t offset,
                                  std::span<std::byte> into) const {
  const TensorInfo* tensor = find(name);
  WD_CHECK(tensor != nullptr, file_->path().string(), ": has no tensor '", name, "'");
  WD_CHECK(offset <= tensor->bytes && into.size() <= tensor->bytes - offset, "tensor '", name, "' has ",
           tensor->bytes, " bytes, and ", into.size(), " from ", offset, " on are wanted");
  file_->read_at(data_at_ + tensor->begin + offset, into);
}

}  // namespace wd
