#include "carnot/retrieval/bm25/passage_row.h"

#include "carnot/core/base/json.h"

namespace carnot {
namespace {

const std::string* passage_text(const Json& row, const char* key) {
  const auto found = row.find(key);
  return found == row.end() ? nullptr : found->get_ptr<const std::string*>();
}

}  // namespace

Result<PassageRow> parse_passage_row(std::string_view line, std::uint64_t number, const std::string& where) {
  CARNOT_ASSIGN_OR_RETURN(const auto row, parse_json_object(line, where));
  PassageRow passage{.id = std::to_string(number)};
  if (const auto id = row.find("id"); id != row.end() && !id->is_null()) {
    if (!id->is_string() && !id->is_number_integer())
      return Error{where + ": id: expected a string or an integer, found " + shown(*id)};
    passage.id = id->is_string() ? id->get<std::string>() : id->dump();
  }
  if (const std::string* contents = passage_text(row, "contents")) {
    passage.contents = *contents;
    return passage;
  }
  for (const char* key : {"text", "content", "passage"}) {
    const std::string* text = passage_text(row, key);
    if (text == nullptr) continue;
    const std::string* title = passage_text(row, "title");
    passage.contents = title == nullptr ? *text : "\"" + *title + "\"\n" + *text;
    return passage;
  }
  return Error{where + ": expected a string under contents, text, content or passage"};
}

}  // namespace carnot
