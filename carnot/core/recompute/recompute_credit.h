// recompute/recompute_credit.h -- a method's credit for rollouts that exist already: `carnot credit FILE --method M`.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "carnot/core/base/result.h"
#include "carnot/core/config/printer.h"
#include "carnot/core/credit/chain_record.h"
#include "carnot/core/data/rollout_file.h"
#include "carnot/core/data/trajectory.h"
#include "carnot/core/method/method.h"

namespace carnot {

struct CreditRequest {
  std::filesystem::path file{};
  std::string method{};
  /// `key=value`: a recipe's `method.`, `filter.` and `objective.` keys. `method.` may be left out, and so may the
  /// method's name before its options.
  std::vector<std::string> overrides{};
};

/// The method of a request. Every problem at once.
Result<Method> read_method(const CreditRequest& request);

/// Its options and those of its objective, by the keys that a request takes: "aem.lambda", "objective.clip_low".
Result<std::vector<FieldRow>> method_settings(const CreditRequest& request);

/// A file's rows, and what a method decides about them. Can be moved, not copied: `all` points into `file`.
struct CreditedRows {
  CreditedRows() = default;
  CreditedRows(CreditedRows&&) = default;

  Method method{};
  std::string text{};  ///< of the whole file
  RolloutFile file{};
  std::vector<Trajectory> all{};
  CreditTable credit{};
};

/// A signal that `reader` needs measured on the sampled tokens of every included trajectory.
struct ColumnNeed {
  Column column = Column::Reward;
  std::string reader{};
  bool any_token = false;  ///< some values suffice
};

/// What is read next to what the method's own rules read.
using FurtherNeeds = std::function<std::vector<ColumnNeed>(const Method& method)>;

/// Each training step of the file is its own batch, as it was when it was trained: no statistic reaches over two.
/// Every field that is needed and a row lacks is named with the first such line.
Result<CreditedRows> credit_rows(const CreditRequest& request, const FurtherNeeds& further = {});

/// The same for rows that are in memory, one JSON object per line; messages call them request.file.
Result<CreditedRows> credit_rows_of(const CreditRequest& request, std::string text, const FurtherNeeds& further = {});

/// The method's chain over the rows, rule by rule, each training step its own batch. Names every field that a rule
/// reads and a row lacks, as above. The credit is rows.credit if that is the method's.
Result<std::vector<RuleRecord>> record_rows(const CreditedRows& rows, const std::string& name);

/// Lists to add to a row by name, one entry per token. NaN and the empty word become null.
using TokenLists = std::map<std::string, std::variant<std::vector<double>, std::vector<std::string>>>;

/// The rows of the file, in its order, with `advantage`, `weight`, `clip_scale` and `value_target` as the method
/// decides, `dropped` where its filter does, and `further` (empty, or by trajectory); other fields stay.
std::string written_rows(const CreditedRows& rows, std::span<const TokenLists> further = {});

}  // namespace carnot
