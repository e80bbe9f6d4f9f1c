#include "carnot/core/text/tokenize_lines.h"

#include <istream>
#include <ostream>

#include "carnot/core/base/file.h"
#include "carnot/core/text/json_problems.h"

namespace carnot {
namespace {

Result<Json> encode_line(const Tokenizer& tokenizer, const Json& line) {
  if (!line.is_string()) return Error{"expected a JSON string, got " + shown(line)};
  CARNOT_ASSIGN_OR_RETURN(const auto ids, tokenizer.try_encode(line.get_ref<const std::string&>()));
  return Json(ids);
}

Result<Json> decode_line(const Tokenizer& tokenizer, const Json& line) {
  if (!line.is_array()) return Error{"expected a JSON array of token ids, got " + shown(line)};
  std::vector<TokenId> ids;
  for (const Json& value : line) {
    const auto id = value.is_number_integer() ? value.get<std::int64_t>() : -1;
    if (id < 0 || id >= tokenizer.vocab_size() || !tokenizer.has(static_cast<TokenId>(id)))
      return Error{shown(value) + " is not a token id"};
    ids.push_back(static_cast<TokenId>(id));
  }
  return Json(tokenizer.decode_whole(ids));
}

template <class Convert>
Status convert_lines(std::istream& in, std::ostream& out, Convert&& convert) {
  std::string line;
  for (int number = 1;; ++number) {
    const std::string where = "line " + std::to_string(number);
    const auto got = read_line(in, line);
    if (!got) return Error{where + ": " + got.error().message};
    if (!*got) return Done{};
    CARNOT_ASSIGN_OR_RETURN(const auto value, parse_json(line, where));
    const auto converted = convert(value);
    if (!converted) return Error{where + ": " + converted.error().message};
    out << json_line(*converted) << '\n' << std::flush;
    if (!out) return Error{where + ": the result cannot be written"};
  }
}

}  // namespace

Status encode_lines(const Tokenizer& tokenizer, std::istream& in, std::ostream& out) {
  return convert_lines(in, out, [&](const Json& line) { return encode_line(tokenizer, line); });
}

Status decode_lines(const Tokenizer& tokenizer, std::istream& in, std::ostream& out) {
  return convert_lines(in, out, [&](const Json& line) { return decode_line(tokenizer, line); });
}

}  // namespace carnot
