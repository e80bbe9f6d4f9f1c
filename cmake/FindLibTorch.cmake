# Finds LibTorch without its own CMake package, which refuses a CUDA wheel on a machine without the CUDA toolkit. Looks
# in CMAKE_PREFIX_PATH (a LibTorch folder, or any folder below a `torch` package), then in the virtual environment .venv
# of the project that is built, then next to an installed Carnot, which includes this file. Defines LibTorch::LibTorch.

set(candidates ${CMAKE_PREFIX_PATH})
foreach(prefix ${CMAKE_PREFIX_PATH})
  list(APPEND candidates ${prefix}/torch ${prefix}/../.. ${prefix}/..)
endforeach()
file(GLOB wheels ${CMAKE_SOURCE_DIR}/.venv/lib/python3*/site-packages/torch)
list(APPEND candidates ${wheels} ${CMAKE_CURRENT_LIST_DIR}/../../carnot/libtorch)

set(LibTorch_ROOT_DIR "")
foreach(candidate ${candidates})
  if(EXISTS ${candidate}/include/ATen/core/Tensor.h AND EXISTS ${candidate}/lib/libtorch_cpu.so)
    get_filename_component(LibTorch_ROOT_DIR ${candidate} REALPATH)
    break()
  endif()
endforeach()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(LibTorch
  REQUIRED_VARS LibTorch_ROOT_DIR
  REASON_FAILURE_MESSAGE "Run tools/install.sh to get it, or name a LibTorch with -DCMAKE_PREFIX_PATH=/path/to/libtorch")

if(LibTorch_FOUND AND NOT TARGET LibTorch::LibTorch)
  set(lib ${LibTorch_ROOT_DIR}/lib)
  add_library(LibTorch::LibTorch INTERFACE IMPORTED)
  target_include_directories(LibTorch::LibTorch SYSTEM INTERFACE
    ${LibTorch_ROOT_DIR}/include ${LibTorch_ROOT_DIR}/include/torch/csrc/api/include)
  # CMake writes the folder into the programs that it links. The wheel brings its own OpenMP runtime; the old tag makes
  # the libraries that those load look there too, so that a process holds only that one.
  target_link_options(LibTorch::LibTorch INTERFACE -Wl,--disable-new-dtags)
  target_link_libraries(LibTorch::LibTorch INTERFACE ${lib}/libtorch_cpu.so ${lib}/libc10.so)
  # libtorch_cuda.so is loaded at run time where a recipe asks for the GPU (nn/cuda_backend.h): linked here, a program
  # would not start on a machine that lacks the CUDA libraries it wants.
  target_link_libraries(LibTorch::LibTorch INTERFACE ${CMAKE_DL_LIBS})
  target_link_options(LibTorch::LibTorch INTERFACE -Wl,--allow-shlib-undefined)
endif()
