// serving/imported/rollout_format.h -- rollouts as other systems write them, record by record.
//
// A format is a row of the table in rollout_format.cpp: the fields that tell it, and a function from a record to what
// all formats have in common.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "carnot/core/base/result.h"
#include "carnot/core/data/tokens.h"
#include "carnot/core/data/tree.h"
#include "carnot/core/rows/conversation.h"

namespace carnot {

/// One trajectory of another system. It has a conversation, tokens, two texts, or nothing if it failed before a
/// response.
struct ImportedRollout {
  std::string task{};     ///< rows of one task and step are a group; empty: those with equal beginnings
  std::int64_t step = 0;  ///< as that system counts
  std::optional<Conversation> conversation{};
  std::string prompt{}, response{};                   ///< as texts, whose control tokens may be gone
  std::vector<TokenId> prompt_ids{}, response_ids{};  ///< as tokens
  std::vector<bool> sampled{};                        ///< of response_ids; empty: all
  std::vector<std::vector<double>> log_probs{};       ///< of the sampled tokens, by response; empty if there are none
  double score = 0;
  Outcome outcome = Outcome::Finished;
  std::vector<std::string> truths{};
  std::map<std::string, double> measures{};
  std::map<std::string, std::string> info{};
};

struct RolloutFormat {
  std::string_view name;
  std::string_view what;  ///< for people: whose files these are
  bool (*is)(const nlohmann::ordered_json& record);
  /// Adds to `problems` what is wrong with a record, each beginning with `where`, and returns nothing then.
  std::optional<ImportedRollout> (*read)(const nlohmann::ordered_json& record, const std::string& where,
                                         std::vector<std::string>& problems);
  bool sums_measures = false;  ///< it writes no score of its own
};

/// All formats. To add one: its function, and its row.
std::span<const RolloutFormat> rollout_formats();

struct ImportedRollouts {
  const RolloutFormat* format = nullptr;
  std::vector<ImportedRollout> rollouts{};
  std::vector<std::string> lines{};  ///< where each of them is: "rows.jsonl:3: "
};

/// The records of a text: rows (rows/row_file.h), or a log of Inspect, a JSON object with `samples`. `format`: a name
/// of the table; empty: the first of which the first record is. The error has all problems with their lines.
Result<ImportedRollouts> parse_rollouts(std::string_view text, const std::string& name, const std::string& format);

}  // namespace carnot
