// linear_cuda.cpp: cuBLASLt reads matrices in column-major order, so every row-major product here is computed
// as the product of the transposes.
#include <ATen/ATen.h>
#include <cublasLt.h>

#include <array>
#include <map>

#include "src/device/device.h"
#include "src/device/tensor_device.h"
#include "src/nets/linear.h"
#include "wd/error.h"

namespace wd {

namespace {

constexpr std::int64_t kWorkspaceBytes = std::int64_t{32} << 20;  // recommended by cuBLAS for Hopper

void check(cublasStatus_t status, const char* call) {
  WD_CHECK(status == CUBLAS_STATUS_SUCCESS, call, ": ", cublasLtGetStatusName(status), ": ",
           cublasLtGetStatusString(status));
}

cudaDataType type_of(const at::Tensor& tensor) {
  if (tensor.scalar_type() == at::kFloat) return CUDA_R_32F;
  WD_CHECK(tensor.scalar_type() == at::kBFloat16, "a layer of ", tensor.scalar_type());
  return CUDA_R_16BF;
}

// Returns the largest power of two up to 16 that divides the address: no instruction moves more than 16 bytes
// at once.
std::int64_t alignment_of(const void* data) {
  const auto address = reinterpret_cast<std::uintptr_t>(data);
  std::int64_t bytes = 16;
  while (address % static_cast<std::uintptr_t>(bytes) != 0) bytes /= 2;
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
  const at::Tensor* bias = nullptr;  // the epilogue adds it, or writes to it
};

using Key = std::array<std::int64_t, 16>;

Key key_of(const Product& p) {
  return {p.m,
          p.n,
          p.k,
          p.a.tensor.stride(0),
          p.b.tensor.stride(0),
          p.d.stride(0),
          type_of(p.a.tensor),
          type_of(p.b.tensor),
          type_of(p.d),
          p.a.transposed,
          p.b.transposed,
          p.add,
          p.epilogue,
          alignment_of(p.a.tensor.const_data_ptr()),
          alignment_of(p.b.tensor.const_data_ptr()),
          alignment_of(p.d.const_data_ptr())};
}

// The descriptors and the algorithm of one product.
struct Plan {
  cublasLtMatmulDesc_t product = nullptr;
  cublasLtMatrixLayout_t a = nullptr, b = nullptr, d = nullptr;
  cublasLtMatmulAlgo_t algorithm{};
  cublasStatus_t found = CUBLAS_STATUS_NOT_SUPPORTED;  // success: there is an algorithm

  Plan() = default;
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;
  ~Plan() {
    for (const cublasLtMatrixLayout_t layout : {a, b, d})
      if (layout != nullptr) cublasLtMatrixLayoutDestroy(layout);
    if (product != nullptr) cublasLtMatmulDescDestroy(product);
  }

  template <typename T>
  void set(cublasLtMatmulDescAttributes_t attribute, const T& value) {
    check(cublasLtMatmulDescSetAttribute(product, attribute, &value, sizeof(value)),
          "cublasLtMatmulDescSetAttribute");
  }
};

void lay_out(cublasLtMatrixLayout_t& layout, const at::Tensor& tensor, std::int64_t rows,
             std::int64_t columns) {
  check(cublasLtMatrixLayoutCreate(&layout, type_of(tensor), static_cast<std::uint64_t>(rows),
                                   static_cast<std::uint64_t>(columns), tensor.stride(0)),
        "cublasLtMatrixLayoutCreate");
}

// The criteria of the search for an algorithm.
class Preference {
 public:
  Preference() { check(cublasLtMatmulPreferenceCreate(&handle_), "cublasLtMatmulPreferenceCreate"); }
  ~Preference() { cublasLtMatmulPreferenceDestroy(handle_); }
  Preference(const Preference&) = delete;
  Preference& operator=(const Preference&) = delete;

  template <typename T>
  void set(cublasLtMatmulPreferenceAttributes_t attribute, T value) {
    check(cublasLtMatmulPreferenceSetAttribute(handle_, attribute, &value, sizeof(value)),
          "cublasLtMatmulPreferenceSetAttribute");
  }
  cublasLtMatmulPreference_t get() const { return handle_; }

 private:
  cublasLtMatmulPreference_t handle_ = nullptr;
};

}  // namespace

struct CudaLinear::Impl {
  cublasLtHandle_t handle = nullptr;
  cublasComputeType_t of_floats = CUBLAS_COMPUTE_32F;
  at::Tensor workspace;  // [kWorkspaceBytes]
  at::Tensor bias_sum;   // [widest layer so far] float32
  at::Tensor ones[2];    // [1, max rows so far] float32, bfloat16: for column sums without an epilogue
  std::map<Key, Plan> plans;

  ~Impl() {
    plans.clear();
    if (handle != nullptr) cublasLtDestroy(handle);
  }

