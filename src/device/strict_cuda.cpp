// strict_cuda.cpp: observes calls of the CUDA runtime through CUPTI, whichever library makes them.
#include <cuda_runtime_api.h>
#include <cupti.h>
#include <dlfcn.h>

#include <array>
#include <string_view>

#include "src/device/gpu_cuda.h"
#include "src/device/strict.h"
#include "wd/error.h"

namespace wd::strict {

namespace {

// Prefixes of names, so that variants (_v2, _ptsz, 2DAsync, FromPoolAsync) match too.
constexpr std::array<std::string_view, 10> kForbidden = {"cudaDeviceSynchronize",
                                                         "cudaStreamSynchronize",
                                                         "cudaEventSynchronize",
                                                         "cudaMalloc",
                                                         "cudaFree",
                                                         "cudaHostAlloc",
                                                         "cudaHostRegister",
                                                         "cudaMemGetInfo",
                                                         "cudaMemcpyTo",
                                                         "cudaMemcpyFrom"};

// A function of CUPTI as torch has loaded it.
template <typename Function>
Function* cupti(const char* name) {
  void* const library = ::dlopen("libcupti.so.13", RTLD_NOW | RTLD_NOLOAD);
  void* const function = library != nullptr ? ::dlsym(library, name) : nullptr;
  if (function == nullptr) throw UsageError(concat("strict_device: this torch brings no CUPTI with ", name));
  return reinterpret_cast<Function*>(function);
}

void check(CUptiResult result, const char* call) {
  if (result == CUPTI_SUCCESS) return;
  const char* text = nullptr;
  cupti<decltype(cuptiGetResultString)>("cuptiGetResultString")(result, &text);
  throw UsageError(concat("strict_device: ", call, ": ", text != nullptr ? text : "unknown error",
                          " (is a profiler running already?)"));
}

const char* name_of(cudaMemcpyKind kind) {
  switch (kind) {
    case cudaMemcpyHostToDevice:
      return "from host to device";
    case cudaMemcpyDeviceToHost:
      return "from device to host";
    case cudaMemcpyHostToHost:
      return "from host to host";
    default:
      return "in a direction that the driver chooses";
  }
}

void look_at_copy(std::string_view name, cudaMemcpyKind kind, std::size_t bytes) {
  if (kind != cudaMemcpyDeviceToDevice) violation(concat(name, " of ", bytes, " bytes ", name_of(kind)));
}

void CUPTIAPI on_call(void*, CUpti_CallbackDomain, CUpti_CallbackId id, const CUpti_CallbackData* call) {
  if (!armed() || call->callbackSite != CUPTI_API_ENTER) return;
  const std::string_view name = call->functionName;
  if (id == CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyAsync_v3020) {
    const auto* const args = static_cast<const cudaMemcpyAsync_v3020_params*>(call->functionParams);
    return look_at_copy(name, args->kind, args->count);
  }
  if (id == CUPTI_RUNTIME_TRACE_CBID_cudaMemcpy_v3020) {
    const auto* const args = static_cast<const cudaMemcpy_v3020_params*>(call->functionParams);
    return look_at_copy(name, args->kind, args->count);
  }
  for (const std::string_view forbidden : kForbidden)
    if (name.starts_with(forbidden)) return violation(std::string(name));
}

class CudaCalls final : public CallWatch {
 public:
  CudaCalls() {
    check(cupti<decltype(cuptiSubscribe)>("cuptiSubscribe")(
              &subscriber_, reinterpret_cast<CUpti_CallbackFunc>(on_call), nullptr),
          "cuptiSubscribe");
    check(
        cupti<decltype(cuptiEnableDomain)>("cuptiEnableDomain")(1, subscriber_, CUPTI_CB_DOMAIN_RUNTIME_API),
        "cuptiEnableDomain");
  }
  ~CudaCalls() override { cupti<decltype(cuptiUnsubscribe)>("cuptiUnsubscribe")(subscriber_); }

 private:
  CUpti_SubscriberHandle subscriber_ = nullptr;
};

}  // namespace

}  // namespace wd::strict

namespace wd {

std::unique_ptr<CallWatch> watch_cuda_calls() { return std::make_unique<strict::CudaCalls>(); }

}  // namespace wd
