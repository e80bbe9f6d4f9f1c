// base/aligned_memory.h -- malloc with an alignment for vector instructions.
#pragma once

#include <cstddef>

namespace carnot {

inline constexpr std::size_t kMemoryAlignment = 64;  ///< a cache line; suits the widest vector loads

/// Blocks of at least this size are mapped separately and returned to the system when they are freed. On the heap, the
/// holes left by the matrices of a large vocabulary are filled with other blocks, and peak memory grows from step to
/// step.
inline constexpr std::size_t kMappedBytes = std::size_t{256} << 20;

/// Aligned memory from malloc, or null if there is not enough. Alignment is done here because glibc before 2.38 never
/// reuses a freed block for an aligned request of the same size: the heap fragments, and a run's peak was up to a
/// quarter higher. Blocks of kMappedBytes and more are advised to use huge pages, because their pages are touched for
/// the first time on every allocation.
void* allocate_aligned(std::size_t bytes);

/// Frees what allocate_aligned() returned; null is ignored.
void free_aligned(void* data);

/// From now on, freed blocks below kMappedBytes stay in the process: returning them to the system and faulting them in
/// again, page by page, takes longer than many operators.
void keep_freed_memory();

/// Returns all whole pages that are free now to the system.
void return_freed_memory();

}  // namespace carnot
