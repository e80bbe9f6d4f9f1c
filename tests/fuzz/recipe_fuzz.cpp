// Any bytes are a recipe or a message that says where; what is printed reads back.
#include <cstddef>
#include <cstdint>

#include "carnot/core/base/check.h"
#include "carnot/core/config/printer.h"
#include "carnot/core/config/reader.h"
#include "tests/fuzz/target.h"

namespace {

struct Options {
  std::int64_t count = 1;
  double rate = 0.5;
  bool on = false;
  std::string name = "a";
  std::vector<double> numbers{};
  std::vector<std::string> words{};

  void fields(carnot::FieldVisitor& visit) {
    visit.field("count", count, "", carnot::at_least(0));
    visit.field("rate", rate, "", carnot::between(0, 1));
    visit.field("on", on, "");
    visit.field("name", name, "");
    visit.field("numbers", numbers, "");
    visit.field("words", words, "");
  }
  bool operator==(const Options&) const = default;
};

Options read(const carnot::Document& document) {
  carnot::ConfigReader reader(document);
  Options options;
  reader.read("a", options);
  const carnot::Status status = reader.finish();
  CARNOT_CHECK(status.ok() || !status.error().message.empty(), "an error says what is wrong");
  return options;
}

}  // namespace

CARNOT_FUZZ_TARGET(recipe) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto document = carnot::Document::parse(text, "/nowhere/recipe.yaml");
  if (!document.ok()) {
    CARNOT_CHECK(document.error().message.starts_with("/nowhere/recipe.yaml:"), document.error().message);
    return 0;
  }
  Options options = read(*document);
  carnot::FieldTable table;
  table.add("a", options);
  const auto printed = carnot::Document::parse(carnot::to_yaml(table), "printed.yaml");
  CARNOT_CHECK(printed.ok(), "what is printed is a recipe");
  CARNOT_CHECK(read(*printed) == options, "what is printed reads back");
  return 0;
}
