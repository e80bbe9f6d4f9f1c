#include "carnot/core/text/template_marks.h"

#include <algorithm>
#include <charconv>
#include <random>

#include "carnot/core/base/check.h"
#include "carnot/core/base/utf8.h"
#include "carnot/core/text/spaced_json.h"

namespace carnot {
namespace {

constexpr std::size_t kSecretLetters = 28;  // 131 bits
constexpr std::size_t kIndexDigits = 6;
constexpr char kOpens = 'b', kCloses = 'e', kHides = 'h';

std::string drawn_letters() {
  std::random_device source;
  std::uniform_int_distribution<int> letter('a', 'z');
  std::string letters;
  while (letters.size() < kSecretLetters) letters += static_cast<char>(letter(source));
  return letters;
}

/// Blanks at both ends of a content.
struct OuterBlanks {
  std::string_view before{}, after{};
};
OuterBlanks outer_blanks(std::string_view content) {
  const std::string_view inner = stripped(content);
  if (inner.empty()) return {};
  const auto begin = static_cast<std::size_t>(inner.data() - content.data());
  return {.before = content.substr(0, begin), .after = content.substr(begin + inner.size())};
}

bool has_outer_blanks(std::string_view content) {
  const OuterBlanks blanks = outer_blanks(content);
  return !blanks.before.empty() || !blanks.after.empty();
}

/// `tojson` without the quotes.
std::string escaped(std::string_view text) {
  const std::string quoted = quoted_json(text);
  return quoted.substr(1, quoted.size() - 2);
}

}  // namespace

/// A rendering without its marks.
struct TemplateMarks::Taken {
  std::string text{};
  std::vector<ContentRange> contents{};
  std::vector<std::size_t> broken{};  // messages whose marks are not where they were put, once each
};

TemplateMarks::TemplateMarks(std::vector<std::string> control_tokens)
    : control_tokens_(std::move(control_tokens)), secret_(drawn_letters()) {
  // Of two that begin alike the longer one counts.
  std::stable_sort(control_tokens_.begin(), control_tokens_.end(),
                   [](const std::string& a, const std::string& b) { return a.size() > b.size(); });
}

std::string TemplateMarks::mark(char kind, std::size_t index) const {
  std::string digits = std::to_string(index);
  CARNOT_CHECK(digits.size() <= kIndexDigits, "too many messages or control tokens");
  digits.insert(0, kIndexDigits - digits.size(), '0');
  return secret_ + kind + digits;
}

TemplateInput TemplateMarks::hidden(TemplateInput input, bool hides) const {
  const auto hide = [&](std::string& text) {
    text = with_replacement_characters(text);
    for (std::size_t i = 0; hides && i < control_tokens_.size(); ++i)
      for (auto at = text.find(control_tokens_[i]); at != std::string::npos; at = text.find(control_tokens_[i], at))
        text.replace(at, control_tokens_[i].size(), mark(kHides, i));
  };
  for (Message& message : input.messages) {
    hide(message.content);
    hide(message.tool_call_id);
    for (ToolCall& call : message.tool_calls) {
      call.arguments = spaced_json(call.arguments);  // without \u escapes, behind which a control token could hide
      for (std::string* text : {&call.name, &call.arguments, &call.id}) hide(*text);
    }
  }
  return input;
}

std::vector<TemplateMarks::Piece> TemplateMarks::revealed(std::string_view text) const {
  std::vector<Piece> pieces;
  const auto add = [&](std::string_view more, bool was_hidden) {
    if (!more.empty()) pieces.push_back({.text = std::string(more), .was_hidden = was_hidden});
  };
  const std::string head = secret_ + kHides;
  for (auto at = text.find(head); at != std::string_view::npos; at = text.find(head)) {
    std::size_t index = control_tokens_.size();
    const std::string_view digits = text.substr(at + head.size()).substr(0, kIndexDigits);
    std::from_chars(digits.data(), digits.data() + digits.size(), index);
    add(text.substr(0, at), false);
    if (digits.size() == kIndexDigits && index < control_tokens_.size()) add(control_tokens_[index], true);
    text.remove_prefix(at + head.size() + digits.size());
  }
  add(text, false);
  return pieces;
}

TemplateInput TemplateMarks::marked(const TemplateInput& input, const std::vector<bool>& which, Where where) const {
  TemplateInput made = input;
  for (std::size_t i = 0; i < made.messages.size(); ++i) {
    if (!which[i]) continue;
    std::string& content = made.messages[i].content;
    const OuterBlanks blanks = where == Where::Within ? outer_blanks(input.messages[i].content) : OuterBlanks{};
    content.insert(content.size() - blanks.after.size(), mark(kCloses, i));
    content.insert(blanks.before.size(), mark(kOpens, i));
  }
  return made;
}

TemplateMarks::Taken TemplateMarks::take(std::string_view rendered, const TemplateInput& input,
                                         const std::vector<bool>& which, Where where) const {
  Taken taken;
  struct Ends {
    int opened = 0, closed = 0;
    std::size_t begin = 0, end = 0;
  };
  std::vector<Ends> ends(input.messages.size());
  const std::size_t mark_bytes = secret_.size() + 1 + kIndexDigits;
  while (!rendered.empty()) {
    const auto at = rendered.find(secret_);
    taken.text += rendered.substr(0, at);
    if (at == std::string_view::npos) break;
    const std::string_view found = rendered.substr(at, mark_bytes);
    rendered.remove_prefix(at + found.size());
    const char kind = found.size() == mark_bytes ? found[secret_.size()] : kHides;
    std::size_t index = ends.size();
    if (kind != kHides) std::from_chars(found.data() + secret_.size() + 1, found.data() + found.size(), index);
    if (index >= ends.size()) {
      taken.text += found;
    } else if (kind == kOpens) {
      ++ends[index].opened;
      ends[index].begin = taken.text.size();
    } else {
      ++ends[index].closed;
      ends[index].end = taken.text.size();
    }
  }
  for (std::size_t i = 0; i < ends.size(); ++i) {
    if (!which[i]) continue;
    const std::string_view content = input.messages[i].content;
    const std::string_view expected = where == Where::Within ? stripped(content) : content;
    const bool once = ends[i].opened == 1 && ends[i].closed == 1 && ends[i].begin <= ends[i].end;
    const std::string_view said =
        once ? std::string_view(taken.text).substr(ends[i].begin, ends[i].end - ends[i].begin) : std::string_view();
    if (once && (said == expected || said == escaped(expected)))
      taken.contents.push_back({.begin = ends[i].begin, .end = ends[i].end, .message = i});
    else
      taken.broken.push_back(i);
  }
  std::sort(taken.contents.begin(), taken.contents.end(),
            [](const ContentRange& a, const ContentRange& b) { return a.begin < b.begin; });
  return taken;
}

namespace {

/// Lets contents have the blanks around them that the template left there. `within`: ranges without them; `around`: the
/// rendering in which no blank could be taken away. Both have their contents in the same order.
void widen(std::vector<ContentRange>& within, std::string_view text, const std::vector<ContentRange>& around,
           std::string_view around_text, const TemplateInput& input) {
  const auto blanks = [&](std::size_t i) {
    return i < within.size() ? outer_blanks(input.messages[within[i].message].content) : OuterBlanks{};
  };
  std::size_t begin = 0, around_begin = 0;
  for (std::size_t i = 0; i <= within.size(); ++i) {
    const std::size_t end = i < within.size() ? within[i].begin : text.size();
    const std::size_t around_end = i < around.size() ? around[i].begin : around_text.size();
    const std::string_view gap = text.substr(begin, end - begin);
    const std::string plain(around_text.substr(around_begin, around_end - around_begin));
    const std::string_view after = i > 0 ? blanks(i - 1).after : std::string_view(), before = blanks(i).before;
    const bool keeps_after =
        gap == std::string(after) + plain || gap == std::string(after) + plain + std::string(before);
    const bool keeps_before =
        gap == plain + std::string(before) || gap == std::string(after) + plain + std::string(before);
    begin = i < within.size() ? within[i].end : 0;
    around_begin = i < around.size() ? around[i].end : 0;
    if (keeps_after && i > 0) within[i - 1].end += after.size();
    if (keeps_before && i < within.size()) within[i].begin -= before.size();
  }
}

/// A tool's result that is written as a JSON string counts with its quotes.
MarkedRendering with_quotes(std::string text, std::vector<ContentRange> contents, const TemplateInput& input) {
  for (ContentRange& range : contents) {
    const bool is_quoted = range.begin > 0 && text[range.begin - 1] == '"' && text.substr(range.end, 1) == "\"";
    if (!is_quoted || input.messages[range.message].role != "tool") continue;
    --range.begin;
    ++range.end;
  }
  return {.text = std::move(text), .contents = std::move(contents)};
}

bool in_the_same_order(const std::vector<ContentRange>& a, const std::vector<ContentRange>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const ContentRange& one, const ContentRange& other) { return one.message == other.message; });
}

}  // namespace

