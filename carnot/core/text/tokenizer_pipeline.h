// text/tokenizer_pipeline.h -- the normaliser, pre-tokeniser and decoder of a tokenizer.json.
//
// Included by sources only: it brings nlohmann/json.
#pragma once

#include "carnot/core/text/json_problems.h"
#include "carnot/core/text/tokenizer_file.h"

namespace carnot {

/// Fills all of `file` but the vocabulary, the merges and the added tokens from the whole tokenizer.json; adds a
/// problem for each part that is not computed here.
void read_pipeline(const Json& json, TokenizerFile& file, JsonProblems& problems);

}  // namespace carnot
