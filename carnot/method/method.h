// method/method.h -- a method is data: it fills five slots. The trainer reads the slots and knows no paper's name.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "carnot/base/fields.h"
#include "carnot/base/result.h"
#include "carnot/branch/branch.h"
#include "carnot/credit/objective_options.h"
#include "carnot/credit/rule.h"
#include "carnot/filter/filter.h"
#include "carnot/signal/signal.h"

namespace carnot {

struct Method {
  std::string name{};
  std::shared_ptr<const BranchPolicy> branch{};
  GroupFilter filter{};
  std::set<Signal> signals{};
  std::vector<CreditRule> credit{};
  ObjectiveOptions objective{};
  std::vector<std::string> warnings{};  ///< combinations that work against each other, with the reason
};

/// The options of one method; `compose` adds the method to what stands before it in `a + b + c`.
class MethodOptions {
 public:
  virtual ~MethodOptions() = default;
  virtual void fields(FieldVisitor& visit) = 0;
  virtual void compose(Method& method) const = 0;
};

struct MethodEntry {
  std::string_view name;
  std::string_view paper;    ///< arXiv number
  std::string_view summary;
  bool is_base;              ///< can stand alone; an add-on needs a base before it
  std::unique_ptr<MethodOptions> (*make)();
};

/// Every method there is. Adding one: one file here, and its line in methods.cpp.
const std::vector<MethodEntry>& methods();

/// A parsed `a + b + c`: the options of each part, in order. Unknown names are answered with the known ones; a
/// composition without a base, or with two, is refused.
struct MethodRecipe {
  std::vector<std::string> names{};
  std::vector<std::unique_ptr<MethodOptions>> parts{};

  /// Options of part `name` under `name.`: `method.aem.lambda`.
  void fields(FieldVisitor& visit);
};
Result<MethodRecipe> parse_method(std::string_view composition);

/// Runs compose() of every part in order.
Method build_method(const MethodRecipe& recipe);

}  // namespace carnot
