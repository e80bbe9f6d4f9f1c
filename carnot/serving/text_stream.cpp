#include "carnot/serving/text_stream.h"

#include <algorithm>
#include <utility>

#include "carnot/core/base/check.h"

namespace carnot {

TextStream::TextStream(const Tokenizer& tokenizer, std::vector<std::string> stop_strings)
    : stop_strings_(std::move(stop_strings)), decoder_(tokenizer) {
  for (const std::string& stop : stop_strings_) CARNOT_CHECK_GT(stop.size(), std::size_t{0});
}

std::string TextStream::push(TokenId token) {
  CARNOT_CHECK(!stopped_by_, "the text has ended");
  waiting_ += decoder_.push(token);
  if (auto text = cut()) return std::move(*text);
  return certain();
}

std::string TextStream::finish() {
  if (stopped_by_) return "";
  return std::exchange(waiting_, {}) + decoder_.flush();
}

std::optional<std::string> TextStream::cut() {
  std::size_t first_begin = 0, first_end = std::string::npos;
  for (const std::string& stop : stop_strings_) {
    const std::size_t begin = waiting_.find(stop);
    if (begin == std::string::npos) continue;
    const std::size_t end = begin + stop.size();
    if (end > first_end || (end == first_end && begin >= first_begin)) continue;
    first_begin = begin;
    first_end = end;
    stopped_by_ = stop;
  }
  if (!stopped_by_) return std::nullopt;
  return std::exchange(waiting_, {}).substr(0, first_begin);
}

std::string TextStream::certain() {
  std::size_t held = 0;
  for (const std::string& stop : stop_strings_)
    for (std::size_t length = std::min(stop.size() - 1, waiting_.size()); length > held; --length)
      if (std::string_view(waiting_).ends_with(std::string_view(stop).substr(0, length))) held = length;
  std::string text = waiting_.substr(0, waiting_.size() - held);
  waiting_.erase(0, text.size());
  return text;
}

}  // namespace carnot
