// method/method.h -- a method is data: it fills four slots. The trainer reads the slots and knows no paper's name.
//
// What a method needs is stated once, where it is read: credit rules and the objective name their columns, and
// measurements() follows from those. What branch policies look at, the entropies of turns, every rollout has.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "carnot/base/fields.h"
#include "carnot/base/result.h"
#include "carnot/branch/branch.h"
#include "carnot/credit/rule.h"
#include "carnot/data/measurement.h"
#include "carnot/filter/filter.h"
#include "carnot/method/options.h"
#include "carnot/objective/options.h"

namespace carnot {

/// What makes the value of a key impossible in a composition.
struct SettingProblem {
  std::string key{};  ///< as a recipe names it
  std::string why{};
};

struct Method {
  std::string name{};
  std::shared_ptr<const BranchPolicy> branch{};
  GroupFilter filter{};
  std::vector<CreditRule> credit{};
  InfoGainOptions info_gain{};  ///< how the gains that its rules read are measured
  ObjectiveOptions objective{};
  std::vector<SettingProblem> problems{};  ///< refused by the caller that builds the method
  std::vector<std::string> warnings{};     ///< combinations that work against each other, with the reason
};

/// True once a base has written its credit rules.
inline bool has_base(const Method& method) { return !method.credit.empty(); }

/// Whether no trajectory that is alone in its group gets any credit.
bool needs_siblings(const Method& method);

/// What has to be measured on finished trajectories before the credit rules and the update can run. Call it after the
/// recipe's `objective.*` keys have been read.
std::set<Measurement> measurements(const Method& method);

/// The rules to run: the method's, with `kl_in_reward` of the old policy's KL to the reference before them where it is
/// not 0. The coefficient is an argument because it may adapt.
std::vector<CreditRule> credit_chain(const Method& method, double kl_in_reward);

/// Where a method may appear in `a + b + c`.
enum class MethodKind {
  Base,    ///< alone, or first
  AddOn,   ///< after a base
  Either,  ///< both: it brings a base where no base precedes it
};

struct MethodEntry {
  std::string_view name;
  std::unique_ptr<MethodOptions> (*make)();
  MethodKind kind;
  std::string_view paper;  ///< arXiv number
  std::string_view summary;

  bool is_base() const { return kind != MethodKind::AddOn; }
  bool is_add_on() const { return kind != MethodKind::Base; }
  std::span<const PresetEntry> presets() const;  ///< the first is the default
};

/// Every method there is. Adding one: one file here, and its line in methods.cpp.
const std::vector<MethodEntry>& methods();

/// A parsed `a + b + c`: the options of each part, in order. Unknown names are answered with the known ones; a
/// composition that does not start with a base, names a method twice, has a second method that is no add-on, or
/// two that both decide where rollouts branch, is refused.
struct MethodRecipe {
  std::vector<std::string> names{};
  std::vector<std::unique_ptr<MethodOptions>> parts{};

  /// Options of part `name` under `name.`: `method.aem.lambda`.
  void fields(FieldVisitor& visit);

  /// The options of parts[i], without its name.
  void part_fields(std::size_t i, FieldVisitor& visit);

  /// True where some part has this option, named without the part's name, and reads it.
  bool reads(std::string_view option);

  /// Keys, as in fields(), that nothing reads in this composition, with the reason. Those too that a method shows only
  /// where it is the base.
  UnreadKeys unread_keys() const;
};
Result<MethodRecipe> parse_method(std::string_view composition);

/// Runs compose() of every part in order, lets `adjust` lay a recipe's own `objective.*` and `filter.*` keys over what
/// the parts ask for, and collects the problems and warnings of the result.
Method build_method(const MethodRecipe& recipe, const std::function<void(Method&)>& adjust = {});

}  // namespace carnot
