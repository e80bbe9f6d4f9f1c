// testing/device_emulation.h -- device code as C++: the threads of a block one after the other, on the processor.
//
// A source that includes this and then a .cu file compiles its kernels as functions, which emulate_launch() runs. Each
// thread of a block runs on its own stack until it reaches a barrier; when all have, the next phase begins. What no
// barrier orders therefore runs in the order of the threads, or in another one: results that differ between orders
// reveal a missing barrier. Shared memory is static. There are no warps: shuffles and votes are missing.
#pragma once

#include <bit>
#include <cmath>
#include <functional>

namespace carnot::testing {

struct EmulatedIndex {
  unsigned x = 0, y = 0, z = 0;
};

/// The order of threads between two barriers, and of blocks.
enum class ThreadOrder { Ascending, Descending, Shuffled };

/// Calls kernel() for every thread of every block. A check fails if the threads of a block do not meet at the same
/// barriers.
void emulate_launch(unsigned blocks, unsigned threads, ThreadOrder order, const std::function<void()>& kernel);

/// Ends a phase of the running thread. `line` identifies the barrier.
void emulated_barrier(int line);

/// Of the running thread.
extern EmulatedIndex emulated_thread, emulated_block;

}  // namespace carnot::testing

// The keywords of CUDA C++ that our device code uses.
#define __global__
#define __device__
#define __shared__ static
#define __launch_bounds__(threads)
#define __syncthreads() ::carnot::testing::emulated_barrier(__LINE__)
#define threadIdx ::carnot::testing::emulated_thread
#define blockIdx ::carnot::testing::emulated_block

namespace carnot::cuda {

using std::exp;
using std::log;

inline unsigned __float_as_uint(float x) { return std::bit_cast<unsigned>(x); }
inline float __uint_as_float(unsigned x) { return std::bit_cast<float>(x); }
inline long long __double_as_longlong(double x) { return std::bit_cast<long long>(x); }
inline double __longlong_as_double(long long x) { return std::bit_cast<double>(x); }
inline unsigned atomicAdd(unsigned* sum, unsigned value) {
  const unsigned before = *sum;
  *sum += value;
  return before;
}

}  // namespace carnot::cuda
