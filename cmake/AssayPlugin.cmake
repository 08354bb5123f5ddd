# assay_add_plugin(): builds one plugin, in assay's own tree and against an installed SDK alike.
include(${CMAKE_CURRENT_LIST_DIR}/AssayTorchVersion.cmake)

# assay_sdk_hash(OUT folder): 16 hex digits over the public headers; an edit configures again.
function(assay_sdk_hash out folder)
  file(GLOB headers CONFIGURE_DEPENDS ${folder}/assay/*.h)
  list(SORT headers)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${headers})
  set(text "")
  foreach(header IN LISTS headers)
    cmake_path(GET header FILENAME name)
    file(SHA256 ${header} hash)
    string(APPEND text "${name} ${hash}\n")
  endforeach()
  string(SHA256 hash "${text}")
  set(${out} ${hash} PARENT_SCOPE)
endfunction()

function(_assay_json_list out)
  list(JOIN ARGN [[\",\"]] text)
  if(text)
    set(text "\\\"${text}\\\"")
  endif()
  set(${out} "${text}" PARENT_SCOPE)
endfunction()

function(_assay_check_plugin_arguments)
  if(arg_UNPARSED_ARGUMENTS OR arg_KEYWORDS_MISSING_VALUES)
    message(FATAL_ERROR "assay_add_plugin: unknown or empty argument: "
                        "${arg_UNPARSED_ARGUMENTS} ${arg_KEYWORDS_MISSING_VALUES}")
  endif()
  if(NOT arg_NAME MATCHES "^[a-z][a-z0-9_]*$")
    message(FATAL_ERROR "assay_add_plugin: NAME '${arg_NAME}' must be [a-z][a-z0-9_]*")
  endif()
  if(NOT arg_COMPONENTS OR NOT arg_SOURCES)
    message(FATAL_ERROR "assay_add_plugin(${arg_NAME}): COMPONENTS and SOURCES are needed")
  endif()
  foreach(component IN LISTS arg_COMPONENTS)
    if(NOT component MATCHES
       "^(model|parallel|memory|precision|compile|optim|data|comm)/[a-z][a-z0-9_]*$")
      message(FATAL_ERROR "assay_add_plugin(${arg_NAME}): '${component}' is no KIND/lower_case")
    endif()
  endforeach()
endfunction()

# assay_add_plugin(NAME lion COMPONENTS optim/lion SOURCES lion.cpp [VERSION v] [LINK targets...]
#                  [OP_NAMESPACES ...] [CUDA] [NCCL] [FIXTURE folder])
# FIXTURE: a plugin for assay's own tests, written to that folder, neither checked nor installed.
function(assay_add_plugin)
  cmake_parse_arguments(PARSE_ARGV 0 arg "CUDA;NCCL" "NAME;VERSION;FIXTURE"
                        "COMPONENTS;SOURCES;OP_NAMESPACES;LINK")
  _assay_check_plugin_arguments()
  if(NOT arg_VERSION)
    set(arg_VERSION 1.0.0)
  endif()
  _assay_json_list(components ${arg_COMPONENTS})
  _assay_json_list(op_namespaces ${arg_OP_NAMESPACES})
  set(note_cuda_includes "")
  if(arg_CUDA)
    string(APPEND note_cuda_includes "#include <cuda.h>\n")
  endif()
  if(arg_NCCL)
    string(APPEND note_cuda_includes "#include <nccl.h>\n")
  endif()
  set(note ${CMAKE_CURRENT_BINARY_DIR}/${arg_NAME}.note.cpp)
  configure_file(${CMAKE_CURRENT_FUNCTION_LIST_DIR}/plugin_note.cpp.in ${note} @ONLY)

  # The objects hold no door, so that a test may link those of several plugins.
  set(objects ${arg_NAME}_objects)
  add_library(${objects} OBJECT ${arg_SOURCES})
  target_include_directories(${objects} PUBLIC ${CMAKE_CURRENT_SOURCE_DIR})
  target_link_libraries(${objects} PUBLIC assay::sdk ${arg_LINK}
                        $<$<BOOL:${arg_CUDA}>:assay::torch_cuda>)
  target_compile_definitions(${objects} PRIVATE ASSAY_PLUGIN_NAME=${arg_NAME})
  target_compile_options(${objects} PRIVATE -fno-math-errno -ffp-contract=off
    -ffile-prefix-map=${CMAKE_SOURCE_DIR}=. -ffile-prefix-map=${CMAKE_BINARY_DIR}=build)
  set_target_properties(${objects} PROPERTIES POSITION_INDEPENDENT_CODE ON CXX_EXTENSIONS OFF
    CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  if(COMMAND assay_use_pch)
    assay_use_pch(${objects})
  endif()

  set(map ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/plugin.map)
  add_library(${arg_NAME} MODULE ${note})
  target_link_libraries(${arg_NAME} PRIVATE ${objects})
  target_compile_options(${arg_NAME} PRIVATE  # the note tells of the flags of the objects
                         $<TARGET_PROPERTY:${objects},COMPILE_OPTIONS>)
  target_compile_definitions(${arg_NAME} PRIVATE
                             $<TARGET_PROPERTY:${objects},COMPILE_DEFINITIONS>)
  target_link_options(${arg_NAME} PRIVATE LINKER:-z,defs LINKER:-z,nodelete
                      LINKER:--version-script=${map})
  set_target_properties(${arg_NAME} PROPERTIES PREFIX "" SUFFIX .assay.so LINKER_LANGUAGE CXX
    CXX_EXTENSIONS OFF CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON
    LINK_DEPENDS ${map} SKIP_BUILD_RPATH ON INSTALL_RPATH "")
  _assay_place_plugin()
endfunction()

# Where the file goes, its git stamp beside it, its conformance test.
function(_assay_place_plugin)
  if(arg_FIXTURE)
    set_target_properties(${arg_NAME} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${arg_FIXTURE})
    return()
  endif()
  if(ASSAY_PLUGIN_OUTPUT_DIRECTORY)
    set_target_properties(${arg_NAME} PROPERTIES
      LIBRARY_OUTPUT_DIRECTORY ${ASSAY_PLUGIN_OUTPUT_DIRECTORY})
  endif()
  add_custom_command(TARGET ${arg_NAME} POST_BUILD VERBATIM
    COMMAND ${CMAKE_COMMAND} -DSOURCE=${CMAKE_CURRENT_SOURCE_DIR}
            -DOUT=$<TARGET_FILE_DIR:${arg_NAME}>/${arg_NAME}.assay.json
            -P ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/AssayStamp.cmake)
  install(TARGETS ${arg_NAME} LIBRARY DESTINATION lib/assay/plugins)
  install(FILES $<TARGET_FILE_DIR:${arg_NAME}>/${arg_NAME}.assay.json
          DESTINATION lib/assay/plugins)
  if(ASSAY_TESTS)
    add_test(NAME check.${arg_NAME} COMMAND assay plugins check $<TARGET_FILE:${arg_NAME}>)
    set_tests_properties(check.${arg_NAME} PROPERTIES TIMEOUT 600 LABELS conformance)
  endif()
endfunction()
