# wd_add_kernels.cmake: wd_add_kernels() adds kernels of an algorithm of one's own to a program, for every device of
# this build.
#
#   wd_add_kernels(my_loss.cu [TARGET ${PROJECT_NAME}])
#
# The file uses WD_KERNEL (include/wd/kernel.h). It is compiled by the C++ compiler and, if there is a CUDA toolkit,
# by nvcc. The names of the files of one target differ.
include(${CMAKE_CURRENT_LIST_DIR}/wd_flags.cmake)

function(wd_add_kernels file)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "TARGET" "")
  if(ARG_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "wd_add_kernels(${file}): unknown argument '${ARG_UNPARSED_ARGUMENTS}'")
  endif()
  cmake_path(ABSOLUTE_PATH file BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
  if(NOT EXISTS ${file})
    message(FATAL_ERROR "wd_add_kernels: there is no file ${file}")
  endif()
  file(STRINGS ${file} kernels REGEX "^WD_(SMALL_)?KERNEL")
  if(NOT kernels)
    message(FATAL_ERROR "wd_add_kernels(${file}): it has no line that begins with WD_KERNEL or WD_SMALL_KERNEL")
  endif()
  if(NOT ARG_TARGET)
    set(ARG_TARGET ${PROJECT_NAME})
  endif()
  if(NOT TARGET ${ARG_TARGET})
    message(FATAL_ERROR "wd_add_kernels(${file}): no target '${ARG_TARGET}'; add it before, or name one with TARGET")
  endif()
  cmake_path(GET file STEM name)
  wd_kernel_unit(cpp "${WD_FLAGS_CXX}")
  if(WD_CUDA)
    wd_use_cuda(${ARG_TARGET})
    wd_kernel_unit(cu "${flags}")
  elseif(WD_EMULATED_CUDA)  # flags for a C++ compiler instead of nvcc (tests/emulation)
    wd_kernel_unit(emulated.cpp "${WD_EMULATED_CUDA}")
  endif()
endfunction()

# Adds one generated source, which includes the file.
function(wd_kernel_unit extension flags)
  set(unit ${CMAKE_CURRENT_BINARY_DIR}/kernels_${ARG_TARGET}/${name}.${extension})
  file(CONFIGURE OUTPUT ${unit} CONTENT "#include \"${file}\"\n")
  wd_add_unit(${ARG_TARGET} ${unit} "${flags}")
endfunction()
