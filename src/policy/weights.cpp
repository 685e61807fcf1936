// weights.cpp: reads the parameters and statistics of a policy.
#include "wd/weights.h"

#include <algorithm>
#include <cmath>

#include "wd/config.h"
#include "wd/error.h"
#include "wd/safetensors.h"

namespace wd {

namespace {

void check_finite(const std::filesystem::path& path, const NamedTensor& named) {
  const at::Tensor numbers = named.tensor.to(at::kDouble);
  const auto* const values = numbers.const_data_ptr<double>();
  const auto* const end = values + numbers.numel();
  const auto* const found = std::find_if_not(values, end, [](double value) { return std::isfinite(value); });
  WD_CHECK(found == end, path.string(), ": tensor '", named.name, "'[", found - values, "] is ", *found,
           ": weights must be finite numbers");
}

// Of a policy whose values are normalized, which weights without such units leave out.
bool is_unit(const std::string& name) {
  return name.ends_with("value_norm") || name.ends_with("value_moments");
}

std::vector<NamedTensor> read_weights(const Policy& policy, const std::filesystem::path& path,
                                      const std::string& prefix) {
  std::vector<TensorForm> forms;
  for (const NamedTensor& named : policy.saved())
    forms.push_back(form_of({prefix + named.name, named.tensor}));
  for (;;) {
    try {
      return read_tensors(path, forms);
    } catch (const OtherTensors& other) {
      if (std::erase_if(forms, [](const TensorForm& form) { return is_unit(form.name); }) > 0) continue;
      throw UsageError(
          concat(other.what(), ": these are weights of another network than the one that is configured"));
    }
  }
}

// A file that says with which activation it was trained, as those of trainings and of wdtrain-convert do, is
// not for a network with another one: the shapes are the same, the actions are not.
void check_activation(const Policy& policy, const std::filesystem::path& path) {
  if (policy.model_settings().is_module()) return;  // computes what its type says
  const TensorMetadata metadata = SafetensorsReader(path).metadata();
  const auto trained = metadata.find("activation");
  const std::string own = kActivationNames[policy.model_settings().activation];
  if (trained == metadata.end() || trained->second == own) return;
  throw UsageError(concat(path.string(), ": was trained with activation ", trained->second,
                          ", and the network has ", own, ": set policy.", policy.name(),
                          ".model.activation to ", trained->second));
}

}  // namespace

void load_weights(Policy& policy, const std::filesystem::path& path, const std::string& prefix) {
  if (!std::filesystem::exists(path)) throw UsageError(path.string() + ": there is no such file");
  const std::vector<NamedTensor> read = read_weights(policy, path, prefix);
  check_activation(policy, path);
  for (const NamedTensor& named : read) check_finite(path, named);
  const bool has_units = std::ranges::any_of(read, is_unit, &NamedTensor::name);
  if (policy.value_norm().defined() && !has_units) policy.normalize_values();  // values are what they compute
  for (NamedTensor& own : policy.saved()) {
    const auto found = std::ranges::find(read, prefix + own.name, &NamedTensor::name);
    if (found != read.end()) own.tensor.copy_(found->tensor);
  }
  policy.refresh_shadow();
}

}  // namespace wd
