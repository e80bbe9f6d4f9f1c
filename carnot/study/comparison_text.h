// study/comparison_text.h -- what the Markdown file and the page of a comparison both say.
#pragma once

#include <string>
#include <vector>

#include "carnot/chart/table.h"
#include "carnot/study/comparison_results.h"

namespace carnot {

/// What was compared, and how much of it is there.
std::string introduction(const Comparison& comparison);

/// A row per method: means over seeds with their intervals, and the paired difference to the base.
Table comparison_table(const Comparison& comparison);

/// Success after training, a column per seed.
Table seeds_table(const Comparison& comparison);

struct Section {
  std::string title{};
  std::vector<std::string> lines{};
};

/// What stands below the table: how to read it, what is missing, and what a reader must know. Without empty sections.
std::vector<Section> remarks(const Comparison& comparison);

}  // namespace carnot
