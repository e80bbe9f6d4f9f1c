#include "carnot/serving/tinker/weight_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "carnot/core/base/file.h"
#include "carnot/core/base/temporary_name.h"

namespace carnot {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class TinkerWeights : public ::testing::Test {
 protected:
  TinkerWeights() : folder_(make_temporary_folder(fs::temp_directory_path()).value()), store_(folder_ / "store") {}
  ~TinkerWeights() override { fs::remove_all(folder_); }

  Status save(const SavedWeights& weights, const std::string& text, bool overwrite = false) {
    return store_.save(weights, overwrite,
                       [&](const fs::path& folder) { return write_file_atomically(folder / "file", text); });
  }
  std::string saved(const SavedWeights& weights) const { return read_file(store_.folder_of(weights) / "file").value(); }

  fs::path folder_;
  WeightStore store_;
  const SavedWeights first_{.model_id = "s:train:0", .name = "first"};
};

TEST_F(TinkerWeights, AreFoundUnderTheirPath) {
  EXPECT_EQ(first_.path(), "tinker://s:train:0/weights/first");
  const SavedWeights parsed = parse_weights_path("tinker://s:train:0/sampler_weights/a.b_c-1").value();
  EXPECT_EQ(parsed.model_id, "s:train:0");
  EXPECT_TRUE(parsed.for_sampler);
  EXPECT_EQ(parsed.name, "a.b_c-1");
  EXPECT_EQ(parsed.path(), "tinker://s:train:0/sampler_weights/a.b_c-1");
}

TEST_F(TinkerWeights, HaveNamesThatStayInTheirFolder) {
  for (const char* path : {"", "tinker://", "tinker://m/weights/", "tinker://m/weights/..", "tinker://../weights/a",
                           "tinker://m/other/a", "tinker://m/weights/a/b", "/m/weights/a", "tinker://m/weights/a b",
                           "tinker://m/weights/.hidden", "tinker:///weights/a", "tinker://m//a"})
    EXPECT_THAT(parse_weights_path(path).error().message, HasSubstr("expected tinker://MODEL/weights/NAME")) << path;
  EXPECT_FALSE(save({.model_id = "../up", .name = "a"}, "x").ok());
}

TEST_F(TinkerWeights, AreReplacedOnRequestOnly) {
  ASSERT_TRUE(save(first_, "one").ok());
  EXPECT_THAT(save(first_, "two").error().message, HasSubstr("exists"));
  EXPECT_EQ(saved(first_), "one");
  ASSERT_TRUE(save(first_, "two", true).ok());
  EXPECT_EQ(saved(first_), "two");
}

TEST_F(TinkerWeights, AreAsBeforeIfWritingFails) {
  ASSERT_TRUE(save(first_, "one").ok());
  const Status failed = store_.save(first_, true, [](const fs::path&) -> Status { return Error{"the disk is full"}; });
  EXPECT_THAT(failed.error().message, HasSubstr("the disk is full"));
  EXPECT_EQ(saved(first_), "one");
}

TEST_F(TinkerWeights, AreListedAndRemoved) {
  EXPECT_TRUE(store_.list("s:train:0").empty());
  const SavedWeights sampler{.model_id = "s:train:0", .for_sampler = true, .name = "first"};
  ASSERT_TRUE(save(first_, "12345").ok() && save(sampler, "123").ok());
  const auto all = store_.list("s:train:0");
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].bytes + all[1].bytes, 8);
  EXPECT_GT(all[0].saved_at, 0);
  ASSERT_TRUE(store_.remove(first_).ok());
  EXPECT_THAT(store_.remove(first_).error().message, HasSubstr("there are no such weights"));
  EXPECT_EQ(store_.list("s:train:0").size(), 1u);
}

}  // namespace
}  // namespace carnot
