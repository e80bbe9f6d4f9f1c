// method/method.h -- a method is data: it fills five slots. The trainer reads the slots and knows no paper's name.
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
#include "carnot/filter/filter.h"
#include "carnot/method/preset.h"
#include "carnot/objective/options.h"
#include "carnot/signal/signal.h"

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
  std::set<Signal> signals{};
  InfoGainOptions info_gain{};  ///< where Signal::InfoGain is asked for
  std::vector<CreditRule> credit{};
  ObjectiveOptions objective{};
  std::vector<SettingProblem> problems{};  ///< whoever builds the method refuses them
  std::vector<std::string> warnings{};     ///< combinations that work against each other, with the reason
};

/// True once a base has written its credit rules.
inline bool has_base(const Method& method) { return !method.credit.empty(); }

/// What the method asks for together with what its rules and its objective need (KL: Reference, a critic: Value). Call
/// it after the recipe's `objective.*` keys have been read.
std::set<Signal> required_signals(const Method& method);

/// The rules to run: the method's, with `kl_in_reward` of the old policy's KL to the reference before them where it is
/// not 0. The coefficient is an argument because it may adapt.
std::vector<CreditRule> credit_chain(const Method& method, double kl_in_reward);

/// The options of one method; `compose` adds the method to what stands before it in `a + b + c`. The first base
/// sets ratio, clip, reduction and KL; an add-on changes its own slots only.
class MethodOptions {
 public:
  virtual ~MethodOptions() = default;
  virtual void fields(FieldVisitor& visit) = 0;
  /// Of a method that is both: the further fields of the base that it brings. As an add-on it does not have them.
  virtual void base_fields(FieldVisitor&) {}
  /// Those of its fields that nothing reads as the others stand.
  virtual UnreadKeys unread_keys() const { return {}; }
  virtual void compose(Method& method) const = 0;
};

struct MethodEntry {
  std::string_view name;
  std::string_view paper;  ///< arXiv number
  std::string_view summary;
  bool is_base;    ///< can stand alone, or first
  bool is_add_on;  ///< can follow a base. Some methods are both: they bring a base where none stands before them
  std::span<const PresetEntry> presets;  ///< the first is the default
  std::unique_ptr<MethodOptions> (*make)();
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

  /// Keys, as in fields(), that nothing reads in this composition, base_fields() of add-ons included, with the reason.
  UnreadKeys unread_keys() const;
};
Result<MethodRecipe> parse_method(std::string_view composition);

/// Runs compose() of every part in order, lets `adjust` lay a recipe's own `objective.*` and `filter.*` keys over what
/// the parts ask for, and collects the problems and warnings of the result.
Method build_method(const MethodRecipe& recipe, const std::function<void(Method&)>& adjust = {});

}  // namespace carnot
