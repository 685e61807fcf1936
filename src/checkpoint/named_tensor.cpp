// named_tensor.cpp: copies tensors between device memory and safetensors.
#include "wd/named_tensor.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>

#include "src/checkpoint/safetensors_header.h"
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

// Returns the shape of each form's tensor in the file, from the header alone.
std::vector<std::vector<std::int64_t>> shapes_in(const SafetensorsReader& reader,
                                                 const std::filesystem::path& path,
                                                 const std::vector<TensorForm>& forms) {
  std::vector<std::vector<std::int64_t>> all;
  for (const TensorForm& form : forms) {
    const TensorInfo* const info = reader.find(form.name);
    if (info == nullptr) throw OtherTensors(concat(path.string(), ": has no tensor '", form.name, "'"));
    const bool list = form.shape == std::vector{kAnyLength};
    const std::string dtype = dtype_of(form.type);
    const bool fits = info->shape == form.shape || (list && info->shape.size() == 1);
    if (info->dtype != dtype || !fits) {
      throw OtherTensors(concat(path.string(), ": tensor '", form.name, "' is ",
                                describe_tensor(info->dtype, info->shape), " where ",
                                list ? concat(dtype, " [any length]") : describe_tensor(dtype, form.shape),
                                " is expected"));
    }
    all.push_back(info->shape);
  }
  for (const TensorInfo& info : reader.tensors()) {
    const auto asked = [&](const TensorForm& form) { return form.name == info.name; };
    if (std::ranges::none_of(forms, asked))
      throw OtherTensors(concat(path.string(), ": tensor '", info.name, "' is not expected"));
  }
  return all;
}

}  // namespace

std::string dtype_of(at::ScalarType type) {
  for (const Dtype& dtype : kDtypes)
    if (dtype.type == type) return dtype.name;
  throw std::logic_error(concat("tensors of type ", at::toString(type), " are not written"));
}

std::vector<NamedTensor> host_copies(const std::vector<NamedTensor>& tensors) {
  std::vector<NamedTensor> copies;
  for (const NamedTensor& named : tensors) {
    NamedTensor& copy = copies.emplace_back(named);
    copy.tensor = at::empty(named.tensor.sizes(), named.tensor.options().device(at::kCPU));
    copy.tensor.copy_(named.tensor);
  }
  return copies;
}

std::vector<TensorView> views_of(const std::vector<NamedTensor>& tensors) {
  std::vector<TensorView> views;
  for (const NamedTensor& named : tensors) {
    views.push_back({named.name, dtype_of(named.tensor.scalar_type()), named.tensor.sizes().vec(),
                     memory_of(named.tensor)});
  }
  return views;
}

TensorForm form_of(const NamedTensor& named) {
  return {named.name, named.tensor.scalar_type(), named.tensor.sizes().vec()};
}

std::vector<NamedTensor> read_tensors(const std::filesystem::path& path,
                                      const std::vector<TensorForm>& forms) {
  const SafetensorsReader reader(path);
  const std::vector<std::vector<std::int64_t>> shapes = shapes_in(reader, path, forms);
  std::vector<NamedTensor> tensors;
  for (std::size_t k = 0; k < forms.size(); ++k) {
    const at::Tensor read = at::empty(shapes[k], forms[k].type);
    reader.read(forms[k].name, dtype_of(forms[k].type), shapes[k], memory_of(read));
    tensors.push_back({forms[k].name, read});
  }
  return tensors;
}

}  // namespace wd
