// The gated delta rule and the norm behind it, compared with what transformers computes.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "carnot/core/base/file.h"
#include "carnot/core/base/json.h"
#include "carnot/core/kernel/recurrent/gated_delta.h"
#include "reference/gated_delta.h"
#include "testing/gated_delta_problem.h"
#include "testing/paths.h"

namespace carnot::kernel {
namespace {

using testing::GatedDeltaProblem;
using testing::relative_error;

constexpr double kRecordedDigits = 1e-8;

struct RecordedDelta {
  GatedDeltaProblem<double> problem;
  std::vector<double> out, state, gradients, gate, norm, normed;
};

std::vector<RecordedDelta> recorded_layers() {
  const std::string text = read_maybe_compressed(recorded_path("gated_delta/layers.jsonl.xz")).value();
  std::vector<RecordedDelta> layers;
  for (const std::string_view line : split_lines(text)) {
    const Json json = parse_json(line, "gated_delta/layers").value();
    const auto numbers = [&](const char* name) { return json[name].get<std::vector<double>>(); };
    GatedDeltaProblem<double> problem({json["key_heads"], json["value_heads"], json["key_dim"], json["value_dim"]},
                                      {json["length"].get<int>()});
    problem.qkv = numbers("qkv");
    problem.a = numbers("a");
    problem.b = numbers("b");
    problem.log_rate = numbers("log_rate");
    problem.step_bias = numbers("step_bias");
    problem.dout = numbers("dout");
    std::vector<double> gradients;
    for (const char* name : {"dqkv", "da", "db", "dlog_rate", "dstep_bias"}) problem.append(numbers(name), gradients);
    layers.push_back({.problem = problem,
                      .out = numbers("out"),
                      .state = numbers("state"),
                      .gradients = gradients,
                      .gate = numbers("z"),
                      .norm = numbers("norm"),
                      .normed = numbers("normed")});
  }
  return layers;
}

TEST(RecordedGatedDelta, OutputsAndGradientsEqualThoseOfTransformers) {
  const std::vector<RecordedDelta> layers = recorded_layers();
  EXPECT_EQ(layers.size(), 3);
  for (const RecordedDelta& recorded : layers) {
    EXPECT_LT(relative_error(recorded.problem.forward(), recorded.out), kRecordedDigits);
    EXPECT_LT(relative_error(recorded.problem.backward(), recorded.gradients), kRecordedDigits);
  }
}

TEST(RecordedGatedDelta, TheReferenceEqualsTransformersToo) {
  for (const RecordedDelta& recorded : recorded_layers()) {
    const reference::DeltaRuleResult result = reference::gated_delta(recorded.problem.slow());
    EXPECT_LT(relative_error(result.out, recorded.out), kRecordedDigits);
    EXPECT_LT(relative_error(result.state, recorded.state), kRecordedDigits);
    EXPECT_LT(relative_error(recorded.problem.slow_gradients(), recorded.gradients), kRecordedDigits);
  }
}

TEST(RecordedGatedDelta, TheGatedNormIsRmsNormAndSwiglu) {
  const StorageTable<double>& rows = storage_table<double>();
  for (const RecordedDelta& recorded : recorded_layers()) {
    const std::int64_t dim = recorded.problem.shape.value_dim;
    std::vector<double> normed(recorded.out.size());
    for (std::size_t i = 0; i < normed.size(); i += static_cast<std::size_t>(dim)) {
      rows.rms_norm(dim, recorded.out.data() + i, recorded.norm.data(), 0, 1e-6, normed.data() + i);
      rows.swiglu(dim, recorded.gate.data() + i, normed.data() + i, normed.data() + i);
    }
    EXPECT_LT(relative_error(normed, recorded.normed), kRecordedDigits);
  }
}

}  // namespace
}  // namespace carnot::kernel
