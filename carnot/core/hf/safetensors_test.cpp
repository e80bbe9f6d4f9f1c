#include "carnot/core/hf/safetensors.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "carnot/core/base/file.h"
#include "carnot/core/base/random.h"
#include "carnot/core/hf/safetensors_header.h"
#include "testing/paths.h"

namespace carnot {
namespace {

namespace fs = std::filesystem;

class Safetensors : public ::testing::Test {
 protected:
  Safetensors() : folder_(fs::temp_directory_path() / ("carnot_safetensors_test_" + std::to_string(::getpid()))) {
    fs::create_directories(folder_);
  }
  ~Safetensors() override { fs::remove_all(folder_); }

  fs::path folder_;
};

std::string with_length(const std::string& json, const std::string& data = "") {
  std::string length(8, '\0');
  for (std::size_t i = 0; i < 8; ++i) length[i] = static_cast<char>(json.size() >> (8 * i) & 0xff);
  return length + json + data;
}

/// The error of a file with this header and data; empty if it is accepted.
std::string file_complaint(const std::string& file) {
  const auto header = parse_safetensors_header(file, "x.safetensors");
  return header ? "" : header.error().message;
}

std::vector<NamedTensor> one_of_each_dtype() {
  std::vector<NamedTensor> tensors;
  for (at::ScalarType dtype : {at::kDouble, at::kFloat, at::kHalf, at::kBFloat16, at::kLong, at::kInt, at::kShort,
                               at::kChar, at::kByte, at::kBool})
    tensors.push_back({std::string("of ") + toString(dtype), at::arange(0, 15).reshape({3, 5}).to(dtype)});
  tensors.push_back({"empty", at::empty({0, 4})});
  tensors.push_back({"scalar", at::full({}, 2.5, at::kDouble)});
  tensors.push_back({"strided", at::arange(0, 12, at::kFloat).reshape({3, 4}).t()});
  return tensors;
}

TEST_F(Safetensors, ComeBackBitForBitWithTheirMetadata) {
  const std::vector<NamedTensor> written = one_of_each_dtype();
  ASSERT_TRUE(write_safetensors(folder_ / "a.safetensors", written, {{"format", "pt"}, {"step", "12"}}).ok());
  const auto file = read_safetensors(folder_ / "a.safetensors");
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_EQ(file->metadata, (std::map<std::string, std::string>{{"format", "pt"}, {"step", "12"}}));
  ASSERT_EQ(file->tensors.size(), written.size());
  std::map<std::string, at::Tensor> read;
  for (const NamedTensor& named : file->tensors) read[named.name] = named.tensor;
  for (const NamedTensor& named : written) {
    ASSERT_TRUE(read.contains(named.name));
    EXPECT_EQ(read[named.name].scalar_type(), named.tensor.scalar_type());
    EXPECT_TRUE(at::equal(read[named.name], named.tensor)) << named.name;
  }
}

TEST_F(Safetensors, GoByDescendingElementSizeThenNameFromAnAlignedStart) {
  ASSERT_TRUE(write_safetensors(folder_ / "a", {{"b", at::zeros({3}, at::kByte)},
                                                {"c", at::zeros({2}, at::kFloat)},
                                                {"a", at::zeros({1}, at::kFloat)},
                                                {"d", at::zeros({1}, at::kLong)}})
                  .ok());
  const std::string bytes = *read_file(folder_ / "a");
  const auto header = parse_safetensors_header(bytes, "a");
  ASSERT_TRUE(header.ok());
  std::string order;
  for (const TensorEntry& entry : header->entries) order += entry.name;
  EXPECT_EQ(order, "dacb");
  EXPECT_EQ(header->entries[0].begin % 8, 0u);
  EXPECT_EQ(header->entries.back().end, bytes.size());
}

TEST_F(Safetensors, WritingToAReadTensorLeavesTheFileAlone) {
  ASSERT_TRUE(write_safetensors(folder_ / "a", {{"w", at::ones({4})}}).ok());
  const std::string before = *read_file(folder_ / "a");
  {
    const auto file = read_safetensors(folder_ / "a");
    file->tensors[0].tensor.fill_(7);
    EXPECT_EQ(file->tensors[0].tensor.sum().item<double>(), 28);
  }
  EXPECT_EQ(*read_file(folder_ / "a"), before);
}

TEST_F(Safetensors, AMisalignedTensorIsCopied) {
  const std::string data = std::string(1, '\5') + std::string("\0\0\x80\x3f", 4);
  const std::string file = with_length(R"({"flag":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                                       R"("w":{"dtype":"F32","shape":[1],"data_offsets":[1,5]}})",
                                       data);
  ASSERT_TRUE(write_file_atomically(folder_ / "a", file).ok());
  const auto read = read_safetensors(folder_ / "a");
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->tensors[1].tensor[0].item<double>(), 1);
}

