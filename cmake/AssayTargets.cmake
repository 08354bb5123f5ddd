# One line per folder: sources are globbed, so a new file edits no list.

# assay_library(NAME [LINK targets...]): static library assay_NAME (alias assay::NAME) from *.cpp.
function(assay_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "LINK")
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  if(NOT sources)  # a folder of headers
    add_library(assay_${name} INTERFACE)
    add_library(assay::${name} ALIAS assay_${name})
    target_link_libraries(assay_${name} INTERFACE ${arg_LINK})
    return()
  endif()
  add_library(assay_${name} STATIC ${sources})
  add_library(assay::${name} ALIAS assay_${name})
  target_include_directories(assay_${name} PUBLIC ${PROJECT_SOURCE_DIR}
    ${PROJECT_SOURCE_DIR}/core/include)
  target_link_libraries(assay_${name} PUBLIC ${arg_LINK})
endfunction()

# assay_use_pch(TARGET): reuses libassay's precompiled header.
function(assay_use_pch target)
  if(ASSAY_PCH)
    target_precompile_headers(${target} REUSE_FROM assay_pch)
  endif()
endfunction()

# assay_unity(TARGET): compiles six files as one. Loading LibTorch's headers costs seconds per
# translation unit, so small files stay cheap.
function(assay_unity target)
  if(ASSAY_UNITY)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 6)
  endif()
endfunction()

# assay_tests(NAME [TORCH] LINK targets... [DEFINE name=value...]): one GoogleTest program test_NAME
# from *_test.cpp of this folder.
function(assay_tests name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "TORCH" "" "LINK;DEFINE;SOURCES")
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*_test.cpp)
  if(NOT sources)
    return()
  endif()
  add_executable(test_${name} ${sources} ${arg_SOURCES})
  target_include_directories(test_${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(test_${name} PRIVATE ${arg_LINK} GTest::gtest GTest::gmock GTest::gtest_main)
  target_compile_definitions(test_${name} PRIVATE ASSAY_TEST_DATA="${PROJECT_SOURCE_DIR}/tests/data"
    ASSAY_BIN="${CMAKE_BINARY_DIR}/bin" ${arg_DEFINE})
  if(arg_TORCH)
    # -fPIC without -fpie: an executable built with -fpie silently misses the precompiled header.
    set_target_properties(test_${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_compile_options(test_${name} PRIVATE -fPIC)
    assay_use_pch(test_${name})
    assay_unity(test_${name})
  endif()
  include(GoogleTest)
  gtest_discover_tests(test_${name} DISCOVERY_MODE PRE_TEST TEST_PREFIX "${name}." PROPERTIES TIMEOUT 300)
endfunction()

# assay_benchmarks(NAME [TORCH] LINK targets...): Google Benchmark program bench_NAME from *_bench.cpp.
function(assay_benchmarks name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "TORCH" "" "LINK;SOURCES")
  add_executable(bench_${name} ${arg_SOURCES})
  target_include_directories(bench_${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(bench_${name} PRIVATE ${arg_LINK} benchmark::benchmark)
  if(arg_TORCH)
    set_target_properties(bench_${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_compile_options(bench_${name} PRIVATE -fPIC)
    assay_use_pch(bench_${name})
  endif()
endfunction()
