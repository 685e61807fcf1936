// linear_cuda.cpp: cuBLASLt reads matrices in column-major order, so every row-major product here is computed
// as the product of the transposes.
#include <ATen/ATen.h>
#include <ATen/cuda/CUDAEvent.h>
#include <c10/cuda/CUDAGraphsC10Utils.h>
#include <cublasLt.h>

#include <array>
#include <map>

#include "src/device/device.h"
#include "src/device/tensor_device.h"
#include "src/nets/linear.h"
#include "src/nets/timed_algorithms.h"
#include "wd/error.h"

namespace wd {

namespace {

constexpr std::int64_t kWorkspaceBytes = std::int64_t{32} << 20;  // recommended by cuBLAS for Hopper
constexpr int kAlgorithms = 8;                                    // that are measured for a product
constexpr int kTimedRuns = 3;                                     // for each of them

void check(cublasStatus_t status, const char* call) {
  WD_CHECK(status == CUBLAS_STATUS_SUCCESS, call, ": ", cublasLtGetStatusName(status), ": ",
           cublasLtGetStatusString(status));
}

cudaDataType type_of(const at::Tensor& tensor) {
  if (tensor.scalar_type() == at::kFloat) return CUDA_R_32F;
  WD_CHECK(tensor.scalar_type() == at::kBFloat16, "a layer of ", tensor.scalar_type());
  return CUDA_R_16BF;
}

// How far the matrices of a tensor are apart; 0: it is one matrix.
std::int64_t step_of(const at::Tensor& tensor) { return tensor.dim() > 2 ? tensor.stride(0) : 0; }

// Returns the largest power of two up to 16 that divides the addresses of all matrices: no instruction moves
// more than 16 bytes at once.
std::int64_t alignment_of(const at::Tensor& tensor) {
  const auto address = reinterpret_cast<std::uintptr_t>(tensor.const_data_ptr());
  const auto step = static_cast<std::uintptr_t>(step_of(tensor)) * tensor.element_size();
  std::int64_t bytes = 16;
  while ((address | step) % static_cast<std::uintptr_t>(bytes) != 0) bytes /= 2;
  return bytes;
}

// A column-major matrix: the transpose of a row-major tensor, transposed back if `transposed`.
struct Operand {
  const at::Tensor& tensor;
  bool transposed = false;
};

// d [m, n] = a [m, k] b [k, n], column-major; plus d itself if `add`.
struct Product {
  Operand a, b;
  at::Tensor& d;
  std::int64_t m, n, k;
  bool add = false;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  const at::Tensor* bias = nullptr;  // the epilogue adds it

  std::int64_t matrices() const { return d.dim() > 2 ? d.size(0) : 1; }
  std::int64_t bias_step() const { return bias != nullptr && bias->dim() > 1 ? bias->stride(0) : 0; }
};

using Key = std::array<std::int64_t, 23>;

Key key_of(const Product& p, cublasComputeType_t compute) {
  return {p.d.get_device(),
          compute,
          p.m,
          p.n,
          p.k,
          p.a.tensor.stride(-2),
          p.b.tensor.stride(-2),
          p.d.stride(-2),
          type_of(p.a.tensor),
          type_of(p.b.tensor),
          type_of(p.d),
          p.a.transposed,
          p.b.transposed,
          p.add,
          p.epilogue,
          alignment_of(p.a.tensor),
          alignment_of(p.b.tensor),
          alignment_of(p.d),
          p.matrices(),
          step_of(p.a.tensor),
          step_of(p.b.tensor),
          step_of(p.d),
          p.bias_step()};
}

// What cuBLASLt makes, and what is freed with this object.
template <typename Handle, cublasStatus_t (*destroy)(Handle)>
struct Owned {
  Handle handle = nullptr;

  Owned() = default;
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  ~Owned() {
    if (handle != nullptr) destroy(handle);
  }
};
using Layout = Owned<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>;

// The descriptors and the algorithms of one product.
struct Plan {
  Owned<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy> product;
  Layout a, b, d;
  std::vector<cublasLtMatmulAlgo_t> algorithms;  // best first, in cuBLASLt's opinion
  Candidates candidates;                         // their order by measured time

