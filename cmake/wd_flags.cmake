# wd_flags.cmake: compiler flags: those on which results depend, for the library and every environment, and our warnings.

# CPU and GPU give the same bits only without contraction. The two -fno flags let loops with sqrt and floor be vectorised.
# A project that names no build type gets -O3 for its environments all the same.
set(WD_FLAGS_CXX -ffp-contract=off -fno-math-errno -fno-trapping-math $<$<CONFIG:>:-O3>)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
  list(APPEND WD_FLAGS_CXX -march=x86-64-v3)
endif()
# A function without WD_FN that a kernel calls would be left out of it, with a warning.
set(WD_FLAGS_CUDA -fmad=false --expt-relaxed-constexpr -Xcompiler=-ffp-contract=off -Xptxas=-warn-spills
  -Werror=cross-execution-space-call)

# A designated initialiser leaves members at their defaults on purpose. GCC 12 sees overlaps and overflows inside
# std::string (its bug 105651) that are not there.
set(WD_WARNINGS -Wall -Wextra -Werror -Wno-missing-field-initializers)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  list(APPEND WD_WARNINGS -Wno-restrict -Wno-stringop-overflow -Wno-array-bounds)
endif()

# Flags of a target of this project. Warnings are errors, spilled registers among them.
function(wd_own_flags target)
  target_compile_options(${target} PRIVATE
    "$<$<COMPILE_LANGUAGE:CXX>:${WD_FLAGS_CXX};-fno-semantic-interposition;${WD_WARNINGS}>"
    "$<$<COMPILE_LANGUAGE:CUDA>:${WD_FLAGS_CUDA};-Xcompiler=-Wall;-Werror=all-warnings>")
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR})
endfunction()
