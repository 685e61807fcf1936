# wd_add_environment.cmake: wd_add_environment() adds an environment to a program, for every device of this
# build.
#
#   wd_add_environment(chase.cu [NAME chase] [STRUCT Chase] [TARGET ${PROJECT_NAME}] [CONFIG chase.yaml])
#
# The file defines `struct Chase` (include/wd/env.h). It is compiled by the C++ compiler and, if there is a
# CUDA toolkit, by nvcc. CONFIG is the file of settings that `--env chase` starts from; the default is
# NAME.yaml next to the source, if that exists. The program lists its own environments before those of the
# library.
include(${CMAKE_CURRENT_LIST_DIR}/wd_flags.cmake)

function(wd_add_environment file)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "NAME;STRUCT;TARGET;CONFIG" "")
  if(ARG_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "wd_add_environment(${file}): unknown argument '${ARG_UNPARSED_ARGUMENTS}'")
  endif()
  cmake_path(ABSOLUTE_PATH file BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
  if(NOT EXISTS ${file})
    message(FATAL_ERROR "wd_add_environment: there is no file ${file}")
  endif()

  if(NOT ARG_NAME)
    cmake_path(GET file STEM ARG_NAME)
  endif()
  if(NOT ARG_NAME MATCHES "^[a-z][a-z0-9_]*$")
    message(FATAL_ERROR "wd_add_environment(${file}): name '${ARG_NAME}' must be snake_case")
  endif()
  if(NOT ARG_STRUCT)
    string(REPLACE "_" ";" words ${ARG_NAME})
    foreach(word IN LISTS words)
      string(SUBSTRING ${word} 0 1 first)
      string(SUBSTRING ${word} 1 -1 rest)
      string(TOUPPER ${first} first)
      string(APPEND ARG_STRUCT ${first}${rest})
    endforeach()
  endif()
  file(STRINGS ${file} declaration REGEX "struct +${ARG_STRUCT}([^A-Za-z0-9_]|$)")
  if(NOT declaration)
    message(FATAL_ERROR
      "wd_add_environment(${file}): it has no 'struct ${ARG_STRUCT}'; name its struct with STRUCT")
  endif()
  wd_check_device_functions(${file})

  if(NOT ARG_TARGET)
    set(ARG_TARGET ${PROJECT_NAME})
  endif()
  if(NOT TARGET ${ARG_TARGET})
    message(FATAL_ERROR
      "wd_add_environment(${file}): no target '${ARG_TARGET}'; add it before, or name one with TARGET")
  endif()
  # Nothing in a program refers to an environment by name, so a linker takes none out of an archive.
  get_target_property(type ${ARG_TARGET} TYPE)
  if(type STREQUAL STATIC_LIBRARY)
    message(FATAL_ERROR
      "wd_add_environment(${file}): '${ARG_TARGET}' is a static library, from which programs would not get "
      "the environment; name the program with TARGET, or make the library SHARED or OBJECT")
  endif()
  cmake_path(REPLACE_FILENAME file ${ARG_NAME}.yaml OUTPUT_VARIABLE beside)
  if(ARG_CONFIG)
    cmake_path(ABSOLUTE_PATH ARG_CONFIG BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
    if(NOT EXISTS ${ARG_CONFIG})
      message(FATAL_ERROR "wd_add_environment(${file}): there is no file ${ARG_CONFIG}")
    endif()
  elseif(EXISTS ${beside})
    set(ARG_CONFIG ${beside})
  endif()

  set(folder ${CMAKE_CURRENT_BINARY_DIR}/environments_${ARG_TARGET})
  set(cuda_function nullptr)
  if(NOT WD_CPU_SIDE_EXISTS)  # tests/emulation takes that of another target
    wd_environment_unit(env.cpp cpu_executor.h WD_DEFINE_CPU_ENVIRONMENT "${WD_FLAGS_CXX}")
  endif()
  if(WD_CUDA)
    set(cuda_function cuda_executor_${ARG_NAME})
    wd_use_cuda(${ARG_TARGET})
    wd_environment_unit(env.cu cuda_executor.cuh WD_DEFINE_CUDA_ENVIRONMENT "${flags}")
  elseif(WD_EMULATED_CUDA)  # flags for a C++ compiler instead of nvcc (tests/emulation)
    set(cuda_function cuda_executor_${ARG_NAME})
    wd_environment_unit(emulated.cpp cuda_executor.cuh WD_DEFINE_CUDA_ENVIRONMENT "${WD_EMULATED_CUDA}")
  endif()

  if(TARGET wd::emulator AND NOT WD_NO_EMULATED_MODULES AND NOT WD_SANITIZE)
    wd_emulated_module()
  endif()

  get_target_property(rows ${ARG_TARGET} WD_ENVIRONMENTS)
  if(NOT rows)
    target_sources(${ARG_TARGET} PRIVATE ${folder}/table.cpp)
    set_source_files_properties(${folder}/table.cpp TARGET_DIRECTORY ${ARG_TARGET}
      PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
    cmake_language(EVAL CODE
      "cmake_language(DEFER CALL wd_write_environment_table [[${ARG_TARGET}]] [[${folder}]])")
  endif()
  set_property(TARGET ${ARG_TARGET} APPEND PROPERTY WD_ENVIRONMENTS ${ARG_NAME})
  set_property(TARGET ${ARG_TARGET} APPEND_STRING PROPERTY WD_ENVIRONMENT_ROWS
    "      {\"${ARG_NAME}\", make_environment_${ARG_NAME}, ${cuda_function}, \"${ARG_CONFIG}\"},\n")
endfunction()

# Rejects an environment in which a function that the device calls lacks WD_FN. nvcc reports this too, but a
# C++ compiler alone cannot. A user-defined macro in capital letters may replace WD_FN.
function(wd_check_device_functions file)
  if(NOT WD_CUDA)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  endif()
  file(READ ${file} text)
  string(REGEX REPLACE "//[^\n]*|\\[\\[[^]]*\\]\\]" "" text "${text}")
  string(REPLACE ";" "}" text "${text}")
  set(blank "[a-z_ \t\n]*[ \t\n]")
  string(REGEX MATCHALL
    "[^a-z_ \t\n]?${blank}static${blank}(reset|derive|step|observe|in_game|streams)\\(" functions "${text}")
  foreach(function IN LISTS functions)
    if(NOT function MATCHES "^[A-Z0-9]|__device__")
      string(REGEX REPLACE ".*[ \t\n]([a-z_]+)\\($" "\\1" name "${function}")
      message(FATAL_ERROR
        "wd_add_environment(${file}): ${name}() lacks WD_FN, without which no GPU can call it: "
        "write it before 'static'")
    endif()
  endforeach()
endfunction()

# Adds a library with the environment on the emulated GPU, which `wdtrain check` loads. It is separate because it has
# the same names as the CPU and CUDA units, with other code behind them. It is written to the folder wd_emulated
# next to the target. Programs of one folder share it.
function(wd_emulated_module)
  get_target_property(place ${ARG_TARGET} RUNTIME_OUTPUT_DIRECTORY)
  if(NOT place)
    get_target_property(place ${ARG_TARGET} BINARY_DIR)
  endif()
  set(property "WD_EMULATED_MODULE ${place}/${ARG_NAME}")
  get_property(made GLOBAL PROPERTY "${property}")
  if(made)
    list(GET made 0 module)
    list(GET made 1 other)
    if(NOT other STREQUAL "${file} ${ARG_STRUCT}")
      message(FATAL_ERROR
        "wd_add_environment(${file}): a program of the same folder has another environment '${ARG_NAME}' "
        "(file and struct: ${other}), and both would be checked as one: give one of them another NAME")
    endif()
    add_dependencies(${ARG_TARGET} ${module})
    return()
  endif()
  set(module ${ARG_TARGET}_emulated_${ARG_NAME})
  set_property(GLOBAL PROPERTY "${property}" ${module} "${file} ${ARG_STRUCT}")
  set(unit ${folder}/${ARG_NAME}.module.cpp)
  file(CONFIGURE OUTPUT ${unit} @ONLY CONTENT [[
// @ARG_NAME@ on the emulated GPU: generated by wd_add_environment().
#include "@file@"
#include <wd/detail/cuda_executor.cuh>
#include <wd/emulator/module.h>
WD_DEFINE_EMULATED_ENVIRONMENT(@ARG_NAME@, @ARG_STRUCT@)
]])
  add_library(${module} MODULE ${unit})
  target_link_libraries(${module} PRIVATE wd::emulator)
  target_compile_options(${module} PRIVATE ${WD_FLAGS_CXX} ${WD_FLAGS_EMULATED} -O1)
  target_compile_definitions(${module} PRIVATE WD_NOTES_DRAWS)  # include/wd/random.h
  set_target_properties(${module} PROPERTIES PREFIX "" OUTPUT_NAME ${ARG_NAME} CXX_VISIBILITY_PRESET hidden
    LIBRARY_OUTPUT_DIRECTORY $<TARGET_FILE_DIR:${ARG_TARGET}>/wd_emulated)
  if(ARG_TARGET STREQUAL wd)
    add_dependencies(program ${module})
  else()
    add_dependencies(${ARG_TARGET} ${module})  # so that building the program alone includes it
  endif()
endfunction()

# Adds a generated source of an environment: it includes the environment's file and one executor's header, and invokes
# the macro that joins them. Half of the time of its compilation goes into headers, so WD_JOINED_ENVIRONMENTS of the
# library's own share one source.
function(wd_environment_unit extension header macro flags)
  set(name ${ARG_NAME})
  if(WD_JOINED_ENVIRONMENTS)
    get_property(before TARGET ${ARG_TARGET} PROPERTY WD_ENVIRONMENTS)
    list(LENGTH before count)
    math(EXPR name "${count} / ${WD_JOINED_ENVIRONMENTS}")
  endif()
  set(property ${macro}_${name})
  get_property(begun TARGET ${ARG_TARGET} PROPERTY ${property} SET)
  set_property(TARGET ${ARG_TARGET} APPEND_STRING PROPERTY ${property}
    "#include \"${file}\"\n#include <wd/detail/${header}>\n${macro}(${ARG_NAME}, ${ARG_STRUCT})\n")
  if(NOT begun)
    file(GENERATE OUTPUT ${folder}/${name}.${extension}
      CONTENT "// Generated by wd_add_environment().\n$<TARGET_PROPERTY:${ARG_TARGET},${property}>")
    wd_add_unit(${ARG_TARGET} ${folder}/${name}.${extension} "${flags}")
  endif()
endfunction()

# Runs at the end of the directory that called wd_add_environment(), when all rows are known.
function(wd_write_environment_table target folder)
  get_target_property(names ${target} WD_ENVIRONMENTS)
  get_target_property(rows ${target} WD_ENVIRONMENT_ROWS)
  set(table program_environments)
  if(target STREQUAL wd)
    set(table bundled_environments)
  endif()
  set(declarations "")
  foreach(name IN LISTS names)
    string(APPEND declarations "std::unique_ptr<Environment> make_environment_${name}();\n"
      "const CudaExecutor* cuda_executor_${name}();\n")
  endforeach()
  file(CONFIGURE OUTPUT ${folder}/table.cpp @ONLY CONTENT [[
// table.cpp: generated by wd_add_environment(): the environments of @target@.
#include <wd/environment.h>

namespace wd::detail {

@declarations@
std::vector<EnvironmentRow> @table@() {
  return {
@rows@  };
}

}  // namespace wd::detail
]])
endfunction()
