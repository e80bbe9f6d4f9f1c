// cli/trajectory_view.h -- rollouts as text for a terminal: a line each, or one with its spans and numbers.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "carnot/core/base/result.h"
#include "carnot/core/data/credit_table.h"
#include "carnot/core/data/rollout_file.h"
#include "carnot/core/text/tokenizer.h"

namespace carnot {

/// A table with one line per trajectory; the first column is its line in the file.
std::string trajectory_list(const RolloutFile& file);

/// Which trajectory this is, how it ended, and its turns.
std::string trajectory_facts(const Trajectory& trajectory);

/// The text span by span. In colour: as it is, each kind in its own, below a legend. Otherwise each line follows
/// the kind of its span, and a line break that belongs to the text is shown as \n. REQUIRES: the tokenizer has every
/// token.
std::string span_text(const Trajectory& trajectory, const Tokenizer& tokenizer, bool colour);

/// The names that token_table accepts: signals as rollout rows call them, credit, what `credit --explain` writes.
std::vector<std::string> token_columns();

/// A table of the sampled tokens: position, turn, kind, id, text (where there is a tokenizer), then the chosen
/// columns, or all that the file has if none are chosen. `credit` may be null; `line` is the trajectory's row.
/// REQUIRES: columns are some of token_columns().
std::string token_table(const Trajectory& trajectory, const Credit* credit, std::string_view line,
                        const Tokenizer* tokenizer, const std::vector<std::string>& columns);

}  // namespace carnot
