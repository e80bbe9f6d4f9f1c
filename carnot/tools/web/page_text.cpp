#include "carnot/tools/web/page_text.h"

#include <gumbo.h>
#include <iconv.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory_resource>
#include <optional>
#include <set>
#include <vector>

#include "carnot/core/base/strings.h"
#include "carnot/core/base/utf8.h"

namespace carnot {
namespace {

constexpr double kLeastOverlap = 0.2;
constexpr std::size_t kSearchedCharacters = 50'000;
constexpr std::size_t kSniffedBytes = 1024;

bool is_tag_name_byte(char c) { return ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z') || ('0' <= c && c <= '9'); }

/// Elements that never hold others of their kind: they have no end, or the next one ends them.
bool closes_itself(std::string_view name) {
  static constexpr std::array<std::string_view, 21> kNames = {
      "area", "base", "br",     "col", "dd",    "dt",     "embed", "hr", "img", "input", "li",
      "link", "meta", "option", "p",   "param", "source", "td",    "th", "tr",  "wbr"};
  return std::ranges::find(kNames, name) != kNames.end();
}

/// `html` up to where too many elements are open. Comments and attributes count like elements: a bound, no parser.
std::string_view bounded_html(std::string_view html) {
  html = html.substr(0, kMostPageBytes);
  int open = 0;
  for (std::size_t at = html.find('<'); at != std::string_view::npos; at = html.find('<', at + 1)) {
    std::string_view rest = html.substr(at + 1);
    const bool ends = rest.starts_with('/');
    if (ends) rest.remove_prefix(1);
    const auto length = static_cast<std::size_t>(std::ranges::find_if_not(rest, is_tag_name_byte) - rest.begin());
    if (length == 0 || closes_itself(lower_case(rest.substr(0, std::min<std::size_t>(length, 8))))) continue;
    open = std::max(0, open + (ends ? -1 : 1));
    if (open > kMostOpenElements) return html.substr(0, at);
  }
  return html;
}

/// A page as gumbo's tree. Its nodes are in one arena, which is freed at once: gumbo frees a tree by recursion, for
/// which a deep page needs more stack than a thread has.
class ParsedPage {
 public:
  explicit ParsedPage(std::string_view html) {
    GumboOptions options = kGumboDefaultOptions;
    options.max_errors = 0;
    options.userdata = &arena_;
    options.allocator = [](void* arena, std::size_t size) {
      return static_cast<std::pmr::memory_resource*>(arena)->allocate(std::max<std::size_t>(size, 1));
    };
    options.deallocator = [](void*, void*) {};
    output_ = gumbo_parse_with_options(&options, html.data(), html.size());
  }

  const GumboNode* root() const { return output_ == nullptr ? nullptr : output_->root; }

 private:
  std::pmr::monotonic_buffer_resource arena_;
  GumboOutput* output_ = nullptr;
};

void add_stripped(std::string& text, std::string_view part) {
  part = stripped(part);
  if (part.empty()) return;
  if (!text.empty()) text += ' ';
  text += part;
}

bool is_left_out(const GumboNode& node) {
  if (node.type != GUMBO_NODE_ELEMENT) return node.type == GUMBO_NODE_TEMPLATE;
  const GumboTag tag = node.v.element.tag;
  return tag == GUMBO_TAG_SCRIPT || tag == GUMBO_TAG_STYLE || tag == GUMBO_TAG_TEMPLATE;
}

/// In the order of the page, without recursion.
std::string text_of_nodes(const GumboNode* root) {
  std::string text;
  std::vector<const GumboNode*> left{root};
  while (!left.empty()) {
    const GumboNode* node = left.back();
    left.pop_back();
    if (node->type == GUMBO_NODE_TEXT || node->type == GUMBO_NODE_CDATA) add_stripped(text, node->v.text.text);
    if (node->type != GUMBO_NODE_ELEMENT || is_left_out(*node)) continue;
    const GumboVector& children = node->v.element.children;
    for (unsigned i = children.length; i > 0; --i) left.push_back(static_cast<const GumboNode*>(children.data[i - 1]));
  }
  return text;
}

/// The value behind "charset=", in lower case; empty if there is none.
std::string charset_in(std::string_view text) {
  const std::string lower = lower_case(text);
  const std::size_t at = lower.find("charset=");
  if (at == std::string::npos) return "";
  std::string_view value = std::string_view(lower).substr(at + 8);
  while (!value.empty() && (value.front() == '"' || value.front() == '\'')) value.remove_prefix(1);
  const auto is_name = [](char c) { return is_tag_name_byte(c) || c == '-' || c == '_'; };
  return std::string(value.begin(), std::ranges::find_if_not(value, is_name));
}

std::optional<std::string> converted(std::string_view bytes, const std::string& charset) {
  const iconv_t converter = ::iconv_open("UTF-8", charset.c_str());
  if (converter == reinterpret_cast<iconv_t>(-1)) return std::nullopt;
  std::string input(bytes), out, piece(1 << 16, '\0');
  char* from = input.data();
  std::size_t left = input.size();
  while (left > 0) {
    char* to = piece.data();
    std::size_t room = piece.size();
    const std::size_t converted = ::iconv(converter, &from, &left, &to, &room);
    out.append(piece.data(), piece.size() - room);
    if (converted != static_cast<std::size_t>(-1) || errno == E2BIG) continue;
    out += "\uFFFD";  // a byte that is none in this set
    ++from;
    --left;
  }
  ::iconv_close(converter);
  return out;
}

std::string in_utf8(std::string_view bytes, std::string_view type) {
  bytes = bytes.substr(0, kMostPageBytes);
  std::string charset = charset_in(type);
  if (charset.empty()) charset = charset_in(bytes.substr(0, kSniffedBytes));
  if (!charset.empty() && charset != "utf-8" && charset != "utf8")
    if (auto text = converted(bytes, charset)) return std::move(*text);
  return with_replacement_characters(bytes);
}

/// Sentences end behind . ! ? and a blank, and at line breaks.
std::vector<std::string_view> sentences_of(std::string_view text) {
  std::vector<std::string_view> sentences;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool mark = text[i] == '.' || text[i] == '!' || text[i] == '?';
    const bool ends = text[i] == '\n' || (mark && (i + 1 == text.size() || text[i + 1] == ' '));
    if (!ends) continue;
    sentences.push_back(trim(text.substr(begin, i + 1 - begin)));
    begin = i + 1;
  }
  if (begin < text.size()) sentences.push_back(trim(text.substr(begin)));
  return sentences;
}

std::set<std::string> plain_words(std::string_view text) {
  constexpr std::string_view kPunctuation = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~";
  std::set<std::string> words;
  std::string word;
  const auto end_word = [&] {
    if (!word.empty()) words.insert(std::move(word));
    word.clear();
  };
  for (const char c : lower_case(text)) {
    if (c == ' ' || c == '\n' || c == '\t' || c == '\r') {
      end_word();
    } else if (kPunctuation.find(c) == std::string_view::npos) {
      word += c;
    }
  }
  end_word();
  return words;
}

double overlap(const std::set<std::string>& a, const std::set<std::string>& b) {
  const auto common = std::ranges::count_if(a, [&](const std::string& word) { return b.contains(word); });
  return a.empty() || b.empty() ? 0 : 2.0 * static_cast<double>(common) / static_cast<double>(a.size() + b.size());
}

/// The place `count` characters before `from`, and behind it.
std::size_t back_by(std::string_view text, std::size_t from, int count) {
  while (count > 0 && from > 0) {
    do --from;
    while (from > 0 && continues_character(text[from]));
    --count;
  }
  return from;
}
std::size_t forward_by(std::string_view text, std::size_t from, int count) {
  for (; count > 0 && from < text.size(); --count)
    from += static_cast<std::size_t>(first_character(text.substr(from)).length);
  return from;
}

}  // namespace

std::string html_text(std::string_view html) {
  const std::string valid = with_replacement_characters(bounded_html(html));
  const ParsedPage page(valid);
  if (page.root() == nullptr) return "";
  // Gumbo writes no UTF-8 for a character whose number overflows.
  return with_replacement_characters(text_of_nodes(page.root()));
}

Result<std::string> page_text(const HttpAnswer& answer) {
  const std::string* header = find_header(answer.headers, "Content-Type");
  const std::string type = lower_case(header == nullptr ? "text/html" : trim(*header));
  const std::string text = in_utf8(answer.body, type);
  if (type.starts_with("text/html") || type.starts_with("application/xhtml")) return html_text(text);
  if (type.starts_with("text/") || type.starts_with("application/json") || type.starts_with("application/xml"))
    return std::string(stripped(text));
  return Error{"a page of type " + type.substr(0, type.find(';')) + ", of which no text is read"};
}

std::string excerpt_around(std::string_view page, std::string_view snippet, int length) {
  page = page.substr(0, forward_by(page, 0, static_cast<int>(kSearchedCharacters)));
  const auto wanted = plain_words(snippet);
  std::string_view best;
  double best_overlap = kLeastOverlap;
  for (const std::string_view sentence : sentences_of(page)) {
    const double now = overlap(wanted, plain_words(sentence));
    if (now <= best_overlap) continue;
    best_overlap = now;
    best = sentence;
  }
  if (best.empty()) return std::string(page.substr(0, forward_by(page, 0, 2 * length)));
  const auto begin = static_cast<std::size_t>(best.data() - page.data());
  const std::size_t from = back_by(page, begin, length), to = forward_by(page, begin + best.size(), length);
  return std::string(page.substr(from, to - from));
}

}  // namespace carnot
