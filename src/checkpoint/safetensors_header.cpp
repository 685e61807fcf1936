// safetensors_header.cpp: encodes headers, and checks a header in full before it is used.
#include "src/checkpoint/safetensors_header.h"

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "src/base/json.h"
#include "wd/error.h"

namespace wd {
namespace {

using Json = nlohmann::json;

constexpr const char* kMetadataKey = "__metadata__";
constexpr std::size_t kDeepestHeader = 3;  // {name: {shape: [..]}}
constexpr std::uint64_t kLargest = std::numeric_limits<std::int64_t>::max();

// Refuses what the format does not need: deep nesting (memory), and a key given twice (ambiguous).
class Inspector : public nlohmann::json_sax<Json> {
 public:
  bool start_object(std::size_t) override { return start(); }
  bool start_array(std::size_t) override { return start(); }
  bool end_object() override { return end(); }
  bool end_array() override { return end(); }
  bool key(std::string& key) override {
    WD_CHECK(keys_.back().insert(key).second, "header has key ", Json(key).dump(), " twice");
    return true;
  }
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const std::string&) override { return true; }
  bool string(std::string&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool parse_error(std::size_t, const std::string&, const Json::exception&) override { return false; }

 private:
  bool start() {
    WD_CHECK(keys_.size() < kDeepestHeader, "header is nested too deeply");
    keys_.emplace_back();
    return true;
  }
  bool end() {
    keys_.pop_back();
    return true;
  }

  std::vector<std::set<std::string>> keys_;  // of each open object; empty for a list
};

// Parses the text twice: a parser with a callback would scan the whole object after each of its members.
Json parse_strictly(std::string_view text) {
  Inspector inspector;
  Json::sax_parse(text, &inspector);
  try {
    return parse_written_json(text);
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(concat("header ", error.what()));
  }
}

std::uint64_t whole_number(const Json& value, const std::string& name) {
  const bool fits = value.is_number_unsigned() && value.get<std::uint64_t>() <= kLargest;
  WD_CHECK(fits, "tensor '", name, "': shape and data_offsets must be whole numbers in [0, 2^63)");
  return value.get<std::uint64_t>();
}

TensorInfo decode_tensor(const std::string& name, const Json& entry) {
  const bool has_fields = entry.is_object() && entry.size() == 3 && entry.contains("dtype") &&
                          entry.contains("shape") && entry.contains("data_offsets");
  WD_CHECK(has_fields, "tensor '", name, "' must have dtype, shape, data_offsets and nothing else");
  const Json& shape = entry["shape"];
  const Json& offsets = entry["data_offsets"];
  WD_CHECK(entry["dtype"].is_string() && shape.is_array() && offsets.is_array() && offsets.size() == 2,
           "tensor '", name, "' must have a string dtype, a list shape, and two data_offsets");
  TensorInfo tensor;
  tensor.name = name;
  tensor.dtype = entry["dtype"].get<std::string>();
  for (const Json& size : shape) tensor.shape.push_back(static_cast<std::int64_t>(whole_number(size, name)));
  tensor.begin = whole_number(offsets[0], name);
  const std::uint64_t end = whole_number(offsets[1], name);
  WD_CHECK(tensor.begin <= end, "tensor '", name, "' ends before it begins");
  tensor.bytes = end - tensor.begin;
  const std::uint64_t needed = tensor_bytes(tensor.dtype, tensor.shape);
  WD_CHECK(tensor.bytes == needed, "tensor '", name, "' has ", tensor.bytes, " bytes where ",
           describe_tensor(tensor.dtype, tensor.shape), " needs ", needed);
  return tensor;
}

TensorMetadata decode_metadata(const Json& entry) {
  WD_CHECK(entry.is_object(), kMetadataKey, " must be an object of strings");
  TensorMetadata metadata;
  for (const auto& [key, value] : entry.items()) {
    WD_CHECK(value.is_string(), kMetadataKey, ": '", key, "' must be a string");
    metadata.emplace(key, value.get<std::string>());
  }
  return metadata;
}

void check_cover(const std::vector<TensorInfo>& tensors, std::uint64_t data_bytes) {
  std::uint64_t at = 0;
  for (const TensorInfo& tensor : tensors) {
    WD_CHECK(tensor.begin == at, "tensor '", tensor.name, "' begins at byte ", tensor.begin,
             " of the data where the one before it ends at ", at);
    WD_CHECK(tensor.bytes <= data_bytes - at, "tensor '", tensor.name,
             "' reaches beyond the end of the file");
    at += tensor.bytes;
  }
  WD_CHECK(at == data_bytes, "has ", data_bytes - at, " bytes that belong to no tensor");
}

}  // namespace

std::size_t dtype_bytes(std::string_view dtype) {
  struct Size {
    std::string_view dtype;
    std::size_t bytes;
  };
  static constexpr std::array kSizes{Size{"F64", 8}, Size{"I64", 8}, Size{"U64", 8}, Size{"F32", 4},
                                     Size{"I32", 4}, Size{"U32", 4}, Size{"F16", 2}, Size{"BF16", 2},
                                     Size{"I16", 2}, Size{"U16", 2}, Size{"I8", 1},  Size{"U8", 1},
                                     Size{"BOOL", 1}};
  for (const Size& size : kSizes) {
    if (size.dtype == dtype) return size.bytes;
  }
  throw std::runtime_error(concat("unknown dtype '", dtype.substr(0, 16), "'"));
}

std::uint64_t tensor_bytes(const std::string& dtype, std::span<const std::int64_t> shape) {
  const bool empty = std::find(shape.begin(), shape.end(), 0) != shape.end();
  std::uint64_t bytes = dtype_bytes(dtype);
  for (const std::int64_t size : shape) {
    WD_CHECK(size >= 0, "shape has the negative size ", size);
    if (empty) continue;
    const auto factor = static_cast<std::uint64_t>(size);
    WD_CHECK(bytes <= kLargest / factor, "shape is too large");
    bytes *= factor;
  }
  return empty ? 0 : bytes;
}

std::string describe_tensor(std::string_view dtype, std::span<const std::int64_t> shape) {
  std::string text(dtype);
  text += " [";
  for (std::size_t i = 0; i < shape.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  return text + "]";
}

std::string encode_header(const SafetensorsHeader& header) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  if (!header.metadata.empty()) json[kMetadataKey] = header.metadata;
  for (const TensorInfo& tensor : header.tensors) {
    WD_CHECK(tensor.name != kMetadataKey && !json.contains(tensor.name), "tensor name '", tensor.name,
             "' is taken or reserved");
    json[tensor.name] = {{"dtype", tensor.dtype},
                         {"shape", tensor.shape},
                         {"data_offsets", {tensor.begin, tensor.begin + tensor.bytes}}};
  }
  std::string text = json.dump();
  text.append((kSafetensorsPrefix - text.size() % kSafetensorsPrefix) % kSafetensorsPrefix, ' ');
  return text;
}

SafetensorsHeader decode_header(std::string_view text, std::uint64_t data_bytes) {
  WD_CHECK(text.starts_with('{'), "header does not begin with {");
  const Json json = parse_strictly(text);
  SafetensorsHeader header;
  for (const auto& [name, entry] : json.items()) {
    if (name == kMetadataKey) {
      header.metadata = decode_metadata(entry);
    } else {
      header.tensors.push_back(decode_tensor(name, entry));
    }
  }
  std::stable_sort(header.tensors.begin(), header.tensors.end(),
                   [](const TensorInfo& a, const TensorInfo& b) {
                     return std::pair(a.begin, a.bytes) < std::pair(b.begin, b.bytes);
                   });
  check_cover(header.tensors, data_bytes);
  return header;
}

}  // namespace wd
