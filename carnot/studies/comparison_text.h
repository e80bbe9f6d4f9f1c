// studies/comparison_text.h -- what the Markdown file and the page of a comparison both say.
#pragma once

#include <string>
#include <vector>

#include "carnot/studies/comparison_results.h"
#include "carnot/view/chart/table.h"

namespace carnot {

/// What was compared, and how much of it is finished.
std::string introduction(const Comparison& comparison);

/// A row per method: means over seeds with their intervals, and the paired difference to the base.
Table comparison_table(const Comparison& comparison);

/// Success after training, a column per seed.
Table seeds_table(const Comparison& comparison);

/// True if runs were evaluated while they trained.
bool has_peaks(const Comparison& comparison);
/// The best evaluation of each run next to its last one. REQUIRES has_peaks().
Table peak_table(const Comparison& comparison);
/// How to read that table.
std::string peak_note();

struct Section {
  std::string title{};
  std::vector<std::string> lines{};
};

/// The text below the table: how to read it, what is missing, and what a reader must know. Without empty sections.
std::vector<Section> remarks(const Comparison& comparison);

}  // namespace carnot
