// worlds/process/messages.h -- the messages between Carnot and a process environment, as JSON
// (docs/process_environments.md).
//
// Each read_...() throws PeerFailure with every problem of the answer: process, line, field, what was found and
// expected.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "carnot/core/env/environment.h"
#include "carnot/core/subprocess/peer.h"

namespace carnot {

inline constexpr int kProcessProtocol = 1;

/// What a process says of itself.
struct ProcessGreeting {
  std::string name{};
  Protocol protocol{};
  bool batch = false;  ///< requests come several at a time (subprocess/peer.h)
  bool clone = false;
  bool replay = false;
  bool demonstrate = false;
  std::string answer_lead{};
  std::vector<std::string> tokenizer_texts{}, tokenizer_words{}, tokenizer_added_tokens{};
};

/// How an episode begins.
struct ProcessOpening {
  Opening opening{};
  std::vector<std::string> ground_truth{};
  std::map<std::string, std::string> info{};
  std::string anchor{};
};

struct ProcessReply {
  Reply reply{};
  std::string anchor{};
};

/// The first request. `settings`: `key=value`; the error names one that is not.
Result<nlohmann::json> hello_request(const std::vector<std::string>& settings);
nlohmann::json reset_request(std::int64_t episode, Split split, std::int64_t task, std::uint64_t seed);
nlohmann::json step_request(std::int64_t episode, const PolicyResponse& response);
nlohmann::json clone_request(std::int64_t episode, std::int64_t copy);
nlohmann::json demonstrate_request(std::int64_t episode, std::string_view observation, double progress);
nlohmann::json close_notice(std::int64_t episode);

ProcessGreeting read_greeting(const PeerAnswer& answer);
ProcessOpening read_opening(const PeerAnswer& answer);
ProcessReply read_reply(const PeerAnswer& answer);
PolicyResponse read_demonstration(const PeerAnswer& answer);
void read_empty(const PeerAnswer& answer);  ///< of clone

}  // namespace carnot
