// text/template_marks.h -- finds the contents of messages in what a chat template renders of them.
//
// A template is a program: what it does with a content can only be seen in its output. Contents are therefore rendered
// once as they are, and once between marks that no one can guess. Where the second rendering without its marks is the
// first, the marks say which text is whose. Control tokens in contents are hidden from the template behind such marks
// in both, and put back afterwards, so that they can be distinguished from the template's own, whatever the template
// does.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "carnot/core/base/result.h"
#include "carnot/core/text/template_renderer.h"
#include "carnot/core/text/tokenizer.h"

namespace carnot {

/// Bytes of a rendering that are what a message says: its content, or its calls.
struct ContentRange {
  std::size_t begin = 0;
  std::size_t end = 0;
  std::size_t message = 0;
  std::vector<TextRange> of_format{};  ///< within them: marks of calls, in order
};

struct MarkedRendering {
  std::string text{};                    ///< control tokens of contents are still hidden
  std::vector<ContentRange> contents{};  ///< in the order of the text; without those that the template changed
};

class TemplateMarks {
 public:
  /// Draws marks. `control_tokens`: texts that are hidden where they are in a message.
  explicit TemplateMarks(std::vector<std::string> control_tokens);

  /// `input` with the control tokens of contents and calls hidden, if `hides`, and with U+FFFD for what is not UTF-8.
  TemplateInput hidden(TemplateInput input, bool hides) const;

  /// A stretch of text as it was before hidden(); `was_hidden`: it is a control token of a content.
  struct Piece {
    std::string text{};
    bool was_hidden = false;
  };
  std::vector<Piece> revealed(std::string_view text) const;

  /// Renders `input` and finds the contents. Fails if the template refuses `input`. REQUIRES: hidden().
  Result<MarkedRendering> render(const TemplateRenderer& renderer, const TemplateInput& input) const;

 private:
  struct Taken;
  enum class Where { Around, Within };  // the whole content, or what is left of it without outer blanks
  std::string mark(char kind, std::size_t index) const;
  TemplateInput marked(const TemplateInput& input, const std::vector<bool>& which, Where where) const;
  Taken take(std::string_view rendered, const TemplateInput& input, const std::vector<bool>& which, Where where) const;

  std::vector<std::string> control_tokens_;
  std::string secret_;
};

}  // namespace carnot
