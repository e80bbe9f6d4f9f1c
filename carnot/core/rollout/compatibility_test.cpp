#include "carnot/core/rollout/compatibility.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "carnot/core/branch/branch.h"
#include "carnot/core/branch/entropy_branch.h"
#include "carnot/core/branch/tree_expand.h"
#include "carnot/core/text/bpe_training.h"
#include "carnot/core/text/chat.h"
#include "testing/scripted_rollout.h"

namespace carnot {
namespace {

using namespace carnot::testing;  // NOLINT: the builders of this test

class ScriptedFactory : public EnvironmentFactory {
 public:
  explicit ScriptedFactory(ScriptedOptions options) : options_(std::move(options)) {}
  void fields(FieldVisitor&) override {}
  Status prepare(std::uint64_t) override { return Done{}; }
  std::unique_ptr<Environment> make(Split, std::int64_t index) const override {
    return std::make_unique<ScriptedEnvironment>(options_, static_cast<std::uint64_t>(index));
  }

 private:
  ScriptedOptions options_;
};

std::string refusal(const ScriptedOptions& options, const BranchPolicy& policy, bool continues = false,
                    const ChatFamily& chat = small_chat()) {
  const Status status = check_compatible(ScriptedFactory(options), "scripted", policy, 4, continues, chat);
  return status ? "" : status.error().message;
}

TEST(Compatibility, BranchingNeedsAnEnvironmentThatCanBeClonedOrReplayed) {
  const auto branching = entropy_branch({.initial = 2});
  const auto growing = tree_expand({.trees = 2, .nodes = 1, .rounds = 1});
  for (const BranchPolicy* policy : {branching.get(), growing.get()}) {
    EXPECT_THAT(refusal({.branching = Branching::Refused}, *policy),
                ::testing::AllOf(::testing::StartsWith("method: branches trajectories ("),
                                 ::testing::HasSubstr("env scripted can be neither cloned nor replayed")));
    EXPECT_EQ(refusal({.branching = Branching::Replayed}, *policy), "");
    EXPECT_EQ(refusal({.branching = Branching::Cloned}, *policy), "");
  }
  EXPECT_EQ(refusal({.branching = Branching::Refused}, *independent()), "");
}

TEST(Compatibility, ContinuingNeedsAnEnvironmentThatCanBeClonedOrReplayed) {
  EXPECT_THAT(refusal({.branching = Branching::Refused}, *independent(), true),
              ::testing::StartsWith("method: continues from inside trajectories, and env scripted"));
  EXPECT_EQ(refusal({.branching = Branching::Replayed}, *independent(), true), "");
}

TEST(Compatibility, ToolsNeedAChatFormatThatOffersThem) {
  const Tokenizer tokenizer =
      Tokenizer::parse(
          train_byte_level_bpe(std::vector<std::string>{"a"}, {.vocab_size = 260, .added_tokens = {"<s>", "</s>"}})
              .value(),
          "small")
          .value();
  class PlainChat final : public ChatFamily {
   public:
    explicit PlainChat(const Tokenizer& tokenizer) : ChatFamily(tokenizer) {}
    std::string_view name() const override { return "plain"; }

   private:
    Status write_opening(LabelledText&, std::span<const Message>, Tools) const override { return Done{}; }
    Status write_reply(LabelledText&, std::span<const Message>, bool) const override { return Done{}; }
    std::vector<TokenId> own_stop_tokens() const override { return present_tokens({"</s>"}); }
    const ToolCallForm* call_form() const override { return nullptr; }
  };
  const ScriptedOptions options{.tools = {{.name = "look_up"}}};
  EXPECT_EQ(
      refusal(options, *independent(), false, PlainChat(tokenizer)),
      "env: scripted: the environment offers tools (look_up), and chat format plain has no way to offer tools; no "
      "format that has one fits this tokenizer (`carnot list chats` prints all)");
  EXPECT_EQ(refusal(options, *independent()), "");
}

TEST(Compatibility, AWorldThatDoesNotOpenIsLeftToTheRollout) {
  EXPECT_EQ(refusal({.opens = false, .branching = Branching::Refused}, *entropy_branch({.initial = 2})), "");
}

}  // namespace
}  // namespace carnot
