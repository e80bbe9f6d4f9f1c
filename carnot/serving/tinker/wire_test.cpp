#include "carnot/serving/tinker/wire.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "carnot/core/base/file.h"
#include "carnot/core/base/json.h"
#include "testing/paths.h"

namespace carnot {
namespace {

using ::testing::HasSubstr;

std::string from_hexadecimal(const std::string& digits) {
  std::string bytes;
  for (std::size_t i = 0; i < digits.size(); i += 2)
    bytes += static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16));
  return bytes;
}

Json recorded() {
  return parse_json(read_file(source_path("tests/golden/tinker_messages.json")).value(), "recorded").value();
}

void expect_datum(const TinkerDatum& datum, const Json& expected) {
  EXPECT_EQ(datum.tokens, expected["tokens"].get<std::vector<TokenId>>());
  EXPECT_EQ(datum.inputs.size(), expected["inputs"].size());
  for (const auto& [name, values] : expected["inputs"].items()) {
    const TinkerTensor& tensor = datum.inputs.at(name);
    EXPECT_EQ(tensor.values, values.get<std::vector<double>>()) << name;
    EXPECT_EQ(tensor.shape, std::vector<std::int64_t>{static_cast<std::int64_t>(values.size())}) << name;
  }
}

TEST(TinkerWire, ReadsTheRequestsThatThePackageSends) {
  const Json cases = recorded();
  ASSERT_EQ(cases.size(), 3u);
  for (const Json& expected : cases) {
    const auto read = parse_forward_backward(from_hexadecimal(expected["bytes"]));
    ASSERT_TRUE(read.ok()) << read.error().message;
    EXPECT_EQ(read->model_id, expected["model_id"]);
    EXPECT_EQ(read->seq_id, expected["seq_id"]);
    EXPECT_EQ(read->loss, expected["loss"]);
    EXPECT_EQ(read->forward_only, expected["forward_only"]);
    ASSERT_EQ(read->data.size(), expected["data"].size());
    for (std::size_t i = 0; i < read->data.size(); ++i) expect_datum(read->data[i], expected["data"][i]);
    EXPECT_EQ(read->settings.size(), expected["settings"].size());
    for (const auto& [name, value] : expected["settings"].items()) {
      const TinkerSetting& setting = read->settings.at(name);
      if (value.is_string())
        EXPECT_EQ(std::get<std::string>(setting), value);
      else
        EXPECT_EQ(std::get<double>(setting), value);
    }
  }
}

TEST(TinkerWire, EveryTruncatedRequestIsAnErrorOrAShorterRequest) {
  const std::string whole = from_hexadecimal(recorded()[1]["bytes"]);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const auto read = parse_forward_backward(std::string_view(whole).substr(0, size));
    EXPECT_TRUE(read.ok() || !read.error().message.empty());
  }
}

std::string field(int number, const std::string& bytes) {
  return std::string{static_cast<char>(number << 3 | 2), static_cast<char>(bytes.size())} + bytes;
}

TEST(TinkerWire, NamesTheDatumThatCannotBeRead) {
  const auto error_of_datum = [](const std::string& datum) {
    return parse_forward_backward(field(3, field(1, "")) + field(3, datum)).error().message;
  };
  const auto error_of_tensor = [&](const std::string& tensor) {
    return error_of_datum(field(2, field(1, "weights") + field(2, tensor)));
  };
  EXPECT_THAT(error_of_datum(field(1, field(2, "png"))), HasSubstr("data[1]: expected encoded text"));
  EXPECT_THAT(error_of_datum(field(1, field(1, field(1, "12345")))), HasSubstr("data[1]: its tokens are cut short"));
  EXPECT_THAT(error_of_tensor(field(2, "")), HasSubstr("loss_fn_inputs.weights: sparse"));
  EXPECT_THAT(error_of_tensor(field(1, "1234")), HasSubstr("expected float32 or int64"));
  EXPECT_THAT(error_of_tensor(field(1, "1234") + std::string("\x18\x01\x20\x02", 4)), HasSubstr("does not fit"));
  EXPECT_THAT(parse_forward_backward("\x08\x01").error().message, HasSubstr("not a ForwardBackwardRequest"));
}

}  // namespace
}  // namespace carnot
