// base/aligned_memory.h -- memory for numbers that vector instructions load, from malloc.
#pragma once

#include <cstddef>

namespace carnot {

inline constexpr std::size_t kMemoryAlignment = 64;  ///< a cache line, and what the widest vector loads like

/// From this size on a block is mapped by itself and goes back to the system when it is freed: in the heap the holes
/// that blocks of a large vocabulary's matrices leave are filled with other things, and the peak grows from step to
/// step.
inline constexpr std::size_t kMappedBytes = std::size_t{256} << 20;

/// Aligned memory that malloc gave, or null if there is none. Asked for alignment itself, glibc before 2.38 never
/// gives a freed block to a request of the same size: the heap fills with holes, and a run's peak was up to a quarter
/// higher. Blocks of kMappedBytes and more are asked to lie on huge pages: they are touched for the first time every
/// time.
void* allocate_aligned(std::size_t bytes);

/// Gives back what allocate_aligned() gave; null is nothing.
void free_aligned(void* data);

/// From now on blocks below kMappedBytes stay in the process when they are freed: giving them back and faulting them in
/// again, page by page, takes longer than many operators.
void keep_freed_memory();

}  // namespace carnot
