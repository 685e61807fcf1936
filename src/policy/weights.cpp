// weights.cpp: copies tensors between device memory and safetensors.
#include "wd/weights.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <cmath>

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

std::string name_of(at::ScalarType type) {
  for (const Dtype& dtype : kDtypes)
    if (dtype.type == type) return dtype.name;
  throw std::logic_error(concat("tensors of type ", at::toString(type), " are not written"));
}

// The file is intact, but it is not the one that is wanted.
class OtherTensors : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Returns the shape of each form's tensor in the file, from the header alone.
std::vector<std::vector<std::int64_t>> shapes_in(const SafetensorsReader& reader,
                                                 const std::filesystem::path& path,
                                                 const std::vector<TensorForm>& forms) {
  std::vector<std::vector<std::int64_t>> all;
  for (const TensorForm& form : forms) {
    const TensorInfo* const info = reader.find(form.name);
    if (info == nullptr) throw OtherTensors(concat(path.string(), ": has no tensor '", form.name, "'"));
    const bool list = form.shape == std::vector{kAnyLength};
    const std::string dtype = name_of(form.type);
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

void check_finite(const std::filesystem::path& path, const NamedTensor& named) {
  const auto* const values = named.tensor.const_data_ptr<float>();
  const auto* const end = values + named.tensor.numel();
  const auto* const found = std::find_if_not(values, end, [](float value) { return std::isfinite(value); });
  WD_CHECK(found == end, path.string(), ": tensor '", named.name, "'[", found - values, "] is ", *found,
           ": weights must be finite numbers");
}

}  // namespace

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
    views.push_back({named.name, name_of(named.tensor.scalar_type()), named.tensor.sizes().vec(),
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
    reader.read(forms[k].name, name_of(forms[k].type), shapes[k], memory_of(read));
    tensors.push_back({forms[k].name, read});
  }
  return tensors;
}

void load_weights(Policy& policy, const std::filesystem::path& path) {
  if (!std::filesystem::exists(path)) throw UsageError(path.string() + ": there is no such file");
  const std::vector<NamedTensor> parameters = policy.named_parameters();
  std::vector<TensorForm> forms;
  for (const NamedTensor& named : parameters) forms.push_back(form_of(named));
  std::vector<NamedTensor> read;
  try {
    read = read_tensors(path, forms);
  } catch (const OtherTensors& other) {
    throw UsageError(
        concat(other.what(), ": these are weights of another network than the one that is configured"));
  }
  for (const NamedTensor& named : read) check_finite(path, named);
  for (std::size_t k = 0; k < parameters.size(); ++k) parameters[k].tensor.copy_(read[k].tensor);
  policy.refresh_shadow();
}

}  // namespace wd
