# wd_dependencies.cmake: torch as the target wd_torch, its CUDA part as wd_torch_cuda, and all other
# dependencies of the library as wd_private.

# LibTorch comes from the Python wheel. Its CMake package requires a CUDA toolkit even for CPU programs and
# overrides our GPU architectures, so its headers and libraries are listed here.
set(WD_PYTHON_HINT ${PROJECT_SOURCE_DIR}/.venv/bin)
find_program(WD_PYTHON python3 HINTS ${WD_PYTHON_HINT} DOC "Python that has torch and runs the tests")
if(NOT WD_TORCH_DIR)
  execute_process(
    COMMAND ${WD_PYTHON} -c
      "import importlib.util as u; print(u.find_spec('torch').submodule_search_locations[0])"
    OUTPUT_VARIABLE torch_dir OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  set(WD_TORCH_DIR "${torch_dir}" CACHE PATH "Folder of the Python package torch" FORCE)
endif()
if(NOT EXISTS "${WD_TORCH_DIR}/include/ATen/ATen.h")
  message(FATAL_ERROR
    "No torch found by ${WD_PYTHON}: run ./wd setup, or set WD_TORCH_DIR to the package's folder")
endif()
message(STATUS "torch: ${WD_TORCH_DIR}")

add_library(wd_torch INTERFACE)
target_include_directories(wd_torch SYSTEM INTERFACE
  ${WD_TORCH_DIR}/include ${WD_TORCH_DIR}/include/torch/csrc/api/include)
target_link_libraries(wd_torch INTERFACE ${WD_TORCH_DIR}/lib/libtorch_cpu.so ${WD_TORCH_DIR}/lib/libc10.so)
target_compile_definitions(wd_torch INTERFACE USE_DISTRIBUTED USE_C10D_GLOO)
if(WD_CUDA)
  if(NOT EXISTS "${WD_TORCH_DIR}/lib/libtorch_cuda.so")
    message(FATAL_ERROR "${WD_TORCH_DIR} is a torch without CUDA: configure with --preset cpu")
  endif()
  cmake_path(GET WD_TORCH_DIR PARENT_PATH site_packages)
  set(WD_CUDART_DIR ${site_packages}/nvidia/cu13/lib)  # the runtime that comes with torch
  add_library(wd_torch_cuda INTERFACE)
  # Linked even if no symbol is referenced: loading the library registers its kernels.
  target_link_libraries(wd_torch_cuda INTERFACE wd_torch
    -Wl,--push-state,--no-as-needed ${WD_TORCH_DIR}/lib/libtorch_cuda.so
    ${WD_TORCH_DIR}/lib/libc10_cuda.so -Wl,--pop-state CUDA::cudart)
  target_include_directories(wd_torch_cuda SYSTEM INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:${site_packages}/nvidia/nccl/include>)
  target_compile_definitions(wd_torch_cuda INTERFACE USE_C10D_NCCL)
  # CUPTI comes with torch, which loads it: only its header is needed here.
  find_path(WD_CUPTI_INCLUDE cupti.h REQUIRED HINTS ${site_packages}/nvidia/cu13/include
    ${CUDAToolkit_LIBRARY_ROOT}/extras/CUPTI/include)
endif()

# torch's cuBLASLt, by name within a folder: CMake would reorder a full path among the other folders of CUDA.
set(WD_CUBLASLT "")
if(WD_CUDA)
  file(GLOB cublaslt RELATIVE ${WD_CUDART_DIR} ${WD_CUDART_DIR}/libcublasLt.so.*)
  set(WD_CUBLASLT -L${WD_CUDART_DIR} -l:${cublaslt})
endif()

find_package(Threads REQUIRED)
find_package(yaml-cpp REQUIRED)
find_path(WD_SPDLOG spdlog/spdlog.h REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_path(WD_XXHASH xxhash.h REQUIRED)
find_package(ZLIB REQUIRED)
add_library(wd_private INTERFACE)
target_link_libraries(wd_private INTERFACE
  Threads::Threads yaml-cpp nlohmann_json::nlohmann_json CLI11::CLI11 ZLIB::ZLIB ${CMAKE_DL_LIBS})
# xxhash is a header here, and so are spdlog and fmt (src/base/log.cpp): a wheel need not bring them.
target_compile_definitions(wd_private INTERFACE WD_VERSION="${PROJECT_VERSION}" XXH_INLINE_ALL)

# torch's wheel contains fmt headers of another version. Sources that log (src/**/log*.cpp) use the system's
# headers.
set(WD_FMT_DIR ${PROJECT_BINARY_DIR}/fmt_first)
find_path(fmt_include fmt/format.h REQUIRED NO_CACHE)
file(MAKE_DIRECTORY ${WD_FMT_DIR})
file(CREATE_LINK ${fmt_include}/fmt ${WD_FMT_DIR}/fmt SYMBOLIC)
