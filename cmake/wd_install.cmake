# wd_install.cmake: installs headers, library, program, configurations and the package for find_package(wd).
include(CMakePackageConfigHelpers)

# Library paths, the same in the build folder and in an installation. With two different paths, CMake would pad
# the shorter one with empty elements, each of which means the working folder to the loader. torch is found where
# it was at build time; its libraries find their dependencies in their own folder. torch's CUDA libraries precede
# those of a toolkit, which may have another version or lack some.
function(wd_run_path target)
  set_target_properties(${target} PROPERTIES BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "${ARGN}")
endfunction()
set(torch_folders ${WD_TORCH_DIR}/lib ${WD_CUDART_DIR})
wd_run_path(wd $ORIGIN ${torch_folders})
wd_run_path(wdtrain $ORIGIN $ORIGIN/../${CMAKE_INSTALL_LIBDIR})

install(TARGETS wd EXPORT wdTargets FILE_SET HEADERS FILE_SET device_headers)
install(TARGETS wdtrain wd_bell)
if(WD_CUDA)
  wd_run_path(wd_cuda $ORIGIN ${torch_folders})
  install(TARGETS wd_cuda)
endif()
if(TARGET wd_emulator AND NOT WD_SANITIZE)
  install(TARGETS wd_emulator EXPORT wdTargets)
  foreach(environment IN LISTS environments)
    cmake_path(GET environment STEM name)
    install(TARGETS wd_emulated_${name} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/wd_emulated)
  endforeach()
endif()

# The manual page and the completion scripts, which the program writes, for shells that look for them there.
set(share ${PROJECT_BINARY_DIR}/share)
install(CODE "
  file(MAKE_DIRECTORY \"${share}\")
  foreach(file man/wdtrain.1 completion.bash/wdtrain completion.zsh/_wdtrain completion.fish/wdtrain.fish)
    cmake_path(GET file PARENT_PATH command)
    cmake_path(GET file FILENAME name)
    string(REPLACE . \";\" command \${command})
    execute_process(COMMAND \"$<TARGET_FILE:wdtrain>\" \${command} OUTPUT_FILE \"${share}/\${name}\" COMMAND_ERROR_IS_FATAL ANY)
  endforeach()")
install(FILES ${share}/wdtrain.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES ${share}/wdtrain DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(FILES ${share}/_wdtrain DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
install(FILES ${share}/wdtrain.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
install(DIRECTORY configs DESTINATION ${CMAKE_INSTALL_DATADIR}/wd)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/wd)
install(EXPORT wdTargets NAMESPACE wd:: DESTINATION ${package_dir})
configure_package_config_file(cmake/wdConfig.cmake.in wdConfig.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(wdConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/wdConfig.cmake ${PROJECT_BINARY_DIR}/wdConfigVersion.cmake
  cmake/wd_add_environment.cmake cmake/wd_add_kernels.cmake cmake/wd_flags.cmake DESTINATION ${package_dir})
