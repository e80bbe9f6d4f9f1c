# Language, warnings, optimisation and compiler cache.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
# Checks stay on in release builds: CARNOT_CHECK does not depend on NDEBUG.
set(CMAKE_CXX_FLAGS_RELEASE "-O2")
# For rooms that neither have inner loops nor use LibTorch: saves a quarter of their compile time. Sums keep their order
# at every level, so results do not depend on it.
set(CARNOT_PLAIN_OPTIMISATION $<$<CONFIG:Release>:-O1>)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)  # at this level GCC 12 mistakes values in std::optional for uninitialised ones
  list(APPEND CARNOT_PLAIN_OPTIMISATION $<$<CONFIG:Release>:-Wno-maybe-uninitialized>)
endif()
# For the test programs' own sources: they compile in half the time that -O2 takes. Slow reference implementations
# (reference/) keep -O2.
set(CARNOT_TEST_OPTIMISATION $<$<CONFIG:Release>:-O0>)

# A warning of an unknown compiler must not keep a user from building: contributors' presets turn this on.
option(CARNOT_WARNINGS_ARE_ERRORS "Warnings stop the build" OFF)
add_compile_options(-Wall -Wextra $<$<BOOL:${CARNOT_WARNINGS_ARE_ERRORS}>:-Werror>)
if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
  # libstdc++ 12's own std::stable_sort calls a function that it marks as deprecated.
  add_compile_options(-Wno-deprecated-declarations)
endif()

# A hundred programs: gold links each in a third of the time.
find_program(CARNOT_GOLD ld.gold)
if(CARNOT_GOLD)
  add_link_options(-fuse-ld=gold)
endif()

# A build from scratch takes half the time if several sources of a target are compiled as one (presets `ci` and `user`);
# a changed source then takes longer.
set(CMAKE_UNITY_BUILD_BATCH_SIZE 16)
if(CMAKE_UNITY_BUILD AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  add_compile_options(-Wno-subobject-linkage)  # mistakes included sources for headers
endif()

option(CARNOT_TESTS "Tests and benchmarks; without them GoogleTest is not needed" ON)
option(CARNOT_PYTHON_MODULE "The module of the wheel carnot-rl-core; pip's build turns this on" OFF)
option(CARNOT_EXAMPLES "The programs of examples/, as the target `examples` and as tests" ON)

set(CARNOT_SANITIZE OFF CACHE STRING "Address and undefined-behaviour sanitizers: OFF, ON or QUICK")
if(CARNOT_SANITIZE)
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
  # Checking every pointer for null and alignment is half of the instrumented code, and reading through null ends a
  # program anyway. Line numbers in reports take a sixth of the compile time.
  if(CARNOT_SANITIZE STREQUAL QUICK)
    add_compile_options(-fno-sanitize=null,alignment)
  else()
    add_compile_options(-g1)
  endif()
  # GCC reports instrumented functions of std::regex as uninitialised.
  add_compile_options($<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
endif()

option(CARNOT_THREAD_SANITIZE "Build with the thread sanitizer" OFF)
if(CARNOT_THREAD_SANITIZE)
  if(CARNOT_SANITIZE)
    message(FATAL_ERROR "CARNOT_THREAD_SANITIZE and CARNOT_SANITIZE exclude each other")
  endif()
  add_compile_options(-fsanitize=thread -fno-omit-frame-pointer -g1)
  add_link_options(-fsanitize=thread)
  # The sanitizer does not support GCC's std::atomic_thread_fence; only libraries' headers use it.
  add_compile_options($<$<CXX_COMPILER_ID:GNU>:-Wno-tsan>)
endif()

option(CARNOT_FUZZ "Build the fuzz targets of tests/fuzz; needs clang and its compiler-rt" OFF)
if(CARNOT_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "CARNOT_FUZZ needs clang: configure with --preset fuzz")
  endif()
  add_compile_options(-fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined -g1)
  add_link_options(-fsanitize=address,undefined)
endif()

find_program(CCACHE ccache)
if(CCACHE)
  # The first two make the precompiled header cacheable; base_dir lets clones share their objects.
  set(CMAKE_CXX_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
      CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${CCACHE})
endif()
