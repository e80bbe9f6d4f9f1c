// rows/demonstration.h -- what SFT learns from: token sequences, and which of their tokens were said by whoever
// demonstrates.
#pragma once

#include <vector>

#include "carnot/core/base/result.h"
#include "carnot/core/data/trajectory.h"
#include "carnot/core/rows/conversation.h"
#include "carnot/core/text/chat.h"

namespace carnot {

/// One context: a model sees all of it at once, and nothing else.
struct Demonstration {
  std::vector<TokenId> tokens{};
  std::vector<bool> is_said{};  ///< by token; what a policy in this place would sample
};

/// A trajectory's contexts that have something said: one, and another for each fresh prompt.
std::vector<Demonstration> demonstrations_of(const Trajectory& trajectory);

/// A conversation as a rollout makes it: an opening, then what is said and the replies, each rendered once and
/// appended, up to the end token of the last message. Its text is that of the conversation rendered at once, whose
/// remainder (a line break, say) is left out; so are its tokens, unless one would go over the border of what is said.
/// Where the format strips what is said, it is stripped here, too. Fails where the format cannot write the
/// conversation, and where the two texts differ.
Result<Demonstration> render_demonstration(const ChatFamily& chat, const Conversation& conversation);

}  // namespace carnot
