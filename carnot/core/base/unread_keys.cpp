#include "carnot/core/base/unread_keys.h"

#include <algorithm>

namespace carnot {
namespace {

class FieldNames final : public FieldVisitor {
 public:
  using FieldVisitor::field;
  void field(std::string_view name, bool&, std::string_view) override { add(name); }
  void field(std::string_view name, std::int64_t&, std::string_view, const Limits&) override { add(name); }
  void field(std::string_view name, double&, std::string_view, const Limits&) override { add(name); }
  void field(std::string_view name, std::string&, std::string_view, const Limits&) override { add(name); }
  void field(std::string_view name, std::vector<double>&, std::string_view, const Limits&) override { add(name); }
  void field(std::string_view name, std::vector<std::string>&, std::string_view, const Limits&) override { add(name); }
  void begin_section(std::string_view name, std::string_view) override {
    prefixes_.push_back(prefixes_.back() + std::string(name) + ".");
  }
  void end_section() override { prefixes_.pop_back(); }

  std::vector<std::string> names{};

 private:
  void add(std::string_view name) { names.push_back(prefixes_.back() + std::string(name)); }

  std::vector<std::string> prefixes_{""};
};

std::string below(std::string_view section, std::string_view key) {
  return section.empty() ? std::string(key) : std::string(section) + "." + std::string(key);
}

}  // namespace

void UnreadKeys::add(std::initializer_list<std::string_view> keys, std::string_view why) {
  for (const std::string_view key : keys) keys_.push_back({.key = std::string(key), .why = std::string(why)});
}

void UnreadKeys::add(const UnreadKeys& nested, std::string_view section) {
  for (const UnreadKey& unread : nested) keys_.push_back({.key = below(section, unread.key), .why = unread.why});
}

void UnreadKeys::add_visited(const std::function<void(FieldVisitor&)>& fields, std::string_view section,
                             std::string_view why) {
  for (const std::string& name : field_names(fields))
    keys_.push_back({.key = below(section, name), .why = std::string(why)});
}

bool UnreadKeys::contains(std::string_view key) const {
  return std::any_of(keys_.begin(), keys_.end(), [&](const UnreadKey& unread) { return unread.key == key; });
}

std::vector<std::string> field_names(const std::function<void(FieldVisitor&)>& fields) {
  FieldNames visitor;
  fields(visitor);
  return visitor.names;
}

}  // namespace carnot
