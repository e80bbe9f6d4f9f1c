# Outside libraries: Debian packages, and LibTorch from the project's virtual environment or CMAKE_PREFIX_PATH.

find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)

# One sentence that names every missing package at once, instead of the first one's CMake trace.
set(CARNOT_MISSING "")
macro(carnot_need package debian)
  find_package(${package} QUIET ${ARGN})
  if(NOT ${package}_FOUND)
    list(APPEND CARNOT_MISSING ${debian})
  endif()
endmacro()
macro(carnot_need_module module debian target)
  pkg_check_modules(${target} QUIET IMPORTED_TARGET ${module})
  if(NOT ${target}_FOUND)
    list(APPEND CARNOT_MISSING ${debian})
  endif()
endmacro()

carnot_need(yaml-cpp libyaml-cpp-dev)
carnot_need(nlohmann_json nlohmann-json3-dev)
carnot_need(CLI11 libcli11-dev)
carnot_need(spdlog libspdlog-dev)
carnot_need(fmt libfmt-dev)
if(CARNOT_TESTS)
  carnot_need(GTest libgtest-dev)
endif()
carnot_need(OpenSSL libssl-dev)
carnot_need(valijson libvalijson-dev)
carnot_need_module(gumbo libgumbo-dev gumbo)
carnot_need_module(libpcre2-8 libpcre2-dev pcre2)
carnot_need_module(libutf8proc libutf8proc-dev utf8proc)
carnot_need_module(cpp-httplib libcpp-httplib-dev httplib)
carnot_need_module(liblzma liblzma-dev lzma)
carnot_need_module(libseccomp libseccomp-dev seccomp)
# Gloo's code is in LibTorch, its headers are not.
find_path(CARNOT_GLOO_HEADERS gloo/context.h)
mark_as_advanced(CARNOT_GLOO_HEADERS)
if(NOT CARNOT_GLOO_HEADERS)
  list(APPEND CARNOT_MISSING libgloo-dev)
endif()
if(CARNOT_MISSING)
  list(JOIN CARNOT_MISSING " " CARNOT_MISSING)
  message(FATAL_ERROR "Missing packages. Run tools/install.sh, or: apt-get install ${CARNOT_MISSING}")
endif()

find_package(LibTorch REQUIRED)

# Shared test data stands beside the repository, or where -DCARNOT_DATA_DIR says.
set(CARNOT_DATA_DIR ${CMAKE_SOURCE_DIR}/../shared/data CACHE PATH "Folder with the recorded test data")

# Precompiled headers, each built once: LibTorch's cost nine seconds a file without, GoogleTest's four.
function(carnot_reuse_headers target name)
  set(headers carnot_${name})
  if(NOT TARGET ${headers})
    file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/${name}.cpp CONTENT "")
    add_library(${headers} STATIC ${CMAKE_BINARY_DIR}/${name}.cpp)
    target_link_libraries(${headers} PUBLIC ${ARGN})
    target_precompile_headers(${headers} PRIVATE ${CMAKE_SOURCE_DIR}/cmake/${name}.h)
    if(name MATCHES "test")
      target_compile_options(${headers} PRIVATE ${CARNOT_TEST_OPTIMISATION})
    endif()
  endif()
  target_precompile_headers(${target} REUSE_FROM ${headers})
endfunction()

# The standard library's are worth it where they take as long as the rest of a source: in instrumented builds. The others
# thereby see that each source includes what it uses.
function(carnot_use_standard_headers target)
  if(CARNOT_SANITIZE OR CARNOT_THREAD_SANITIZE)
    carnot_reuse_headers(${target} standard_headers)
  endif()
endfunction()

function(carnot_use_torch target)
  target_link_libraries(${target} PUBLIC LibTorch::LibTorch)
  carnot_reuse_headers(${target} torch_headers LibTorch::LibTorch)
endfunction()

function(carnot_use_test_headers target)
  carnot_reuse_headers(${target} test_headers GTest::gmock nlohmann_json::nlohmann_json)
endfunction()

function(carnot_use_torch_test_headers target)
  target_link_libraries(${target} PRIVATE LibTorch::LibTorch)
  carnot_reuse_headers(${target} torch_test_headers LibTorch::LibTorch GTest::gmock nlohmann_json::nlohmann_json)
endfunction()
