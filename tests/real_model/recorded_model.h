// What transformers computes with a published model, against Carnot: shared by the models that install scripts make.
#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "carnot/core/base/file.h"
#include "carnot/core/rollout/log_prob_pass.h"
#include "carnot/serving/generator.h"
#include "carnot/serving/loaded_model.h"
#include "testing/paths.h"

namespace carnot::testing {

using Ids = std::vector<TokenId>;

inline nlohmann::json recorded_model(const std::string& name) {
  return nlohmann::json::parse(read_file(recorded_path(name + "/model.json")).value());
}

/// Of the 2,000 texts that were recorded, those without `left_out`, if it is not empty.
inline void expect_recorded_tokens(const Tokenizer& tokenizer, const std::string& name,
                                   const std::string& left_out = "") {
  const std::string lines = read_maybe_compressed(recorded_path(name + "/tokens.jsonl.xz")).value();
  int different = 0, compared = 0;
  for (const std::string_view line : split_lines(lines)) {
    const auto one = nlohmann::json::parse(line);
    const std::string text = one.at("text");
    ++compared;
    if (!left_out.empty() && text.find(left_out) != std::string::npos) continue;
    const Ids ids = tokenizer.encode(text);
    if (ids != one.at("ids").get<Ids>() && ++different < 5) ADD_FAILURE() << line << "\nhere: " << nlohmann::json(ids);
  }
  EXPECT_EQ(different, 0);
  EXPECT_EQ(compared, 2000);
}

/// The greedy answers are the `ids` of `expected`; returns the first as text.
inline std::string expect_recorded_answers(const LoadedModel& loaded, const std::vector<Ids>& prompts,
                                           const std::vector<TokenId>& stop_tokens, const nlohmann::json& expected) {
  std::string first;
  std::vector<Ids> answers;
  const auto keep = [&](const GeneratedText& text) {
    if (answers.empty()) first = text.text;
    Ids& ids = answers.emplace_back();
    for (const TokenDraw& draw : text.draws) ids.push_back(draw.token);
    return true;
  };
  generate(*loaded.model, *loaded.tokenizer, prompts, {.max_tokens = 24, .stop_tokens = stop_tokens},
           {.on_text = keep});
  EXPECT_EQ(answers.size(), expected.size());
  for (std::size_t i = 0; i < answers.size() && i < expected.size(); ++i)
    EXPECT_EQ(answers[i], expected[i].at("ids").get<Ids>()) << expected[i];
  return first;
}

/// transformers' were computed in float64.
inline void expect_recorded_log_probs(const Model& model, const nlohmann::json& scores) {
  std::vector<MeasuredSequence> sequences;
  std::vector<double> expected;
  for (const auto& one : scores) {
    MeasuredSequence& sequence = sequences.emplace_back(MeasuredSequence{.tokens = one.at("ids").get<Ids>()});
    for (std::size_t i = 1; i < sequence.tokens.size(); ++i) sequence.targets.push_back(static_cast<int>(i));
    for (const auto& value : one.at("logp")) expected.push_back(value);
  }
  const TargetStatistics measured = measure_targets(model, sequences, 4096, 1);
  ASSERT_EQ(measured.log_prob.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(measured.log_prob[i], expected[i], 1e-4) << i;
}

}  // namespace carnot::testing
