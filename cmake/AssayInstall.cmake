# The install tree: executables, libassay, plugins, and the SDK that find_package(assay EXACT) reads.
include(CMakePackageConfigHelpers)
set(_sdk lib/cmake/assay)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/core/include/assay DESTINATION include)
configure_file(${PROJECT_SOURCE_DIR}/cmake/assay-config.cmake.in
               ${CMAKE_BINARY_DIR}/sdk/assay-config.cmake @ONLY)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/sdk/assay-config-version.cmake
                                 VERSION ${PROJECT_VERSION} COMPATIBILITY ExactVersion)
install(FILES ${CMAKE_BINARY_DIR}/sdk/assay-config.cmake
  ${CMAKE_BINARY_DIR}/sdk/assay-config-version.cmake
  cmake/AssayTorch.cmake cmake/AssayTorchVersion.cmake cmake/AssayPlugin.cmake
  cmake/AssayStamp.cmake cmake/plugin_note.cpp.in cmake/plugin.map DESTINATION ${_sdk})
install(EXPORT assay FILE assay-targets.cmake NAMESPACE assay:: DESTINATION ${_sdk})
