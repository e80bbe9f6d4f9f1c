// env/plain_view.h -- a world without a prompt: what agents with their own prompt show of it.
//
// Environments whose openings say how to write a response (tags, a form) are PlainlyShown as well, so that ReAct's
// prompt does not come on top of another one.
#pragma once

#include <string>

namespace carnot {

struct PlainView {
  std::string task{};         ///< what to do
  std::string actions{};      ///< which actions there are and how they are written; empty: those of the protocol's tags
  std::string observation{};  ///< what is seen now, with what can be done there
};

class PlainlyShown {
 public:
  virtual ~PlainlyShown() = default;
  /// Of the present state. Actions that it describes are between the tags that Protocol::action_tags names first.
  virtual PlainView plain_view() const = 0;
};

}  // namespace carnot
