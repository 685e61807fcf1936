// spilling_kernel.cu: a kernel that needs more registers than allowed; our flags must reject it.
constexpr int kValues = 96;

__global__ void __launch_bounds__(1024, 2) spill(float* x) {
  float v[kValues];
#pragma unroll
  for (int i = 0; i < kValues; ++i) v[i] = x[i * blockDim.x + threadIdx.x];
  __syncthreads();
#pragma unroll
  for (int i = 0; i < kValues; ++i) v[i] = v[i] * v[(i * 7 + 1) % kValues] + 1.0f;
  __syncthreads();
#pragma unroll
  for (int i = 0; i < kValues; ++i) x[i * blockDim.x + threadIdx.x] = v[i];
}