  void make(const Product& product, Plan& plan) const;
  cublasStatus_t try_to_run(const Product& product);
  void run(const Product& product);
  const at::Tensor& row_of_ones(const at::Tensor& like, std::int64_t n);
};

void CudaLinear::Impl::make(const Product& p, Plan& plan) const {
  const bool floats = type_of(p.a.tensor) == CUDA_R_32F;
  check(cublasLtMatmulDescCreate(&plan.product, floats ? of_floats : CUBLAS_COMPUTE_32F, CUDA_R_32F),
        "cublasLtMatmulDescCreate");
  const auto operation = [](const Operand& x) { return x.transposed ? CUBLAS_OP_T : CUBLAS_OP_N; };
  plan.set(CUBLASLT_MATMUL_DESC_TRANSA, operation(p.a));
  plan.set(CUBLASLT_MATMUL_DESC_TRANSB, operation(p.b));
  plan.set(CUBLASLT_MATMUL_DESC_EPILOGUE, p.epilogue);
  if (p.bias != nullptr) {
    plan.set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, static_cast<std::int32_t>(type_of(*p.bias)));
    plan.set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, p.bias->const_data_ptr());
  }
  lay_out(plan.a, p.a.tensor, p.a.transposed ? p.k : p.m, p.a.transposed ? p.m : p.k);
  lay_out(plan.b, p.b.tensor, p.b.transposed ? p.n : p.k, p.b.transposed ? p.k : p.n);
  lay_out(plan.d, p.d, p.m, p.n);

  Preference preference;
  preference.set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, static_cast<std::uint64_t>(kWorkspaceBytes));
  const auto aligned = [](const at::Tensor& x) {
    return static_cast<std::uint32_t>(alignment_of(x.const_data_ptr()));
  };
  preference.set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, aligned(p.a.tensor));
  preference.set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, aligned(p.b.tensor));
  preference.set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, aligned(p.d));
  preference.set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, aligned(p.d));
  cublasLtMatmulHeuristicResult_t result{};
  int count = 0;
  plan.found =
      cublasLtMatmulAlgoGetHeuristic(handle, plan.product, plan.a, plan.b, plan.d, plan.d, preference.get(),
                                     /*requestedAlgoCount=*/1, &result, &count);
  if (plan.found == CUBLAS_STATUS_SUCCESS && count == 0) plan.found = CUBLAS_STATUS_NOT_SUPPORTED;
  plan.algorithm = result.algo;
}

// Does nothing if cuBLASLt has no algorithm: the status says why.
cublasStatus_t CudaLinear::Impl::try_to_run(const Product& p) {
  const auto [at, is_new] = plans.try_emplace(key_of(p));
  Plan& plan = at->second;
  if (is_new) make(p, plan);
  if (plan.found != CUBLAS_STATUS_SUCCESS) return plan.found;
  if (p.bias != nullptr) plan.set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, p.bias->const_data_ptr());
  const float alpha = 1.0f, beta = p.add ? 1.0f : 0.0f;
  void* const d = p.d.mutable_data_ptr();
  check(cublasLtMatmul(handle, plan.product, &alpha, p.a.tensor.const_data_ptr(), plan.a,
                       p.b.tensor.const_data_ptr(), plan.b, &beta, d, plan.d, d, plan.d, &plan.algorithm,
                       workspace.mutable_data_ptr(), kWorkspaceBytes,
                       static_cast<cudaStream_t>(current_queue(device_holding(p.d)).stream)),
        "cublasLtMatmul");
  return CUBLAS_STATUS_SUCCESS;
}

void CudaLinear::Impl::run(const Product& p) {
  const cublasStatus_t status = try_to_run(p);
  WD_CHECK(status == CUBLAS_STATUS_SUCCESS, "cuBLASLt has no product of ", p.a.tensor.scalar_type(),
           p.a.tensor.sizes(), " and ", p.b.tensor.sizes(), ": ", cublasLtGetStatusName(status));
}

// Returns at least n ones, as one row, with the dtype of `like`.
const at::Tensor& CudaLinear::Impl::row_of_ones(const at::Tensor& like, std::int64_t n) {
  at::Tensor& row = ones[like.scalar_type() == at::kFloat ? 0 : 1];
  if (!row.defined() || row.size(1) < n) row = at::ones({1, n}, like.options());
  return row;
}

CudaLinear::CudaLinear(at::Device device, bool tf32) : impl_(std::make_unique<Impl>()) {
  check(cublasLtCreate(&impl_->handle), "cublasLtCreate");
  if (tf32) impl_->of_floats = CUBLAS_COMPUTE_32F_FAST_TF32;
  impl_->workspace = at::empty({kWorkspaceBytes}, at::TensorOptions().dtype(at::kByte).device(device));
}
CudaLinear::~CudaLinear() = default;

void CudaLinear::forward(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, at::Tensor& y,
                         bool relu) {
  impl_->run({.a = {weight, true},
              .b = {x},
              .d = y,
              .m = weight.size(0),
              .n = x.size(0),
              .k = x.size(1),
              .epilogue = relu ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_BIAS,
              .bias = &bias});
}

void CudaLinear::backward_input(const at::Tensor& grad, const at::Tensor& weight, at::Tensor& below) {
  impl_->run(
      {.a = {weight}, .b = {grad}, .d = below, .m = weight.size(1), .n = grad.size(0), .k = weight.size(0)});
}

// The epilogue overwrites the column sums, it does not add to them. If these dtypes have no such epilogue, a
// product with ones computes the sums.
void CudaLinear::backward_weight(const at::Tensor& grad, const at::Tensor& x, at::Tensor& weight_grad,
                                 at::Tensor& bias_grad) {
  Impl& self = *impl_;
  const std::int64_t out = grad.size(1), n = grad.size(0);
  if (!self.bias_sum.defined() || self.bias_sum.size(0) < out)
    self.bias_sum = at::empty({out}, bias_grad.options());
  Product product{
      .a = {x}, .b = {grad, true}, .d = weight_grad, .m = x.size(1), .n = out, .k = n, .add = true};
  product.epilogue = CUBLASLT_EPILOGUE_BGRADB;
  product.bias = &self.bias_sum;
  if (self.try_to_run(product) == CUBLAS_STATUS_SUCCESS) {
    bias_grad.add_(self.bias_sum.narrow(0, 0, out));
    return;
  }
  product.epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  product.bias = nullptr;
  self.run(product);
  at::Tensor sums = bias_grad.view({1, out});
  self.run({.a = {grad}, .b = {self.row_of_ones(grad, n)}, .d = sums, .m = out, .n = 1, .k = n, .add = true});
}

}  // namespace wd
