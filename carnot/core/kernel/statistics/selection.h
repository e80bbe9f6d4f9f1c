// kernel/statistics/selection.h -- selects the lowest entries of a row, exactly, without sorting or copying it.
#pragma once

#include <cstdint>

#include "carnot/core/kernel/dispatch.h"

namespace carnot::kernel {

/// The cut that removes the `removed` lowest of row[0, n). Of equal entries, those with larger indices are removed
/// first. At most 16 passes (float) or 32 (double) over the row. REQUIRES: 0 <= removed < n.
template <class T>
Cut<T> cut_lowest(const T* row, std::int64_t n, std::int64_t removed);

}  // namespace carnot::kernel
