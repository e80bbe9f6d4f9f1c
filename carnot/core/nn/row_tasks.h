// nn/row_tasks.h -- rows of a batch, shared out among the kernel threads in ranges of a fixed size, so that no result
// depends on the thread count. Internal to the room.
#pragma once

#include <algorithm>
#include <cstdint>

#include "carnot/core/base/thread_pool.h"

namespace carnot {

/// body(begin, end) for ranges of at most `rows_per_task` rows.
template <class Body>
void for_row_ranges(std::int64_t rows, std::int64_t rows_per_task, const Body& body) {
  kernel_pool().run((rows + rows_per_task - 1) / rows_per_task,
                    [&](std::int64_t task) { body(task * rows_per_task, std::min(rows, (task + 1) * rows_per_task)); });
}

/// body(row) for every row, by the same ranges.
template <class Body>
void for_each_row(std::int64_t rows, std::int64_t rows_per_task, const Body& body) {
  for_row_ranges(rows, rows_per_task, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) body(row);
  });
}

}  // namespace carnot