Result<MarkedRendering> TemplateMarks::render(const TemplateRenderer& renderer, const TemplateInput& input) const {
  std::vector<bool> which;
  bool blanks = false;
  for (const Message& message : input.messages) {
    which.push_back(!stripped(message.content).empty());
    blanks |= has_outer_blanks(message.content);
  }
  std::string plain;
  // A template that changes a content changes its marks: the next try leaves that one without any.
  for (int tries = 0; tries < 3; ++tries) {
    std::vector<TemplateInput> inputs{input, marked(input, which, Where::Around)};
    if (blanks) inputs.push_back(marked(input, which, Where::Within));
    CARNOT_ASSIGN_OR_RETURN(auto texts, renderer.render(inputs));
    if (!texts[0]) return texts[0].error();
    plain = *texts[0];
    if (std::any_of(texts.begin(), texts.end(), [](const auto& text) { return !text.ok(); })) break;
    Taken around = take(*texts[1], input, which, Where::Around);
    if (around.broken.empty() && around.text == plain)
      return with_quotes(std::move(plain), std::move(around.contents), input);
    std::vector<std::size_t> broken = around.broken;
    if (blanks) {
      Taken within = take(*texts[2], input, which, Where::Within);
      if (within.broken.empty() && within.text == plain) {
        if (around.broken.empty() && in_the_same_order(within.contents, around.contents))
          widen(within.contents, within.text, around.contents, around.text, input);
        return with_quotes(std::move(plain), std::move(within.contents), input);
      }
      broken = within.broken;
    }
    if (broken.empty()) break;  // the marks change what the template decides
    for (const std::size_t message : broken) which[message] = false;
  }
  return MarkedRendering{.text = std::move(plain)};
}

}  // namespace carnot
