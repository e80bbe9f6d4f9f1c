#include "carnot/core/rollout/response.h"

#include <algorithm>

namespace carnot {

Response::Response(const Tokenizer& tokenizer, const std::vector<std::string>& stop_strings)
    : stop_strings_(&stop_strings), decoder_(tokenizer) {
  for (const std::string& stop : stop_strings) longest_ = std::max(longest_, stop.size());
}

bool Response::push(const TokenDraw& draw) {
  draws_.push_back(draw);
  tokens_.push_back(draw.token);
  if (stop_strings_->empty()) return false;
  tail_ += decoder_.push(draw.token);
  const auto stands_in_tail = [&](const std::string& stop) { return tail_.find(stop) != std::string::npos; };
  if (std::any_of(stop_strings_->begin(), stop_strings_->end(), stands_in_tail)) return true;
  if (tail_.size() >= longest_) tail_.erase(0, tail_.size() - longest_ + 1);
  return false;
}

}  // namespace carnot
