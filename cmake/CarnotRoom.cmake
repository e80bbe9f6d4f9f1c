# add_room: a room of the floor plan is a library that sees only the rooms it links.
#
#   add_room(credit
#     ABOUT "credit rules"           # for the floor plan in ARCHITECTURE.md
#     FOLDER credit                  # of the sources, below this one; default: this one
#     SOURCES group_relative.cpp ...
#     DEPENDS base data              # rooms below; their headers become visible, and only theirs
#     LIBRARIES CLI11::CLI11         # outside libraries
#     LOOPS                          # optimised fully: this room has inner loops
#     NOT_INSTALLED                  # with the library
#     TORCH                          # this room is above the LibTorch line
#     ALONE safetensors_test.cpp     # never compiled as one with others of the room: it reuses their internal names;
#                                    # without names: none of the room is
#     TESTS group_relative_test.cpp  # next to the sources
#     TESTS_IN worlds                # the test program that has them; default: the room's
#     TEST_DEPENDS text)             # rooms that only the tests see
#
# Each room's include path is a folder that contains only a link to its sources, so that
# `#include "carnot/core/credit/x.h"` resolves only for targets that link the room `credit`.

# Sources that are never compiled as one with others. Tests are targets of the top folder.
function(carnot_compile_alone)
  list(TRANSFORM ARGN PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
  set_source_files_properties(${ARGN} DIRECTORY ${CMAKE_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR}
                              PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()

function(add_room name)
  cmake_parse_arguments(ROOM "TORCH;LOOPS;NOT_INSTALLED" "ABOUT;FOLDER;TESTS_IN" "SOURCES;DEPENDS;LIBRARIES;TESTS;TEST_DEPENDS;ALONE"
                        ${ARGN})
  foreach(below ${ROOM_DEPENDS})
    if(NOT TARGET carnot_${below})
      message(FATAL_ERROR "the room ${name} uses ${below}, which is not below it")
    endif()
  endforeach()
  cmake_path(SET folder NORMALIZE ${CMAKE_CURRENT_SOURCE_DIR}/${ROOM_FOLDER})
  string(REGEX REPLACE "/$" "" folder ${folder})
  file(RELATIVE_PATH path ${CMAKE_SOURCE_DIR} ${folder})
  set(include_dir ${CMAKE_BINARY_DIR}/rooms/${name})
  cmake_path(GET path PARENT_PATH parent)
  file(MAKE_DIRECTORY ${include_dir}/${parent})
  file(CREATE_LINK ${folder} ${include_dir}/${path} SYMBOLIC)
  list(JOIN ROOM_DEPENDS " " uses)
  if(ROOM_TORCH)
    set(torch yes)
  else()
    set(torch)
  endif()
  set_property(GLOBAL APPEND_STRING PROPERTY CARNOT_FLOOR_PLAN "${path}|${name}|${uses}|${torch}|${ROOM_ABOUT}\n")
  if(ROOM_FOLDER)
    list(TRANSFORM ROOM_SOURCES PREPEND ${ROOM_FOLDER}/)
    list(TRANSFORM ROOM_TESTS PREPEND ${ROOM_FOLDER}/)
    list(TRANSFORM ROOM_ALONE PREPEND ${ROOM_FOLDER}/)
  endif()

  if(ALONE IN_LIST ROOM_KEYWORDS_MISSING_VALUES)
    set(ROOM_ALONE ${ROOM_SOURCES} ${ROOM_TESTS})
  endif()
  carnot_compile_alone(${ROOM_ALONE})

  if(NOT ROOM_SOURCES)  # headers only
    add_library(carnot_${name} INTERFACE)
    target_include_directories(carnot_${name} INTERFACE $<BUILD_INTERFACE:${include_dir}>)
    list(TRANSFORM ROOM_DEPENDS PREPEND carnot_ OUTPUT_VARIABLE below)
    target_link_libraries(carnot_${name} INTERFACE ${below})
    carnot_install_room(${name} ${path} "")
    return()
  endif()

  add_library(carnot_${name} STATIC ${ROOM_SOURCES})
  target_include_directories(carnot_${name} PUBLIC $<BUILD_INTERFACE:${include_dir}>)
  foreach(below ${ROOM_DEPENDS})
    target_link_libraries(carnot_${name} PUBLIC carnot_${below})
  endforeach()
  target_link_libraries(carnot_${name} PRIVATE ${ROOM_LIBRARIES})
  if(ROOM_TORCH)
    carnot_use_torch(carnot_${name})
  elseif(NOT ROOM_LOOPS)
    target_compile_options(carnot_${name} PRIVATE ${CARNOT_PLAIN_OPTIMISATION})
    carnot_use_standard_headers(carnot_${name})
  endif()
  if(NOT ROOM_NOT_INSTALLED)
    carnot_install_room(${name} ${path} "${ROOM_TORCH}")
  endif()

  # Tests are declared once every room and the test libraries are known.
  if(ROOM_TESTS)
    if(NOT ROOM_TESTS_IN)
      set(ROOM_TESTS_IN ${name})
    endif()
    list(TRANSFORM ROOM_TESTS PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
    get_property(programs GLOBAL PROPERTY CARNOT_TEST_PROGRAMS)
    if(NOT ROOM_TESTS_IN IN_LIST programs)
      set_property(GLOBAL APPEND PROPERTY CARNOT_TEST_PROGRAMS ${ROOM_TESTS_IN})
    endif()
    set_property(GLOBAL APPEND PROPERTY CARNOT_TESTS_${ROOM_TESTS_IN} ${ROOM_TESTS})
    set_property(GLOBAL APPEND PROPERTY CARNOT_TEST_DEPENDS_${ROOM_TESTS_IN} ${name} ${ROOM_TEST_DEPENDS})
    if(ROOM_TORCH)
      set_property(GLOBAL PROPERTY CARNOT_TEST_TORCH_${ROOM_TESTS_IN} TORCH)
    endif()
  endif()
endfunction()

# Writes every room, from the ground up, to a file that the test of ARCHITECTURE.md reads.
function(carnot_write_floor_plan)
  get_property(plan GLOBAL PROPERTY CARNOT_FLOOR_PLAN)
  file(WRITE ${CMAKE_BINARY_DIR}/rooms/floor_plan "${plan}")
endfunction()

# All test programs that need neither LibTorch nor the program: quick to build, even with sanitizers.
add_custom_target(tests_without_libtorch)

# One test program: its sources, the rooms it sees, whether it is above the LibTorch line, whether it starts the
# program, about how many SECONDS it takes: the longest start first, so that no processor is idle at the end.
# CHECK_ONLY: too long for every change; it is built, and `./run check` runs it.
function(carnot_add_test name)
  cmake_parse_arguments(TEST "TORCH;PROGRAM;CHECK_ONLY" "TIMEOUT;SECONDS" "SOURCES;DEPENDS;LIBRARIES" ${ARGN})
  if(NOT TEST_TIMEOUT)
    set(TEST_TIMEOUT 900)
  endif()
  if(CARNOT_SANITIZE STREQUAL "ON")  # ten times as slow, and run without supervision
    math(EXPR TEST_TIMEOUT "10 * ${TEST_TIMEOUT}")
  endif()
  add_executable(${name}_test ${TEST_SOURCES})
  if(worlds IN_LIST TEST_DEPENDS)  # the tables are registered before the first test
    target_sources(${name}_test PRIVATE ${CMAKE_SOURCE_DIR}/testing/offered_tables.cpp)
    target_link_libraries(${name}_test PRIVATE carnot_tools carnot_worlds)
  endif()
  foreach(room ${TEST_DEPENDS})
    target_link_libraries(${name}_test PRIVATE carnot_${room})
  endforeach()
  target_link_libraries(${name}_test PRIVATE carnot_reference carnot_testing ${TEST_LIBRARIES}
                                             GTest::gmock GTest::gtest_main)
  # GCC 12 reports array bound overruns inside std::string if constants of a test are folded into it.
  target_compile_options(${name}_test PRIVATE ${CARNOT_TEST_OPTIMISATION}
                         $<$<CXX_COMPILER_ID:GNU>:-Wno-array-bounds -Wno-restrict -Wno-stringop-overflow>)
  if(TEST_TORCH)
    carnot_use_torch_test_headers(${name}_test)
  else()
    carnot_use_test_headers(${name}_test)
  endif()
  if(TEST_CHECK_ONLY)
    return()
  endif()
  add_test(NAME ${name} COMMAND ${name}_test)
  set_tests_properties(${name} PROPERTIES TIMEOUT ${TEST_TIMEOUT})
  if(TEST_SECONDS)
    set_tests_properties(${name} PROPERTIES COST ${TEST_SECONDS})
  endif()
  if(TEST_PROGRAM)
    add_dependencies(${name}_test carnot)
  elseif(NOT TEST_TORCH)
    add_dependencies(tests_without_libtorch ${name}_test)
    set_tests_properties(${name} PROPERTIES LABELS without_libtorch)
  endif()
endfunction()

function(carnot_declare_tests)
  get_property(programs GLOBAL PROPERTY CARNOT_TEST_PROGRAMS)
  foreach(program ${programs})
    get_property(sources GLOBAL PROPERTY CARNOT_TESTS_${program})
    get_property(depends GLOBAL PROPERTY CARNOT_TEST_DEPENDS_${program})
    get_property(torch GLOBAL PROPERTY CARNOT_TEST_TORCH_${program})
    list(REMOVE_DUPLICATES depends)
    carnot_add_test(${program} SOURCES ${sources} DEPENDS ${depends} ${torch})
  endforeach()
endfunction()

# Reads a file into a variable, for configure_file; a change of the file reruns CMake.
function(carnot_embed_file variable file)
  file(READ ${file} text)
  set(${variable} "${text}" PARENT_SCOPE)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
endfunction()
