# wd_install.cmake: installs headers, library, program, configurations and the package for find_package(wd).
include(CMakePackageConfigHelpers)

# torch is found where it was at build time; its libraries find their dependencies in their own folder.
set_target_properties(wd PROPERTIES INSTALL_RPATH "$ORIGIN;${WD_TORCH_DIR}/lib;${WD_CUDART_DIR}")
set_target_properties(wdtrain PROPERTIES INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")

install(TARGETS wd EXPORT wdTargets FILE_SET HEADERS FILE_SET device_headers)
install(TARGETS wdtrain)
if(WD_CUDA)
  set_target_properties(wd_cuda PROPERTIES INSTALL_RPATH "$ORIGIN;${WD_TORCH_DIR}/lib;${WD_CUDART_DIR}")
  install(TARGETS wd_cuda)
endif()
if(TARGET wd_emulator AND NOT WD_SANITIZE)
  install(TARGETS wd_emulator EXPORT wdTargets)
  foreach(environment IN LISTS environments)
    cmake_path(GET environment STEM name)
    install(TARGETS wd_emulated_${name} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/wd_emulated)
  endforeach()
endif()
install(DIRECTORY configs DESTINATION ${CMAKE_INSTALL_DATADIR}/wd)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/wd)
install(EXPORT wdTargets NAMESPACE wd:: DESTINATION ${package_dir})
configure_package_config_file(cmake/wdConfig.cmake.in wdConfig.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(wdConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/wdConfig.cmake ${PROJECT_BINARY_DIR}/wdConfigVersion.cmake
  cmake/wd_add_environment.cmake cmake/wd_flags.cmake DESTINATION ${package_dir})
