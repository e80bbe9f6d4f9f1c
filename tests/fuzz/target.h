// tests/fuzz/target.h -- the function of a fuzz target: libFuzzer's own, or one of many in the program fuzz_test.
#pragma once

#include <cstddef>
#include <cstdint>

#ifdef CARNOT_LIBFUZZER
#define CARNOT_FUZZ_TARGET(name) extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
#else
#define CARNOT_FUZZ_TARGET(name) extern "C" int name##_fuzz_one_input(const std::uint8_t* data, std::size_t size)
#endif
