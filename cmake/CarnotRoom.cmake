# add_room: a room of the floor plan is a library that sees only the rooms it links.
#
#   add_room(credit
#     SOURCES group_relative.cpp ...
#     DEPENDS base data              # rooms below; their headers become visible, and only theirs
#     LIBRARIES CLI11::CLI11         # outside libraries
#     TORCH                          # this room stands above the LibTorch line
#     PROGRAM_ONLY                   # not installed with the library
#     ALONE safetensors_test.cpp     # never compiled as one with others of the room, whose internal names it has too;
#                                    # without names: none of the room is
#     TESTS group_relative_test.cpp  # stand beside the sources
#     TEST_DEPENDS text)             # rooms that only the tests see
#
# Each room's include path is a folder that holds nothing but a link carnot/<room> to its sources, so
# `#include "carnot/credit/x.h"` resolves only for those who link the room `credit`.

# Sources that are never compiled as one with others. Tests are targets of the top folder.
function(carnot_compile_alone)
  list(TRANSFORM ARGN PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
  set_source_files_properties(${ARGN} DIRECTORY ${CMAKE_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR}
                              PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()

function(add_room name)
  cmake_parse_arguments(ROOM "TORCH;PROGRAM_ONLY" "" "SOURCES;DEPENDS;LIBRARIES;TESTS;TEST_DEPENDS;ALONE" ${ARGN})
  set(include_dir ${CMAKE_BINARY_DIR}/rooms/${name})
  file(MAKE_DIRECTORY ${include_dir}/carnot)
  file(CREATE_LINK ${CMAKE_CURRENT_SOURCE_DIR} ${include_dir}/carnot/${name} SYMBOLIC)

  if(ALONE IN_LIST ROOM_KEYWORDS_MISSING_VALUES)
    set(ROOM_ALONE ${ROOM_SOURCES} ${ROOM_TESTS})
  endif()
  carnot_compile_alone(${ROOM_ALONE})

  if(NOT ROOM_SOURCES)  # headers only
    add_library(carnot_${name} INTERFACE)
    target_include_directories(carnot_${name} INTERFACE $<BUILD_INTERFACE:${include_dir}>)
    list(TRANSFORM ROOM_DEPENDS PREPEND carnot_ OUTPUT_VARIABLE below)
    target_link_libraries(carnot_${name} INTERFACE ${below})
    carnot_install_room(${name} "")
    return()
  endif()

  add_library(carnot_${name} STATIC ${ROOM_SOURCES})
  set_property(GLOBAL APPEND PROPERTY CARNOT_ROOMS ${name})
  target_include_directories(carnot_${name} PUBLIC $<BUILD_INTERFACE:${include_dir}>)
  foreach(below ${ROOM_DEPENDS})
    target_link_libraries(carnot_${name} PUBLIC carnot_${below})
  endforeach()
  target_link_libraries(carnot_${name} PRIVATE ${ROOM_LIBRARIES})
  if(ROOM_TORCH)
    carnot_use_torch(carnot_${name})
  else()
    carnot_use_standard_headers(carnot_${name})
  endif()
  if(NOT ROOM_PROGRAM_ONLY)
    carnot_install_room(${name} "${ROOM_TORCH}")
  endif()

  # Tests are declared once every room and the test libraries are known.
  if(ROOM_TESTS)
    list(TRANSFORM ROOM_TESTS PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
    set_property(GLOBAL APPEND PROPERTY CARNOT_TESTED_ROOMS ${name})
    set_property(GLOBAL PROPERTY CARNOT_TESTS_${name} ${ROOM_TESTS})
    set_property(GLOBAL PROPERTY CARNOT_TEST_DEPENDS_${name} ${ROOM_TEST_DEPENDS})
    set_property(GLOBAL PROPERTY CARNOT_TEST_TORCH_${name} ${ROOM_TORCH})
  endif()
endfunction()

# All test programs that need neither LibTorch nor the program: quick to build, with sanitizers too.
add_custom_target(tests_without_libtorch)

# One test program: its sources, the rooms it sees, whether it stands above the LibTorch line, whether it starts the
# program, about how many SECONDS it takes: the longest start first, so that no processor idles at the end. CHECK_ONLY:
# too long for every change; it is built, and `./run check` runs it.
function(carnot_add_test name)
  cmake_parse_arguments(TEST "TORCH;PROGRAM;CHECK_ONLY" "TIMEOUT;SECONDS" "SOURCES;DEPENDS;LIBRARIES" ${ARGN})
  if(NOT TEST_TIMEOUT)
    set(TEST_TIMEOUT 900)
  endif()
  if(CARNOT_SANITIZE STREQUAL "ON")  # ten times as slow, and nobody waits for it
    math(EXPR TEST_TIMEOUT "10 * ${TEST_TIMEOUT}")
  endif()
  add_executable(${name}_test ${TEST_SOURCES})
  foreach(room ${TEST_DEPENDS})
    target_link_libraries(${name}_test PRIVATE carnot_${room})
  endforeach()
  target_link_libraries(${name}_test PRIVATE carnot_reference carnot_testing ${TEST_LIBRARIES}
                                             GTest::gmock GTest::gtest_main)
  # GCC 12 sees array bounds overrun inside std::string where constants of a test are folded into it.
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
  get_property(rooms GLOBAL PROPERTY CARNOT_TESTED_ROOMS)
  foreach(room ${rooms})
    get_property(sources GLOBAL PROPERTY CARNOT_TESTS_${room})
    get_property(depends GLOBAL PROPERTY CARNOT_TEST_DEPENDS_${room})
    get_property(torch GLOBAL PROPERTY CARNOT_TEST_TORCH_${room})
    if(torch)
      set(torch TORCH)
    else()
      set(torch)
    endif()
    carnot_add_test(${room} SOURCES ${sources} DEPENDS ${room} ${depends} ${torch})
  endforeach()
endfunction()

# With CARNOT_ODR: the target `odr` lets the linker compare the types of all rooms; two of one name are an error. It links
# objects to an object: no code is made, which would take hours.
function(carnot_compare_types)
  if(NOT CARNOT_ODR)
    return()
  endif()
  get_property(rooms GLOBAL PROPERTY CARNOT_ROOMS)
  set(objects)
  foreach(room ${rooms})
    list(APPEND objects $<TARGET_OBJECTS:carnot_${room}>)
  endforeach()
  file(GENERATE OUTPUT ${CMAKE_BINARY_DIR}/objects_of_rooms CONTENT "$<JOIN:${objects},\n>\n")
  add_custom_command(OUTPUT compared_types.o
    COMMAND ${CMAKE_CXX_COMPILER} -flto -flinker-output=rel -r -O0 -Werror=odr -Werror=lto-type-mismatch
            @${CMAKE_BINARY_DIR}/objects_of_rooms -o compared_types.o
    DEPENDS ${objects} VERBATIM)
  add_custom_target(odr DEPENDS compared_types.o)
endfunction()

# The text of a file in a variable, for configure_file; a change of the file configures again.
function(carnot_embed_file variable file)
  file(READ ${file} text)
  set(${variable} "${text}" PARENT_SCOPE)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
endfunction()