  template <typename T>
  void set(cublasLtMatmulDescAttributes_t attribute, const T& value) {
    check(cublasLtMatmulDescSetAttribute(product.handle, attribute, &value, sizeof(value)),
          "cublasLtMatmulDescSetAttribute");
  }
};

// cuBLASLt finds out only when a product starts that it cannot compute it; then it has enqueued nothing.
bool is_refusal(cublasStatus_t status) {
  return status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_ARCH_MISMATCH ||
         status == CUBLAS_STATUS_INVALID_VALUE;
}

// The key without the number of the device, which may be another one in another process, but with what
// numbers the algorithms.
std::string text_of(const Key& key) {
  std::string text =
      concat("product ", gpu_name(static_cast<int>(key[0])), " cuBLASLt ", cublasLtGetVersion());
  for (std::size_t k = 1; k < key.size(); ++k) text += concat(k == 1 ? " " : ",", key[k]);
  return text;
}

void lay_out(Layout& layout, const at::Tensor& tensor, std::int64_t rows, std::int64_t columns,
             std::int64_t matrices) {
  check(cublasLtMatrixLayoutCreate(&layout.handle, type_of(tensor), static_cast<std::uint64_t>(rows),
                                   static_cast<std::uint64_t>(columns), tensor.stride(-2)),
        "cublasLtMatrixLayoutCreate");
  if (matrices == 1) return;
  const auto set = [&](cublasLtMatrixLayoutAttribute_t attribute, const auto& value) {
    check(cublasLtMatrixLayoutSetAttribute(layout.handle, attribute, &value, sizeof(value)),
          "cublasLtMatrixLayoutSetAttribute");
  };
  set(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, static_cast<std::int32_t>(matrices));
  set(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, step_of(tensor));
}

// The products of one stream.
struct Products {
  Owned<cublasLtHandle_t, cublasLtDestroy> cublas;
  cublasComputeType_t of_floats = CUBLAS_COMPUTE_32F;
  at::Tensor workspace;  // [kWorkspaceBytes]
  std::map<Key, Plan> plans;

  cublasComputeType_t compute(const Product& p) const {
    return type_of(p.a.tensor) == CUDA_R_32F ? of_floats : CUBLAS_COMPUTE_32F;
  }
  void make(const Product& product, Plan& plan);
  Plan& plan_of(const Product& product);
  std::optional<double> seconds_of(const Product& product, Plan& plan, std::size_t algorithm);
  bool run_with(const Product& product, Plan& plan, std::size_t algorithm);
  bool try_to_run(const Product& product);
  void run(const Product& product);
};

void Products::make(const Product& p, Plan& plan) {
  check(cublasLtMatmulDescCreate(&plan.product.handle, compute(p), CUDA_R_32F), "cublasLtMatmulDescCreate");
  const auto operation = [](const Operand& x) { return x.transposed ? CUBLAS_OP_T : CUBLAS_OP_N; };
  plan.set(CUBLASLT_MATMUL_DESC_TRANSA, operation(p.a));
  plan.set(CUBLASLT_MATMUL_DESC_TRANSB, operation(p.b));
  plan.set(CUBLASLT_MATMUL_DESC_EPILOGUE, p.epilogue);
  if (p.bias != nullptr) {
    plan.set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, static_cast<std::int32_t>(type_of(*p.bias)));
    plan.set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, p.bias->const_data_ptr());
    plan.set(CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE, p.bias_step());
  }
  const std::int64_t matrices = p.matrices();
  lay_out(plan.a, p.a.tensor, p.a.transposed ? p.k : p.m, p.a.transposed ? p.m : p.k, matrices);
  lay_out(plan.b, p.b.tensor, p.b.transposed ? p.n : p.k, p.b.transposed ? p.k : p.n, matrices);
  lay_out(plan.d, p.d, p.m, p.n, matrices);

  // The criteria of the search for an algorithm.
  Owned<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy> preference;
  check(cublasLtMatmulPreferenceCreate(&preference.handle), "cublasLtMatmulPreferenceCreate");
  const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, auto value) {
    check(cublasLtMatmulPreferenceSetAttribute(preference.handle, attribute, &value, sizeof(value)),
          "cublasLtMatmulPreferenceSetAttribute");
  };
  prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, static_cast<std::uint64_t>(kWorkspaceBytes));
  const auto aligned = [](const at::Tensor& x) { return static_cast<std::uint32_t>(alignment_of(x)); };
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, aligned(p.a.tensor));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, aligned(p.b.tensor));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, aligned(p.d));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, aligned(p.d));
  std::array<cublasLtMatmulHeuristicResult_t, kAlgorithms> results{};
  int count = 0;
  const cublasStatus_t found = cublasLtMatmulAlgoGetHeuristic(
      cublas.handle, plan.product.handle, plan.a.handle, plan.b.handle, plan.d.handle, plan.d.handle,
      preference.handle, kAlgorithms, results.data(), &count);
  if (!is_refusal(found)) check(found, "cublasLtMatmulAlgoGetHeuristic");
  for (std::size_t k = 0; k < static_cast<std::size_t>(count); ++k)
    if (results[k].state == CUBLAS_STATUS_SUCCESS) plan.algorithms.push_back(results[k].algo);
  plan.candidates = timed_algorithms::of(text_of(key_of(p, compute(p))), plan.algorithms.size(), [&] {
    return Candidates(plan.algorithms.size(), [&](std::size_t k) { return seconds_of(p, plan, k); });
  });
}

Plan& Products::plan_of(const Product& p) {
  const auto [at, is_new] = plans.try_emplace(key_of(p, compute(p)));
  if (is_new) make(p, at->second);
  return at->second;
}

