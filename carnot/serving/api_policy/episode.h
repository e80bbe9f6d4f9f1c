// serving/api_policy/episode.h -- one trajectory whose policy is a model behind an OpenAI-compatible server: a
// conversation of messages, without tokens.
//
// What is in one running message with a policy of our own (a tool's result that continues the response) is the next
// user message here. The message's beginning that an environment wants (Opening::assistant_prefix) cannot be sent;
// where a response lacks it, the environment reads it with it. A stop string that ends a response is put back where it
// is a closing tag, since servers leave it out.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "carnot/core/data/tree.h"
#include "carnot/core/env/environment.h"
#include "carnot/serving/openai/chat_endpoint.h"
#include "carnot/serving/openai/chat_request.h"

namespace carnot {

struct EndpointEpisodeOptions {
  std::string model{};  ///< as the server names it
  double temperature = 1;
  double top_p = 1;
  int max_context_tokens = 4096;  ///< prompt and responses of a conversation, as the server counts them
  int max_response_tokens = 0;    ///< a turn; 0: the environment's own limit
  int max_turns = 0;              ///< 0: the environment's own limit
  std::string extra{};            ///< a JSON object that changes every request (RFC 7396); empty: none
};

/// What an episode has cost.
struct EndpointCost {
  std::int64_t answers = 0;  ///< of the model
  TokenUsage tokens{};       ///< as the server counts them
};

class EndpointEpisode {
 public:
  /// `make` makes the environment; called in the first advance(). `seed` is the trajectory's own, of the draws that a
  /// server makes where the temperature is above 0.
  EndpointEpisode(std::function<std::unique_ptr<Environment>()> make, const EndpointEpisodeOptions& options,
                  std::uint64_t seed);

  /// Opens the environment if it is not open, asks the model, and hands its response to the environment. Slow; throws
  /// what the endpoint or the environment throws: then the trajectory has failed. REQUIRES: !ended().
  void advance(ChatEndpoint& endpoint);

  bool ended() const { return ended_; }

  /// The trajectory: its turns without tokens, and its leaf. Of one that has not ended: an infrastructure failure.
  Tree tree(const std::string& id, int sibling) const;

  const EndpointCost& cost() const { return cost_; }
  const std::vector<std::string>& ground_truth() const { return ground_truth_; }
  const std::map<std::string, std::string>& info() const { return info_; }

  /// Everything that was said, in order; of an environment that begins again for each step, prompt after prompt.
  const std::vector<Message>& transcript() const { return transcript_; }

 private:
  void open();
  void begin_context(const Opening& prompt);
  ChatQuestion question() const;
  PolicyResponse heard(const ChatAnswer& answer) const;
  void add(Message message);
  void add_reply(const Reply& reply);
  void end(Outcome outcome, const Reply& reply);

  std::function<std::unique_ptr<Environment>()> make_;
  EndpointEpisodeOptions options_;
  std::uint64_t seed_;
  std::unique_ptr<Environment> environment_{};
  Protocol protocol_{};
  std::string prefix_{};
  std::vector<std::string> tools_{};
  std::vector<Message> messages_{};  // the present context
  std::vector<Message> transcript_{};
  std::int64_t context_tokens_ = 0;  // of the present context, as far as the server has told
  std::string anchor_{};
  std::vector<Turn> turns_{};
  std::vector<std::string> ground_truth_{};
  std::map<std::string, std::string> info_{};
  EndpointCost cost_{};
  bool ended_ = false;
  Outcome outcome_ = Outcome::InfraFailed;
  Reply last_{};
};

/// The response with the closing tag that ended it, where one of `stop_strings` is a closing tag whose opening tag it
/// leaves open.
std::string with_closing_tag(std::string text, const std::vector<std::string>& stop_strings);

}  // namespace carnot
