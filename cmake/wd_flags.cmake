# wd_flags.cmake: the compiler flags on which results depend, for the library and every environment, and our
# warnings.

# CPU and GPU give the same bits only without contraction. The two -fno flags allow loops with sqrt and floor
# to be vectorized. A project that sets no build type still gets -O3 for its environments.
set(WD_FLAGS_CXX -ffp-contract=off -fno-math-errno -fno-trapping-math $<$<CONFIG:>:-O3>)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
  list(APPEND WD_FLAGS_CXX -march=x86-64-v3)
  # Clones for interprocedural optimizations would not be inlined into the functions for wider vectors
  # (include/wd/detail/vectors.h).
  list(APPEND WD_FLAGS_CXX "$<$<CXX_COMPILER_ID:GNU>:-fno-ipa-sra;-fno-ipa-cp>")
endif()
# If a kernel calls a function without WD_FN, nvcc leaves out the call and only warns: make that an error.
set(WD_FLAGS_CUDA -fmad=false --expt-relaxed-constexpr -Xcompiler=-ffp-contract=off -Werror=cross-execution-space-call)
# No kernel spills registers on sm_90, for which they are tuned. On other architectures three of them do, which
# a build for those accepts.
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES OR CMAKE_CUDA_ARCHITECTURES MATCHES "^90(-real)?$")
  list(APPEND WD_FLAGS_CUDA -Xptxas=-warn-spills)
endif()

# A C++ compiler instead of nvcc, for the emulated GPU. Every access calls a function (src/emulator/hooks.cpp), and its
# line number is kept for messages. Like nvcc, it does not warn about signs and aliases.
set(WD_FLAGS_EMULATED -D__CUDACC__ -include cuda_runtime.h -fno-strict-aliasing -Wno-sign-compare
  -Wno-unknown-pragmas -g1)
if(NOT WD_SANITIZE)  # AddressSanitizer watches the accesses itself
  list(APPEND WD_FLAGS_EMULATED
    -fsanitize=thread $<$<CXX_COMPILER_ID:GNU>:--param=tsan-instrument-func-entry-exit=0>)
endif()

# Adds a source to a target, compiled with these flags and without precompiled headers.
function(wd_add_unit target unit flags)
  target_sources(${target} PRIVATE ${unit})
  set_source_files_properties(${unit} TARGET_DIRECTORY ${target}
    PROPERTIES COMPILE_OPTIONS "${flags}" SKIP_PRECOMPILE_HEADERS ON)
endfunction()

# Sets `flags` to those of nvcc for a source of the target, which then finds the CUDA runtime.
function(wd_use_cuda target)
  set_property(TARGET ${target} APPEND PROPERTY BUILD_RPATH ${WD_CUDART_DIR})
  set(flags ${WD_FLAGS_CUDA})
  if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
    list(APPEND flags -std=c++20)  # CMake 3.25 does not know that nvcc supports it
  endif()
  set(flags ${flags} PARENT_SCOPE)
endfunction()

# Designated initializers leave members at their defaults on purpose. GCC 12 reports overlaps and overflows
# inside std::string that do not exist (GCC bug 105651).
set(WD_WARNINGS -Wall -Wextra -Werror -Wno-missing-field-initializers)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  list(APPEND WD_WARNINGS -Wno-restrict -Wno-stringop-overflow -Wno-array-bounds)
endif()

# Adds the flags of this project to one of its targets. Warnings are errors, including register spills.
function(wd_own_flags target)
  target_compile_options(${target} PRIVATE
    "$<$<COMPILE_LANGUAGE:CXX>:${WD_FLAGS_CXX};-fno-semantic-interposition;${WD_WARNINGS}>"
    "$<$<COMPILE_LANGUAGE:CUDA>:${WD_FLAGS_CUDA};-Xcompiler=-Wall;-Werror=all-warnings>")
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR})
endfunction()
