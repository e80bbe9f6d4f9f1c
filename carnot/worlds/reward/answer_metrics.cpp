#include "carnot/worlds/reward/answer_metrics.h"

#include <utf8proc.h>

#include <algorithm>
#include <map>

#include "carnot/core/base/strings.h"

namespace carnot {
namespace {

// One character of a string; `code` is -1 for a byte that is not UTF-8.
struct Character {
  utf8proc_int32_t code = -1;
  std::size_t length = 1;
};

Character character_at(std::string_view text, std::size_t at) {
  Character character;
  const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data() + at);
  const auto length = utf8proc_iterate(bytes, static_cast<utf8proc_ssize_t>(text.size() - at), &character.code);
  if (length <= 0) return {};
  character.length = static_cast<std::size_t>(length);
  return character;
}

bool is_ascii_punctuation(utf8proc_int32_t code) {
  return (code >= '!' && code <= '/') || (code >= ':' && code <= '@') || (code >= '[' && code <= '`') ||
         (code >= '{' && code <= '~');
}

bool is_space(utf8proc_int32_t code) {
  if (code < 0) return false;
  if (code < 128) return code == ' ' || (code >= '\t' && code <= '\r') || (code >= 0x1c && code <= 0x1f);
  if (code == 0x85) return true;
  const auto category = utf8proc_category(code);
  return category == UTF8PROC_CATEGORY_ZS || category == UTF8PROC_CATEGORY_ZL || category == UTF8PROC_CATEGORY_ZP;
}

bool is_letter_or_number(utf8proc_int32_t code) {
  if (code < 0) return false;
  const auto category = utf8proc_category(code);
  return (category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO) ||
         (category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_NO);
}

std::string lower_without_punctuation(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const Character character = character_at(text, at);
    if (character.code < 0) {
      out += text[at];
    } else if (!is_ascii_punctuation(character.code)) {
      utf8proc_uint8_t bytes[4];
      const auto length = utf8proc_encode_char(utf8proc_tolower(character.code), bytes);
      out.append(reinterpret_cast<const char*>(bytes), length);
    }
    at += character.length;
  }
  return out;
}

bool is_article(std::string_view word) { return word == "a" || word == "an" || word == "the"; }

// Articles become a blank; everything that is no letter or number ends a word, white space or not.
std::string without_articles(std::string_view text) {
  std::string out, word;
  const auto end_word = [&] {
    out += is_article(word) ? " " : word;
    word.clear();
  };
  for (std::size_t at = 0; at < text.size();) {
    const Character character = character_at(text, at);
    const auto bytes = text.substr(at, character.length);
    if (is_letter_or_number(character.code)) {
      word += bytes;
    } else {
      end_word();
      if (is_space(character.code))
        out += ' ';
      else
        out += bytes;
    }
    at += character.length;
  }
  end_word();
  return out;
}

std::vector<std::string> blank_separated(std::string_view text) {
  std::vector<std::string> words;
  for (std::size_t begin = 0; begin < text.size();) {
    const auto end = std::min(text.find(' ', begin), text.size());
    if (end > begin) words.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

double f1_of(const std::string& prediction, const std::string& gold) {
  const auto is_verdict = [](const std::string& text) { return text == "yes" || text == "no" || text == "noanswer"; };
  if (prediction != gold && (is_verdict(prediction) || is_verdict(gold))) return 0;
  const auto predicted = blank_separated(prediction), wanted = blank_separated(gold);
  std::map<std::string, int> left;
  for (const auto& word : wanted) ++left[word];
  int common = 0;
  for (const auto& word : predicted)
    if (left[word]-- > 0) ++common;
  return common == 0 ? 0 : 2.0 * common / static_cast<double>(predicted.size() + wanted.size());
}

}  // namespace

std::string normalize_answer(std::string_view text) {
  std::string out;
  for (const auto& word : blank_separated(without_articles(lower_without_punctuation(text))))
    out += (out.empty() ? "" : " ") + word;
  return out;
}

bool exact_match(std::string_view prediction, std::span<const std::string> golds) {
  const std::string normal = normalize_answer(prediction);
  return std::ranges::any_of(golds, [&](const auto& gold) { return normal == normalize_answer(gold); });
}

bool contains_answer(std::string_view prediction, std::span<const std::string> golds) {
  const std::string normal = normalize_answer(prediction);
  return std::ranges::any_of(
      golds, [&](const auto& gold) { return normal.find(normalize_answer(gold)) != std::string::npos; });
}

double answer_f1(std::string_view prediction, std::span<const std::string> golds) {
  const std::string normal = normalize_answer(prediction);
  double best = 0;
  for (const auto& gold : golds) best = std::max(best, f1_of(normal, normalize_answer(gold)));
  return best;
}

std::vector<std::string> split_gold_answers(std::string_view joined) {
  constexpr std::string_view kSplit = "<|answer_split|>";
  std::vector<std::string> golds;
  while (true) {
    const auto at = joined.find(kSplit);
    golds.emplace_back(trim(joined.substr(0, at)));
    if (at == std::string_view::npos) return golds;
    joined.remove_prefix(at + kSplit.size());
  }
}

std::optional<std::string> boxed_content(std::string_view text) {
  constexpr std::string_view kBox = "\\boxed{";
  const auto box = text.rfind(kBox);
  if (box == std::string_view::npos) return std::nullopt;
  const auto begin = box + kBox.size();
  int depth = 1;
  for (auto at = begin; at < text.size(); ++at) {
    if (text[at] == '\\')
      ++at;
    else if (text[at] == '{')
      ++depth;
    else if (text[at] == '}' && --depth == 0)
      return std::string(trim(text.substr(begin, at - begin)));
  }
  return std::nullopt;
}

}  // namespace carnot
