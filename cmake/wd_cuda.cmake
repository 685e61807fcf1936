# wd_cuda.cmake: enables the CUDA language; the only place that names the GPU architectures.
if(NOT WD_CUDA)
  return()
endif()

# A build is for the GPU of this machine. Without one it is for an H100 or H200, and as PTX for later ones; the
# preset `release` names all architectures.
if(NOT CMAKE_CUDA_ARCHITECTURES)
  execute_process(COMMAND nvidia-smi -L RESULT_VARIABLE no_gpu OUTPUT_QUIET ERROR_QUIET)
  set(architectures native)
  if(no_gpu)
    set(architectures 90)
  endif()
  set(CMAKE_CUDA_ARCHITECTURES ${architectures} CACHE STRING "GPU architectures, for example 80;86;89;90")
endif()
set(CMAKE_CUDA_RUNTIME_LIBRARY Shared)  # one runtime for torch, the library and users' environments
set(CMAKE_CUDA_STANDARD 20)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
if(NOT DEFINED CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
  find_program(CMAKE_CUDA_COMPILER nvcc HINTS /usr/local/cuda/bin)
endif()
enable_language(CUDA)
if(CMAKE_CUDA_ARCHITECTURES STREQUAL native)
  set(CMAKE_CUDA_ARCHITECTURES ${CMAKE_CUDA_ARCHITECTURES_NATIVE})  # by number, for messages
endif()
find_package(CUDAToolkit REQUIRED)