TEST_F(Safetensors, EveryTruncationIsRefused) {
  ASSERT_TRUE(write_safetensors(folder_ / "a", {{"w", at::ones({5})}, {"v", at::ones({2, 2})}}).ok());
  const std::string bytes = *read_file(folder_ / "a");
  ASSERT_EQ(file_complaint(bytes), "");
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_TRUE(file_complaint(bytes.substr(0, size)).starts_with("x.safetensors: ")) << size;
}

TEST_F(Safetensors, AFlippedHeaderByteNeverReadsOutsideTheFile) {
  ASSERT_TRUE(write_safetensors(folder_ / "a", {{"w", at::ones({5})}, {"v", at::ones({2, 2})}}).ok());
  const std::string bytes = *read_file(folder_ / "a");
  RandomStream random(1);
  for (int trial = 0; trial < 3000; ++trial) {
    std::string broken = bytes;
    for (int flips = 0; flips < 2; ++flips)
      broken[random.below(bytes.size() - 36)] = static_cast<char>(random.below(256));
    const auto header = parse_safetensors_header(broken, "x");
    if (!header) continue;
    for (const TensorEntry& entry : header->entries) {
      std::uint64_t elements = 1;
      for (std::int64_t size : entry.shape) elements *= static_cast<std::uint64_t>(size);
      EXPECT_EQ(entry.end - entry.begin, elements * static_cast<std::uint64_t>(element_size(entry.dtype)));
      EXPECT_LE(entry.end, broken.size());
    }
  }
}

TEST_F(Safetensors, EachKindOfCorruptHeaderIsNamed) {
  struct Case {
    std::string json, data, expected;
  };
  const std::string four(4, '\0');
  for (const Case& c : {
           Case{"[1]", "", "JSON object"},
           Case{"{\"a\":", "", "not JSON at byte 6"},
           Case{R"({"a":{"dtype":"F32","shape":[1]}})", four, "'a' needs exactly dtype, shape and data_offsets"},
           Case{R"({"a":{"dtype":"F99","shape":[1],"data_offsets":[0,4]}})", four, "dtype 'F99' is not read"},
           Case{R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", four, "shape [-1]"},
           Case{R"({"a":{"dtype":"F32","shape":[1.0],"data_offsets":[0,4]}})", four, "shape [1.0]"},
           Case{R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,4]}})", four,
                "possible sizes"},
           Case{R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", four, "4 bytes, but its shape needs 8"},
           Case{R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", four, "do not lie in the file"},
           Case{R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})", four, "do not lie in the file"},
           Case{R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0]}})", four, "are not two positions"},
           Case{R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", four, "tensors end at byte 1"},
           Case{R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}})", four, "after a gap"},
           Case{R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},)"
                R"("b":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}})",
                four, "'b' begins at byte 2 of the data, inside the tensor before it"},
           Case{R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                R"("a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
                four, "the key \"a\" appears twice"},
           Case{R"({"__metadata__":{"step":3}})", "", "__metadata__ 'step' is not a string"},
           Case{R"({"__metadata__":[]})", "", "__metadata__ is not an object"},
       })
    EXPECT_NE(file_complaint(with_length(c.json, c.data)).find(c.expected), std::string::npos)
        << c.json << "\n"
        << file_complaint(with_length(c.json, c.data));
  EXPECT_NE(file_complaint("\xff\xff\xff\xff\xff\xff\xff\x7f{}").find("at most 100000000"), std::string::npos);
  EXPECT_NE(file_complaint(std::string("\x10\0\0\0\0\0\0\0{}", 10)).find("truncated"), std::string::npos);
}