// Returns false if cuBLASLt refuses; then nothing is enqueued.
bool Products::run_with(const Product& p, Plan& plan, std::size_t algorithm) {
  if (p.bias != nullptr) plan.set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, p.bias->const_data_ptr());
  const float alpha = 1.0f, beta = p.add ? 1.0f : 0.0f;
  void* const d = p.d.mutable_data_ptr();
  const cublasStatus_t status =
      cublasLtMatmul(cublas.handle, plan.product.handle, &alpha, p.a.tensor.const_data_ptr(), plan.a.handle,
                     p.b.tensor.const_data_ptr(), plan.b.handle, &beta, d, plan.d.handle, d, plan.d.handle,
                     &plan.algorithms[algorithm], workspace.mutable_data_ptr(), kWorkspaceBytes,
                     static_cast<cudaStream_t>(current_queue(device_holding(p.d)).stream));
  if (is_refusal(status)) return false;
  check(status, "cublasLtMatmul");
  return true;
}

// Returns 0 within a capture, where nothing can be measured, and if nothing is to be measured. A product that
// adds to its result is measured with another one, of zeros; the others write the same numbers each time. The
// device first finishes what other streams have to do, which would change the times.
std::optional<double> Products::seconds_of(const Product& p, Plan& plan, std::size_t algorithm) {
  if (!timed_algorithms::timing()) return 0.0;
  if (c10::cuda::currentStreamCaptureStatusMayInitCtx() != c10::cuda::CaptureStatus::None) return 0.0;
  at::Tensor elsewhere =
      p.add ? at::empty_strided(p.d.sizes(), p.d.strides(), p.d.options()).zero_() : at::Tensor(p.d);
  const Product trial{p.a, p.b, elsewhere, p.m, p.n, p.k, p.add, p.epilogue, p.bias};
  if (!run_with(trial, plan, algorithm)) return {};  // this call also loads the kernel
  C10_CUDA_CHECK(cudaDeviceSynchronize());
  at::cuda::CUDAEvent begin(cudaEventDefault), end(cudaEventDefault);
  begin.record();
  for (int k = 0; k < kTimedRuns; ++k) run_with(trial, plan, algorithm);
  end.record();
  end.synchronize();
  return begin.elapsed_time(end) * 1e-3 / kTimedRuns;
}

// Returns false, and does nothing, if cuBLASLt has no algorithm.
bool Products::try_to_run(const Product& p) {
  Plan& plan = plan_of(p);
  return plan.candidates.run([&](std::size_t algorithm) { return run_with(p, plan, algorithm); });
}

void Products::run(const Product& p) {
  WD_CHECK(try_to_run(p), "cuBLASLt has no product of ", p.a.tensor.scalar_type(), p.a.tensor.sizes(),
           " and ", p.b.tensor.sizes());
}

class CudaLinear final : public GpuLinear {
 public:
  CudaLinear(at::Device device, bool tf32) {
    check(cublasLtCreate(&products_.cublas.handle), "cublasLtCreate");
    if (tf32) products_.of_floats = CUBLAS_COMPUTE_32F_FAST_TF32;
    products_.workspace = at::empty({kWorkspaceBytes}, at::TensorOptions().dtype(at::kByte).device(device));
  }

  void forward(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, at::Tensor& y,
               bool relu) override;
  void multiply(const at::Tensor& x, const at::Tensor& weight, at::Tensor& y, bool add, bool relu) override;
  void backward_input(const at::Tensor& grad, const at::Tensor& weight, at::Tensor& below) override;
  void backward_weight(const at::Tensor& grad, const at::Tensor& x, at::Tensor& weight_grad,
                       bool add) override;

 private:
  Products products_;
};

// y = x weight^T.
static Product product_of(const at::Tensor& x, const at::Tensor& weight, at::Tensor& y) {
  return {.a = {weight, true}, .b = {x}, .d = y, .m = weight.size(-2), .n = x.size(-2), .k = x.size(-1)};
}

void CudaLinear::forward(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, at::Tensor& y,
                         bool relu) {
  Product product = product_of(x, weight, y);
  product.epilogue = relu ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_BIAS;
  product.bias = &bias;
  products_.run(product);
}

void CudaLinear::multiply(const at::Tensor& x, const at::Tensor& weight, at::Tensor& y, bool add, bool relu) {
  Product product = product_of(x, weight, y);
  product.add = add;
  if (relu) product.epilogue = CUBLASLT_EPILOGUE_RELU;
  products_.run(product);
}

void CudaLinear::backward_input(const at::Tensor& grad, const at::Tensor& weight, at::Tensor& below) {
  products_.run({.a = {weight},
                 .b = {grad},
                 .d = below,
                 .m = weight.size(-1),
                 .n = grad.size(-2),
                 .k = weight.size(-2)});
}

void CudaLinear::backward_weight(const at::Tensor& grad, const at::Tensor& x, at::Tensor& weight_grad,
                                 bool add) {
  products_.run({.a = {x},
                 .b = {grad, true},
                 .d = weight_grad,
                 .m = x.size(-1),
                 .n = grad.size(-1),
                 .k = grad.size(-2),
                 .add = add});
}

const bool registered = (make_gpu_linear =
                             [](at::Device device, bool tf32) -> std::unique_ptr<GpuLinear> {
                               return std::make_unique<CudaLinear>(device, tf32);
                             },
                         true);

}  // namespace

}  // namespace wd
