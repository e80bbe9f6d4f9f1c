// base/unread_keys.h -- keys of an options struct that have no effect, given its other keys.
//
// An options struct lists them next to its fields(); a recipe that sets one is refused, with the reason. A
// strength of 0 makes no key unread, because sweeps pass through 0.
#pragma once

#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "carnot/core/base/fields.h"

namespace carnot {

struct UnreadKey {
  std::string key{};  ///< dotted, as fields() names it
  std::string why{};  ///< follows "has no effect: "
};

class UnreadKeys {
 public:
  void add(std::initializer_list<std::string_view> keys, std::string_view why);

  /// Adds the unread keys of a nested struct, which is visited under `section` ("": among the struct's own fields).
  void add(const UnreadKeys& nested, std::string_view section = "");

  /// Adds every field of a nested struct.
  template <class Options>
  void add_all(Options nested, std::string_view section, std::string_view why) {
    add_visited([&](FieldVisitor& visit) { nested.fields(visit); }, section, why);
  }

  bool contains(std::string_view key) const;
  auto begin() const { return keys_.begin(); }
  auto end() const { return keys_.end(); }

 private:
  void add_visited(const std::function<void(FieldVisitor&)>& fields, std::string_view section, std::string_view why);

  std::vector<UnreadKey> keys_{};
};

/// The dotted names of all fields that `fields` visits, in order.
std::vector<std::string> field_names(const std::function<void(FieldVisitor&)>& fields);

}  // namespace carnot
