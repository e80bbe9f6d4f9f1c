// method/method.h -- a method is data: it fills four slots. The trainer reads the slots and knows no paper's name.
//
// A method's needs are stated once, where they are read: credit rules and the objective name their columns, and
// measurements() follows from those. Every rollout has the turn entropies that branch policies use.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "carnot/core/base/fields.h"
#include "carnot/core/base/result.h"
#include "carnot/core/branch/branch.h"
#include "carnot/core/credit/filter.h"
#include "carnot/core/credit/rule.h"
#include "carnot/core/data/measurement.h"
#include "carnot/core/method/options.h"
#include "carnot/core/objective/options.h"

namespace carnot {

/// Why the value of a key is impossible in a composition.
struct SettingProblem {
  std::string key{};  ///< as in a recipe
  std::string why{};
};

struct Method {
  std::string name{};
  std::shared_ptr<const BranchPolicy> branch{};
  GroupFilter filter{};
  std::vector<CreditRule> credit{};
  InfoGainOptions info_gain{};  ///< how the gains that its rules read are measured
  int continuations = 0;        ///< of each state, where its rules read Column::AdvantageOracle
  ObjectiveOptions objective{};
  std::vector<SettingProblem> problems{};  ///< the caller that builds the method refuses them
  std::vector<std::string> warnings{};     ///< combinations that work against each other, with the reason
};

/// True once a base has added its credit rules.
inline bool has_base(const Method& method) { return !method.credit.empty(); }

/// Whether a trajectory that is alone in its group gets no credit.
bool needs_siblings(const Method& method);

/// What has to be measured on finished trajectories before the credit rules and the update can run. Call it after the
/// recipe's `objective.*` keys have been read.
std::set<Measurement> measurements(const Method& method);

/// The rules to run: `kl_in_reward` of the old policy's KL to the reference, unless it is 0, followed by the method's.
/// The coefficient is an argument because it can adapt.
std::vector<CreditRule> credit_chain(const Method& method, double kl_in_reward);

/// Where a method can appear in `a + b + c`.
enum class MethodKind {
  Base,    ///< alone, or first
  AddOn,   ///< after a base
  Either,  ///< both: it adds a base if no base precedes it
};

struct MethodEntry {
  std::string_view name;
  std::unique_ptr<MethodOptions> (*make)();
  MethodKind kind;
  std::string_view paper;  ///< arXiv number
  std::string_view summary;
  bool in_all = true;  ///< false: compared only where it is named

  bool is_base() const { return kind != MethodKind::AddOn; }
  bool is_add_on() const { return kind != MethodKind::Base; }
  std::span<const PresetEntry> presets() const;  ///< the first is the default
};

/// All methods. To add one: one file here, and its line in methods.cpp.
const std::vector<MethodEntry>& methods();

/// A parsed `a + b + c`: the options of each part, in order. Errors for unknown names list the known ones. A
/// composition is refused if it does not start with a base, names a method twice, has a second method that is not an
/// add-on, or has two that both decide where rollouts branch.
struct MethodRecipe {
  std::vector<std::string> names{};
  std::vector<std::unique_ptr<MethodOptions>> parts{};

  /// Options of part `name` under `name.`: `method.aem.lambda`.
  void fields(FieldVisitor& visit);

  /// The options of parts[i], without its name.
  void part_fields(std::size_t i, FieldVisitor& visit);

  /// True if some part has this option, named without the part's name, and reads it.
  bool reads(std::string_view option);

  /// Keys, as in fields(), that nothing reads in this composition, with the reason. Includes those that a method lists
  /// only as a base.
  UnreadKeys unread_keys() const;
};
Result<MethodRecipe> parse_method(std::string_view composition);

/// Runs compose() of every part in order, lets `adjust` override the result with a recipe's `objective.*` and
/// `filter.*` keys, and collects problems and warnings.
Method build_method(const MethodRecipe& recipe, const std::function<void(Method&)>& adjust = {});

/// Why this sequence of methods is not allowed; one sentence per problem.
std::vector<std::string> composition_errors(std::span<const MethodEntry* const> entries);

/// Settings of the objective that the method's rules cannot support. Reads only the slots, so it works for any
/// composition.
std::vector<SettingProblem> composition_problems(const Method& method);

/// Combinations that are possible but work against each other, with the reason. Reads only the slots, so it works for
/// any composition.
std::vector<std::string> composition_warnings(const Method& method);

}  // namespace carnot
