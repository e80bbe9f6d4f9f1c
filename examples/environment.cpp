// A custom environment: spell a word backwards, one turn per attempt.
//
//   cmake --build build --target example_environment && build/example_environment
//
// An environment knows text and never tokens. worlds/skeleton/environment.h is a longer one, with a bare game, options
// and a script; docs/adding_an_environment.md says how to register it for `env.name`.
#include "carnot/core/env/environment.h"

#include <algorithm>
#include <cstdio>

using namespace carnot;

namespace {

class Backwards : public Environment {
 public:
  explicit Backwards(std::string word) : word_(std::move(word)) {}

  Protocol protocol() const override { return {.max_turns = 3, .max_response_tokens = 32}; }

  Opening open() override { return {.user = "Spell \"" + word_ + "\" backwards, as in <answer>abc</answer>."}; }

  Reply step(const PolicyResponse& response) override {
    ++turns_;
    const bool right = answer_in(response.text) == std::string(word_.rbegin(), word_.rend());
    Reply reply{.reward = right ? 1.0 : 0.0, .done = right || turns_ == protocol().max_turns, .success = right};
    if (reply.done) reply.outcome = right ? Outcome::Finished : Outcome::OutOfTurns;
    if (!reply.done) reply.text = "That is not it. Try again.";
    return reply;
  }

  /// Methods that branch copy an episode in its current state.
  Branching branching() const override { return Branching::Cloned; }
  std::unique_ptr<Environment> clone() const override { return std::make_unique<Backwards>(*this); }

 private:
  static std::string answer_in(std::string_view response) {
    const std::string_view open = "<answer>";
    const auto begin = response.find(open), end = response.find("</answer>");
    if (begin == response.npos || end == response.npos || end < begin) return "";
    return std::string(response.substr(begin + open.size(), end - begin - open.size()));
  }

  std::string word_;
  int turns_ = 0;
};

}  // namespace

int main() {
  Backwards environment("carnot");
  std::printf("user: %s\n", environment.open().user.c_str());
  Reply reply;
  for (const char* response :
       {"<answer>tonrac?</answer>", "<answer>tonrac</answer>"}) {  // a policy's response would come here
    reply = environment.step(response);
    std::printf("assistant: %s\n%s", response, reply.text.empty() ? "" : ("user: " + reply.text + "\n").c_str());
  }
  std::printf("[%s, reward %g]\n", std::string(name_of(reply.outcome)).c_str(), reply.reward);
  return reply.done && reply.success ? 0 : 1;
}
