# wd_cuda.cmake: enables the CUDA language; the only place that names the GPU architectures.
if(NOT WD_CUDA)
  return()
endif()

set(CMAKE_CUDA_ARCHITECTURES 90 CACHE STRING "GPU architectures, for example 80;86;89;90 for a release")
set(CMAKE_CUDA_RUNTIME_LIBRARY Shared)  # one runtime for torch, the library and users' environments
set(CMAKE_CUDA_STANDARD 20)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
if(NOT DEFINED CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
  find_program(CMAKE_CUDA_COMPILER nvcc HINTS /usr/local/cuda/bin)
endif()
enable_language(CUDA)
find_package(CUDAToolkit REQUIRED)
