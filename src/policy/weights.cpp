// weights.cpp: tensors between device memory and safetensors.
#include "wd/weights.h"

#include <ATen/ATen.h>

#include <array>

#include "wd/error.h"

namespace wd {

namespace {

struct Dtype {
  const char* name;
  at::ScalarType type;
};
constexpr std::array kDtypes = {Dtype{"F32", at::kFloat}, Dtype{"F64", at::kDouble},
                                Dtype{"I32", at::kInt},   Dtype{"I64", at::kLong},
                                Dtype{"U8", at::kByte},   Dtype{"BF16", at::kBFloat16}};

std::span<std::byte> memory_of(const at::Tensor& tensor) {
  return {static_cast<std::byte*>(tensor.data_ptr()), static_cast<std::size_t>(tensor.nbytes())};
}

std::string name_of(at::ScalarType type) {
  for (const Dtype& dtype : kDtypes)
    if (dtype.type == type) return dtype.name;
  throw std::logic_error(concat("tensors of type ", at::toString(type), " are not written"));
}

}  // namespace

std::vector<NamedTensor> host_copies(const std::vector<NamedTensor>& tensors) {
  std::vector<NamedTensor> copies;
  for (const NamedTensor& named : tensors) {
    copies.push_back({named.name, at::empty(named.tensor.sizes(), named.tensor.options().device(at::kCPU))});
    copies.back().tensor.copy_(named.tensor);
  }
  return copies;
}

std::vector<TensorView> views_of(const std::vector<NamedTensor>& tensors) {
  std::vector<TensorView> views;
  for (const NamedTensor& named : tensors) {
    views.push_back({named.name, name_of(named.tensor.scalar_type()), named.tensor.sizes().vec(),
                     memory_of(named.tensor)});
  }
  return views;
}

std::vector<NamedTensor> read_tensors(const std::filesystem::path& path) {
  const SafetensorsReader reader(path);
  std::vector<NamedTensor> tensors;
  for (const TensorInfo& info : reader.tensors()) {
    const auto dtype =
        std::find_if(kDtypes.begin(), kDtypes.end(), [&](const Dtype& d) { return d.name == info.dtype; });
    WD_CHECK(dtype != kDtypes.end(), path.string(), ": tensor '", info.name, "' has type ", info.dtype,
             ", which is none of ours");
    tensors.push_back({info.name, at::empty(info.shape, dtype->type)});
    reader.read(info.name, info.dtype, info.shape, memory_of(tensors.back().tensor));
  }
  return tensors;
}

void load_weights(Policy& policy, const std::filesystem::path& path) {
  const SafetensorsReader reader(path);
  for (const NamedTensor& named : policy.named_parameters()) {
    const at::Tensor host = at::empty(named.tensor.sizes(), at::kFloat);
    reader.read(named.name, "F32", host.sizes().vec(), memory_of(host));
    named.tensor.copy_(host);
  }
  policy.refresh_shadow();
}

}  // namespace wd