TEST_F(Safetensors, AllProblemsOfAHeaderAreListedAtOnce) {
  const std::string all = file_complaint(with_length(
      R"({"a":{"dtype":"F99","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[9],"data_offsets":[0,4]}})",
      std::string(4, '\0')));
  EXPECT_NE(all.find("'a'"), std::string::npos) << all;
  EXPECT_NE(all.find("'b'"), std::string::npos) << all;
}

TEST_F(Safetensors, HeadersMayBePaddedWithSpaces) {
  EXPECT_EQ(file_complaint(with_length(R"({"a":{"dtype":"U8","shape":[],"data_offsets":[0,1]}}     )", "x")), "");
}

TEST_F(Safetensors, ReadsWhatTransformersWrote) {
  const auto file = read_model_tensors(source_path("tests/golden/transformers/qwen2"));
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_EQ(file->tensors.size(), 26u);
  EXPECT_EQ(file->metadata.at("format"), "pt");
}

TEST_F(Safetensors, ShardsAreReadThroughTheirIndex) {
  ASSERT_TRUE(write_safetensors(folder_ / "m-1.safetensors", {{"a", at::ones({2})}}).ok());
  ASSERT_TRUE(write_safetensors(folder_ / "m-2.safetensors", {{"b", at::ones({3})}, {"c", at::ones({1})}}).ok());
  const auto write_index = [&](const std::string& weight_map) {
    ASSERT_TRUE(
        write_file_atomically(folder_ / "model.safetensors.index.json", R"({"weight_map":)" + weight_map + "}").ok());
  };
  write_index(R"({"a":"m-1.safetensors","b":"m-2.safetensors","c":"m-2.safetensors"})");
  const auto file = read_model_tensors(folder_);
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_EQ(file->tensors.size(), 3u);

  write_index(R"({"a":"m-1.safetensors","b":"m-2.safetensors","d":"m-2.safetensors"})");
  const auto wrong = read_model_tensors(folder_);
  ASSERT_FALSE(wrong.ok());
  EXPECT_NE(wrong.error().message.find("lacks 'd'"), std::string::npos) << wrong.error().message;
  EXPECT_NE(wrong.error().message.find("holds 'c'"), std::string::npos) << wrong.error().message;

  write_index(R"({"a":"m-1.safetensors","b":"m-3.safetensors","c":"m-4.safetensors"})");
  const auto missing = read_model_tensors(folder_);
  ASSERT_FALSE(missing.ok());
  EXPECT_NE(missing.error().message.find("m-3.safetensors: cannot open"), std::string::npos) << missing.error().message;
  EXPECT_NE(missing.error().message.find("m-4.safetensors: cannot open"), std::string::npos) << missing.error().message;

  write_index(R"({"a":"../m-1.safetensors"})");
  EXPECT_FALSE(read_model_tensors(folder_).ok());
}

TEST_F(Safetensors, APipeIsRefusedAndNotWaitedFor) {
  ASSERT_EQ(::mkfifo((folder_ / "model.safetensors").c_str(), 0600), 0);
  const auto file = read_model_tensors(folder_);
  ASSERT_FALSE(file.ok());
  EXPECT_NE(file.error().message.find("model.safetensors: is not a regular file"), std::string::npos)
      << file.error().message;
}

TEST_F(Safetensors, AFolderWithoutWeightsSaysWhatWasExpected) {
  const auto file = read_model_tensors(folder_);
  ASSERT_FALSE(file.ok());
  EXPECT_NE(file.error().message.find("neither model.safetensors nor model.safetensors.index.json"), std::string::npos);
}

}  // namespace
}  // namespace carnot
