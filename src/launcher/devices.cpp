// devices.cpp: uses NVML, which is loaded at run time because a machine without a driver does not have it.
#include "src/launcher/devices.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>

#include "src/base/whole_number.h"
#include "wd/detail/supervise.h"
#include "wd/error.h"

namespace wd::launcher {
namespace {

constexpr const char* kLibrary = "libnvidia-ml.so.1";
constexpr const char* kVariable = "CUDA_VISIBLE_DEVICES";

// The required part of nvml.h. A return value of 0 is success.
using NvmlDevice = void*;
struct NvmlMemory {
  unsigned long long total, free, used;  // [bytes]
};
struct Nvml {
  int (*init)();
  int (*shutdown)();
  const char* (*error)(int);
  int (*count)(unsigned*);
  int (*by_index)(unsigned, NvmlDevice*);
  int (*by_uuid)(const char*, NvmlDevice*);
  int (*uuid)(NvmlDevice, char*, unsigned);
  int (*name)(NvmlDevice, char*, unsigned);
  int (*memory)(NvmlDevice, NvmlMemory*);
  int (*driver)(char*, unsigned);
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
         find(library, "nvmlDeviceGetUUID", nvml.uuid) && find(library, "nvmlDeviceGetName", nvml.name) &&
         find(library, "nvmlDeviceGetMemoryInfo", nvml.memory) &&
         find(library, "nvmlSystemGetDriverVersion", nvml.driver);
}

// Holds the library while it is in use, or the reason why it cannot be used.
class Driver {
 public:
  Driver() : library_(::dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL)) {
    if (library_ == nullptr) {
      why_not_ = concat("no NVIDIA driver: ", kLibrary, " is not found");
    } else if (!find_all(library_, nvml_)) {
      why_not_ = concat(kLibrary, " lacks functions that are needed");
    } else if (const int error = nvml_.init(); error != 0) {
      why_not_ = concat(kLibrary, ": ", nvml_.error(error));
    }
  }
  ~Driver() {
    if (why_not_.empty()) nvml_.shutdown();
    if (library_ != nullptr) ::dlclose(library_);
  }
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  const Nvml& nvml() const { return nvml_; }
  const std::string& why_not() const { return why_not_; }  // empty if there is no error

 private:
  void* library_;
  Nvml nvml_{};
  std::string why_not_;
};

// Returns the UUIDs of all GPUs in the order of their bus IDs.
std::vector<std::string> list_gpus(const Nvml& nvml) {
  unsigned count = 0;
  if (nvml.count(&count) != 0) return {};
  std::vector<std::string> uuids;
  for (unsigned k = 0; k < count; ++k) {
    NvmlDevice device = nullptr;
    std::array<char, 96> uuid{};
    if (nvml.by_index(k, &device) != 0 || nvml.uuid(device, uuid.data(), uuid.size()) != 0)
      continue;  // this GPU has fallen off the bus
    uuids.emplace_back(uuid.data());
  }
  return uuids;
}

// Checks one entry of the variable and returns it as it is passed on. Indices remain indices: which GPU an
// index means depends on CUDA_DEVICE_ORDER, and a worker interprets it in the same way.
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

// Follows CUDA's rules, except that a GPU that does not exist is an error and does not end the list.
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
  const Driver driver;
  if (!driver.why_not().empty()) return {.why_none = driver.why_not()};
  const Nvml& nvml = driver.nvml();
  const std::vector<std::string> uuids = list_gpus(nvml);
  if (variable != nullptr)
    return {.names = chosen(all, uuids, nvml), .why_none = concat(kVariable, "=", all)};
  return {.names = uuids, .why_none = "the driver lists none"};
}

// An index is interpreted in the driver's order, which is by bus ID. CUDA may use another order if the GPUs
// differ.
GpuFacts gpu_facts(const std::string& name) {
  const Driver driver;
  WD_CHECK(driver.why_not().empty(), driver.why_not());
  const Nvml& nvml = driver.nvml();
  NvmlDevice device = nullptr;
  const auto index = whole_number<unsigned>(name);
  const auto ask = [&](int error, const char* what) {
    WD_CHECK(error == 0, "GPU ", name, ": the driver does not tell its ", what, ": ", nvml.error(error));
  };
  ask(index ? nvml.by_index(*index, &device) : nvml.by_uuid(name.c_str(), &device), "place");
  std::array<char, 96> uuid{}, product{}, version{};
  NvmlMemory memory{};
  ask(nvml.uuid(device, uuid.data(), uuid.size()), "UUID");
  ask(nvml.name(device, product.data(), product.size()), "name");
  ask(nvml.memory(device, &memory), "memory");
  ask(nvml.driver(version.data(), version.size()), "driver's version");
  return {uuid.data(), product.data(), version.data(), memory.total, memory.used};
}

}  // namespace wd::launcher

namespace wd {

std::vector<std::string> visible_gpus() { return launcher::find_gpus().names; }

}  // namespace wd
