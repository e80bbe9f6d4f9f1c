// worlds/agent/conversation.h -- a harness's calls of OpenAI's API as the conversation of an episode.
//
// A call whose messages are those of the last call, what it was answered, and results or one user message after it,
// continues with the context that is there: its tokens stay as they were sampled. Any other call is a fresh prompt.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "carnot/core/base/result.h"
#include "carnot/core/data/message.h"
#include "carnot/core/env/environment.h"
#include "carnot/serving/openai/request.h"

namespace carnot {

/// What a call was answered.
struct AnsweredCall {
  OpenAiRequest request{};
  Message answer{};  ///< as the harness got it
};

/// Says, for the harness, why the policy cannot be asked this: more texts than one, log-probabilities, a system message
/// after the first.
Status check_call(const OpenAiRequest& request);

/// The call as its own prompt. REQUIRES: check_call() is ok.
Opening prompt_of(const OpenAiRequest& request);

/// What the call says after the last one; empty if it does not continue that.
std::optional<Reply> continuation(const AnsweredCall& last, const OpenAiRequest& request);

/// What a harness gets of a response: its calls if there are any, with ids, else its text. `number`: of the call
/// in its episode, for the ids.
Message answer_message(const PolicyResponse& response, int number);

}  // namespace carnot
