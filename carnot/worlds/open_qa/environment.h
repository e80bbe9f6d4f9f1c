// worlds/open_qa/environment.h -- real questions answered with a search over real passages, in the words of three code
// bases.
//
// Each protocol is its own environment over what they share: the question, the retriever, what was searched and
// how an answer is graded. A retriever that is away or damaged makes the trajectory an infrastructure failure
// (RetrieverFailure leaves step()).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "carnot/core/base/fields.h"
#include "carnot/core/env/environment.h"
#include "carnot/retrieval/bm25/analyzer.h"
#include "carnot/retrieval/retriever/retriever.h"
#include "carnot/worlds/task_rows/rows.h"

namespace carnot {

enum class QaProtocol : std::uint8_t {
  SearchR1,   ///< tags search, information, answer; one running message
  Arpo,       ///< tags search, result, answer with a box; one running message (ARPO, AEPO, A2TGPO)
  VerlAgent,  ///< tags search, information, answer; a fresh prompt with memory for each step
};

enum class QaReward : std::uint8_t { ExactMatch, F1, Contains };

struct OpenQaOptions {
  std::string task_source{};
  std::string train_file{};
  std::string test_file{};
  std::string question{};
  std::string answer{};
  std::string retriever{};
  IndexWords index_words = IndexWords::English;
  double k1 = 0.9;
  double b = 0.4;
  int index_threads = 1;
  std::string encoder{};
  bool approximate = false;
  std::string query_prefix{};
  std::string passage_prefix{};
  int passages = 3;
  double timeout = 60;
  QaProtocol protocol = QaProtocol::SearchR1;
  int max_searches = 0;
  int max_response_tokens = 500;
  int longest_result = 0;
  int history_length = 4;
  QaReward reward = QaReward::ExactMatch;
  bool format_scores = false;
  double format_reward = -1;
  double penalty = 0.01;

  void fields(FieldVisitor& visit);
  /// Searches an episode may make: what the recipe says, or else what the protocol's authors allow.
  int searches() const;
};

/// What the episodes of one factory share.
struct OpenQaWorld {
  OpenQaOptions options{};
  std::vector<DatasetRow> train{}, test{};  ///< answers are split and never empty
  std::shared_ptr<const Retriever> retriever{};
};

/// An episode of the protocol that the options name. `row` is one of the world's.
std::unique_ptr<Environment> make_open_qa_episode(std::shared_ptr<const OpenQaWorld> world, const DatasetRow& row);

/// `row` with the gold answers that `<|answer_split|>` joins as separate answers.
void split_joined_answers(DatasetRow& row);

}  // namespace carnot
