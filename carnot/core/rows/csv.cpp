#include "carnot/core/rows/csv.h"

namespace carnot {
namespace {

/// What separates the fields of the header, and thus of all records.
char csv_separator(std::string_view text) {
  std::ptrdiff_t commas = 0, semicolons = 0;
  bool quoted = false;
  for (const char c : text) {
    if (c == '\n' && !quoted) break;
    if (c == '"') quoted = !quoted;
    commas += !quoted && c == ',' ? 1 : 0;
    semicolons += !quoted && c == ';' ? 1 : 0;
  }
  return semicolons > commas ? ';' : ',';
}

}  // namespace

Result<std::vector<std::vector<std::string>>> parse_csv(std::string_view text, const std::string& name) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  const char separator = csv_separator(text);
  std::vector<std::vector<std::string>> records;
  std::vector<std::string> record{""};
  bool quoted = false, was_quoted = false;
  int line = 1, quote_line = 1;
  const auto end_record = [&] {
    if (record.size() > 1 || !record.front().empty() || was_quoted) records.push_back(std::move(record));
    record = {""};
    was_quoted = false;
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\n') ++line;
    if (quoted) {
      if (c != '"')
        record.back() += c;
      else if (i + 1 < text.size() && text[i + 1] == '"')
        record.back() += text[++i];
      else
        quoted = false;
    } else if (c == '"' && record.back().empty()) {
      quoted = was_quoted = true;
      quote_line = line;
    } else if (c == separator) {
      record.emplace_back();
    } else if (c == '\n') {
      end_record();
    } else if (c != '\r' || i + 1 == text.size() || text[i + 1] != '\n') {
      record.back() += c;
    }
  }
  if (quoted) return Error{name + ":" + std::to_string(quote_line) + ": a quoted field without its end"};
  end_record();
  return records;
}

}  // namespace carnot
