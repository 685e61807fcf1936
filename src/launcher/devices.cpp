// devices.cpp: NVML, opened at run time: a machine without a driver has no such library, and needs none.
#include "src/launcher/devices.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <string_view>

#include "src/whole_number.h"
#include "wd/error.h"
#include "wd/supervise.h"

namespace wd::launcher {
namespace {

constexpr const char* kLibrary = "libnvidia-ml.so.1";
constexpr const char* kVariable = "CUDA_VISIBLE_DEVICES";

// The part of nvml.h that is needed. 0 is success.
using NvmlDevice = void*;
struct Nvml {
  int (*init)();
  int (*shutdown)();
  const char* (*error)(int);
  int (*count)(unsigned*);
  int (*by_index)(unsigned, NvmlDevice*);
  int (*by_uuid)(const char*, NvmlDevice*);
  int (*uuid)(NvmlDevice, char*, unsigned);
};

template <typename Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  return function != nullptr;
}

bool find_all(void* library, Nvml& nvml) {
  return find(library, "nvmlInit_v2", nvml.init) && find(library, "nvmlShutdown", nvml.shutdown) &&
         find(library, "nvmlErrorString", nvml.error) && find(library, "nvmlDeviceGetCount_v2", nvml.count) &&
         find(library, "nvmlDeviceGetHandleByIndex_v2", nvml.by_index) &&
         find(library, "nvmlDeviceGetHandleByUUID", nvml.by_uuid) &&
         find(library, "nvmlDeviceGetUUID", nvml.uuid);
}

// The UUIDs of all GPUs, in the order of their places on the bus.
std::vector<std::string> list_gpus(const Nvml& nvml) {
  unsigned count = 0;
  if (nvml.count(&count) != 0) return {};
  std::vector<std::string> uuids;
  for (unsigned k = 0; k < count; ++k) {
    NvmlDevice device = nullptr;
    std::array<char, 96> uuid{};
    if (nvml.by_index(k, &device) != 0 || nvml.uuid(device, uuid.data(), uuid.size()) != 0)
      continue;  // a GPU that has fallen off the bus
    uuids.emplace_back(uuid.data());
  }
  return uuids;
}

// One entry of the variable as it is passed on. Indices stay indices: which GPU one means depends on CUDA_DEVICE_ORDER, and is the
// same for a worker.
std::string checked(const std::string& entry, const std::vector<std::string>& uuids, const Nvml& nvml,
                    const std::string& all) {
  const auto index = whole_number<unsigned>(entry);
  if (index && *index < uuids.size()) return entry;
  NvmlDevice device = nullptr;
  if (entry.starts_with("MIG-") && nvml.by_uuid(entry.c_str(), &device) == 0) return entry;
  const auto is_meant = [&entry](const std::string& uuid) { return uuid.starts_with(entry); };
  if (entry.starts_with("GPU-") && std::ranges::count_if(uuids, is_meant) == 1)
    return *std::ranges::find_if(uuids, is_meant);
  throw UsageError(concat(kVariable, "=", all, ": this machine shows no GPU '", entry, "' (it shows ",
                          uuids.size(), uuids.empty() ? ")" : ": numbers from 0 on)"));
}

// CUDA's own rules, but what is not there is an error rather than the end of the list.
std::vector<std::string> chosen(const std::string& all, const std::vector<std::string>& uuids,
                                const Nvml& nvml) {
  std::vector<std::string> names;
  std::string_view rest = all;
  while (!rest.empty()) {
    std::string entry(rest.substr(0, rest.find(',')));
    rest.remove_prefix(std::min(entry.size() + 1, rest.size()));
    std::erase(entry, ' ');
    if (entry == "-1") break;
    names.push_back(checked(entry, uuids, nvml, all));
    if (std::ranges::count(names, names.back()) > 1)
      throw UsageError(concat(kVariable, "=", all, ": GPU ", entry, " is named twice"));
  }
  return names;
}

}  // namespace

Gpus find_gpus() {
  const char* const variable = std::getenv(kVariable);
  const std::string all = variable == nullptr ? "" : variable;
  if (variable != nullptr && (all.empty() || all == "-1"))
    return {.why_none = concat(kVariable, "='", all, "'")};
  const std::unique_ptr<void, int (*)(void*)> library(
      ::dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL),
      [](void* handle) { return handle == nullptr ? 0 : ::dlclose(handle); });
  Nvml nvml{};
  if (!library) return {.why_none = concat("no NVIDIA driver: ", kLibrary, " is not found")};
  if (!find_all(library.get(), nvml))
    return {.why_none = concat(kLibrary, " lacks functions that are needed")};
  if (const int error = nvml.init(); error != 0)
    return {.why_none = concat(kLibrary, ": ", nvml.error(error))};
  const std::unique_ptr<const Nvml, void (*)(const Nvml*)> initialised(
      &nvml, [](const Nvml* used) { used->shutdown(); });
  const std::vector<std::string> uuids = list_gpus(nvml);
  if (variable != nullptr)
    return {.names = chosen(all, uuids, nvml), .why_none = concat(kVariable, "=", all)};
  return {.names = uuids, .why_none = "the driver lists none"};
}

}  // namespace wd::launcher

namespace wd {

std::vector<std::string> visible_gpus() { return launcher::find_gpus().names; }

}  // namespace wd
