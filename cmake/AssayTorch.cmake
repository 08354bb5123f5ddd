# Imported targets for the pinned wheel. find_package(Torch) is not used: on a CUDA wheel it demands
# a toolkit and links libtorch_cuda into everything. Serves the build tree and the installed SDK.
include(${CMAKE_CURRENT_LIST_DIR}/AssayTorchVersion.cmake)
set(_torch "${ASSAY_LIBTORCH}/torch")
if(NOT EXISTS "${_torch}/version.py")
  message(FATAL_ERROR "no LibTorch in '${ASSAY_LIBTORCH}': it must hold torch/ and nvidia/ of the "
                      "torch ${ASSAY_TORCH_VERSION} wheel. Run tools/setup, or set ASSAY_LIBTORCH.")
endif()
file(STRINGS "${_torch}/version.py" _version REGEX "^__version__")
string(FIND "${_version}" "'${ASSAY_TORCH_VERSION}'" _found)
if(_found EQUAL -1)
  message(FATAL_ERROR "LibTorch in '${ASSAY_LIBTORCH}' is ${_version}; assay needs exactly "
                      "${ASSAY_TORCH_VERSION}. Run tools/setup, or set ASSAY_LIBTORCH.")
endif()

foreach(_name IN ITEMS c10 torch_cpu c10_cuda torch_cuda)
  add_library(assay_${_name} SHARED IMPORTED GLOBAL)
  set_target_properties(assay_${_name} PROPERTIES IMPORTED_LOCATION "${_torch}/lib/lib${_name}.so"
    IMPORTED_SONAME lib${_name}.so)
endforeach()
add_library(assay_gomp SHARED IMPORTED GLOBAL)
set_target_properties(assay_gomp PROPERTIES IMPORTED_LOCATION "${_torch}/lib/libgomp.so.1"
  IMPORTED_SONAME libgomp.so.1)

find_package(Threads REQUIRED)
add_library(assay_torch INTERFACE)
add_library(assay::torch ALIAS assay_torch)
target_include_directories(assay_torch SYSTEM INTERFACE "${_torch}/include"
  "${_torch}/include/torch/csrc/api/include")
# FMT_HEADER_ONLY: the wheel ships its own fmt headers, and they win over the system's.
target_compile_definitions(assay_torch INTERFACE AT_PER_OPERATOR_HEADERS USE_DISTRIBUTED
  FMT_HEADER_ONLY)
target_compile_options(assay_torch INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fopenmp>)
target_link_libraries(assay_torch INTERFACE assay_torch_cpu assay_c10 assay_gomp Threads::Threads)
target_link_options(assay_torch INTERFACE LINKER:--disable-new-dtags
  "LINKER:-rpath-link,${_torch}/lib:${ASSAY_LIBTORCH}/nvidia/cu13/lib")

add_library(assay_torch_with_cuda INTERFACE)
add_library(assay::torch_cuda ALIAS assay_torch_with_cuda)
target_link_libraries(assay_torch_with_cuda INTERFACE assay_torch_cuda assay_c10_cuda assay_torch)
