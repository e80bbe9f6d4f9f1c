// worlds/open_qa/environment.h -- real questions answered with a search over real passages, in the words of three code
// bases.
//
// Each protocol is its own environment over what they share: the question, the retriever, what was searched and
// how an answer is graded. A retriever that is away or damaged makes the trajectory an infrastructure failure
// (RetrieverFailure leaves step()).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "carnot/core/env/environment.h"
#include "carnot/retrieval/retriever/retriever.h"
#include "carnot/worlds/open_qa/options.h"
#include "carnot/worlds/task_rows/rows.h"

namespace carnot {

/// What the episodes of one factory share.
struct OpenQaWorld {
  OpenQaOptions options{};
  std::vector<DatasetRow> train{}, test{};  ///< answers are split and never empty
  std::shared_ptr<const Retriever> retriever{};
};

/// An episode of the protocol that the options name. `row` is one of the world's.
std::unique_ptr<Environment> make_open_qa_episode(std::shared_ptr<const OpenQaWorld> world, const DatasetRow& row);

/// `row` with the gold answers that `<|answer_split|>` joins as answers of their own.
void split_joined_answers(DatasetRow& row);

}  // namespace carnot
