#include "carnot/tools/mcp/command_words.h"

#include <utility>

namespace carnot {

Result<std::vector<std::string>> command_words(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  bool in_word = false;
  char quote = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\\' && quote != '\'' && i + 1 < text.size()) {
      word += text[++i];
      in_word = true;
    } else if (quote != 0 ? c == quote : c == '\'' || c == '"') {
      quote = quote != 0 ? 0 : c;
      in_word = true;
    } else if (quote == 0 && (c == ' ' || c == '\t' || c == '\n')) {
      if (in_word) words.push_back(std::exchange(word, {}));
      in_word = false;
    } else {
      word += c;
      in_word = true;
    }
  }
  if (quote != 0) return Error{std::string("a quote ") + quote + " does not end"};
  if (in_word) words.push_back(std::move(word));
  return words;
}

}  // namespace carnot
