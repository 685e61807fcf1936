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

# The manual page and the completion scripts, which the program writes, for shells that look for them there. Written in
# place: files in the build folder would be torn by two installs at once.
install(CODE "
  function(written_by_wdtrain path)
    cmake_path(ABSOLUTE_PATH path BASE_DIRECTORY \"\${CMAKE_INSTALL_PREFIX}\")
    set(path \"\$ENV{DESTDIR}\${path}\")
    cmake_path(GET path PARENT_PATH folder)
    file(MAKE_DIRECTORY \"\${folder}\")
    message(STATUS \"Installing: \${path}\")
    execute_process(COMMAND \"$<TARGET_FILE:wdtrain>\" \${ARGN} OUTPUT_FILE \"\${path}\" COMMAND_ERROR_IS_FATAL ANY)
    set(CMAKE_INSTALL_MANIFEST_FILES \${CMAKE_INSTALL_MANIFEST_FILES} \"\${path}\" PARENT_SCOPE)
  endfunction()
  written_by_wdtrain(\"${CMAKE_INSTALL_MANDIR}/man1/wdtrain.1\" man)
  written_by_wdtrain(\"${CMAKE_INSTALL_DATADIR}/bash-completion/completions/wdtrain\" completion bash)
  written_by_wdtrain(\"${CMAKE_INSTALL_DATADIR}/zsh/site-functions/_wdtrain\" completion zsh)
  written_by_wdtrain(\"${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d/wdtrain.fish\" completion fish)")
install(DIRECTORY configs DESTINATION ${CMAKE_INSTALL_DATADIR}/wd)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/wd)
install(EXPORT wdTargets NAMESPACE wd:: DESTINATION ${package_dir})
configure_package_config_file(cmake/wdConfig.cmake.in wdConfig.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(wdConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/wdConfig.cmake ${PROJECT_BINARY_DIR}/wdConfigVersion.cmake
  cmake/wd_add_environment.cmake cmake/wd_add_kernels.cmake cmake/wd_flags.cmake DESTINATION ${package_dir})
