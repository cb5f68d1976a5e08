# `cmake --install`: the program, the libraries with their headers and find_package(twiddle), the models and the digits.
include(CMakePackageConfigHelpers)
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/twiddle)
foreach(folder framework fft data layers models)
  if(TARGET twiddle_${folder})
    install(TARGETS twiddle_${folder} EXPORT twiddle_targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
    install(DIRECTORY ${PROJECT_SOURCE_DIR}/${folder} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/twiddle
            FILES_MATCHING PATTERN "*.h" PATTERN digits EXCLUDE)
  endif()
endforeach()
file(GLOB models CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/models/*.yaml)
install(FILES ${models} DESTINATION ${CMAKE_INSTALL_DATADIR}/twiddle/models)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/data/digits DESTINATION ${CMAKE_INSTALL_DATADIR}/twiddle/data)
install(EXPORT twiddle_targets FILE twiddle-targets.cmake NAMESPACE twiddle:: DESTINATION ${package_folder})
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/twiddle-config.cmake.in ${PROJECT_BINARY_DIR}/twiddle-config.cmake
                              INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/twiddle-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/twiddle-config.cmake ${PROJECT_BINARY_DIR}/twiddle-config-version.cmake DESTINATION ${package_folder})
