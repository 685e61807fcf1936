// weights.cpp: reads the parameters and statistics of a policy.
#include "wd/weights.h"

#include <algorithm>
#include <cmath>

#include "wd/error.h"

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

}  // namespace

void load_weights(Policy& policy, const std::filesystem::path& path) {
  if (!std::filesystem::exists(path)) throw UsageError(path.string() + ": there is no such file");
  const std::vector<NamedTensor> own = policy.saved();
  std::vector<TensorForm> forms;
  for (const NamedTensor& named : own) forms.push_back(form_of(named));
  std::vector<NamedTensor> read;
  try {
    read = read_tensors(path, forms);
  } catch (const OtherTensors& other) {
    throw UsageError(
        concat(other.what(), ": these are weights of another network than the one that is configured",
               policy.value_norm().defined() ? ", whose values are normalized (normalize_value)" : ""));
  }
  for (const NamedTensor& named : read) check_finite(path, named);
  for (std::size_t k = 0; k < own.size(); ++k) own[k].tensor.copy_(read[k].tensor);
  policy.refresh_shadow();
}

}  // namespace wd
