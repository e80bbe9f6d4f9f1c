#include "carnot/remote_rollouts/transport/messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace carnot {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const std::string kRun(32, 'a');
const std::string kHash(64, '5');

Announcement announcement() {
  return {.program = program_version(),
          .run = kRun,
          .number = 4,
          .place = "process 7 on node-1",
          .kernels = "avx512, cpu, float32",
          .url = "http://node-1:8400",
          .setup = {.sha256 = kHash, .bytes = 12},
          .version = 3,
          .weights = {.sha256 = std::string(64, '7'), .bytes = 99}};
}

TEST(Announcement, ReadsBack) {
  Announcement written = announcement();
  written.base = WorkerFile{.sha256 = kHash, .bytes = 1};
  const Announcement read = parse_announcement(announcement_json(written)).value();
  EXPECT_EQ(read.program, written.program);
  EXPECT_EQ(read.number, written.number);
  EXPECT_EQ(read.run, written.run);
  EXPECT_EQ(read.place, written.place);
  EXPECT_EQ(read.kernels, written.kernels);
  EXPECT_EQ(read.url, written.url);
  EXPECT_TRUE(read.open);
  EXPECT_EQ(read.setup, written.setup);
  EXPECT_EQ(read.base, written.base);
  EXPECT_EQ(read.version, 3);
  EXPECT_EQ(read.weights, written.weights);
}

TEST(Announcement, OfWhatCannotBeIsRefusedWithAllProblems) {
  Announcement wrong = announcement();
  wrong.run = "../etc";
  wrong.url = "file:///etc/passwd";
  wrong.weights.bytes = -4;
  const auto read = parse_announcement(announcement_json(wrong));
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().message, AllOf(HasSubstr("run: expected"), HasSubstr("url: expected the address"),
                                          HasSubstr("weights: bytes: expected an integer from 0")));
  EXPECT_FALSE(parse_announcement("[]"));
  EXPECT_FALSE(parse_announcement("{"));
}

TEST(Announcement, IsForTheSameProgramOnTheSameKernels) {
  EXPECT_TRUE(check_same_program(announcement()));
  EXPECT_TRUE(check_same_kernels(announcement(), announcement().kernels));
  EXPECT_THAT(check_same_kernels(announcement(), "avx2, cpu, float32").error().message,
              HasSubstr("the trainer (process 7 on node-1) computes with the kernels avx512, cpu, float32, this worker "
                        "with avx2, cpu, float32"));
  Announcement other = announcement();
  other.program = "0.0.9";
  EXPECT_THAT(check_same_program(other).error().message, HasSubstr("is carnot 0.0.9, this worker "));
}

TEST(Announcement, OfAnotherProtocolSaysSoWhateverElseItHolds) {
  const Announcement other = parse_announcement(R"({"protocol": 7, "run": 5})").value();
  EXPECT_THAT(check_same_program(other).error().message,
              HasSubstr("speaks version 7 of the workers' protocol, this program " + std::to_string(kWorkerProtocol)));
}

TEST(WorkerSetup, ReadsBack) {
  const WorkerSetup setup{.recipe = "seed: 1\n",
                          .files = {{"config.json", "{}"}, {"chat_template.jinja", "{{ \"ü\" }}"}}};
  EXPECT_EQ(parse_setup(setup_json(setup)).value(), setup);
}

TEST(WorkerSetup, HasOnlyPlainFileNames) {
  for (const char* name : {"../config.json", "a/b", ".bashrc", ""}) {
    const auto setup = parse_setup(setup_json({.recipe = "", .files = {{name, ""}}}));
    ASSERT_FALSE(setup) << name;
    EXPECT_THAT(setup.error().message, HasSubstr("strings under plain names"));
  }
}

TEST(WorkerTask, ReadsBack) {
  const WorkerTask task{.run = kRun,
                        .step = 12,
                        .seed = ~std::uint64_t{0},
                        .first_task = 100,
                        .first_group = 4,
                        .groups = 2,
                        .version = 11,
                        .weights = kHash};
  EXPECT_EQ(parse_task(task_json(task)).value(), task);
  EXPECT_EQ(task.key(), "12-4");
}

TEST(WorkerTask, OutOfBoundsIsRefused) {
  WorkerTask task{.run = kRun, .weights = kHash};
  task.groups = 0;
  EXPECT_THAT(parse_task(task_json(task)).error().message, HasSubstr("groups: expected an integer from 1"));
  task.groups = 1;
  task.step = -1;
  EXPECT_FALSE(parse_task(task_json(task)));
}

TEST(WorkerPeer, ReadsBack) {
  const WorkerPeer peer{.place = "process 1 on b", .url = "http://b:8500"};
  EXPECT_EQ(parse_peer(peer_json(peer)).value(), peer);
  EXPECT_THAT(parse_peer(R"({"place": "b", "url": "b"})").error().message, HasSubstr("the address of an HTTP server"));
  EXPECT_FALSE(parse_peer(R"({"url": "http://b"})"));
}

TEST(WorkerResult, ReadsBackOnlyWhole) {
  const std::string bytes =
      result_bytes({.worker = "process 1 on b", .kernels = "avx2", .idle_seconds = 2.5, .rollout = {"\0\1", 2}});
  const WorkerResult read = parse_result(bytes).value();
  EXPECT_EQ(read.worker, "process 1 on b");
  EXPECT_EQ(read.kernels, "avx2");
  EXPECT_EQ(read.idle_seconds, 2.5);
  EXPECT_EQ(read.rollout, std::string("\0\1", 2));
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(parse_result(std::string_view(bytes).substr(0, size)));
  EXPECT_FALSE(parse_result(bytes + "x"));
  EXPECT_FALSE(parse_result(result_bytes({.worker = "w", .idle_seconds = -1})));
  EXPECT_FALSE(parse_result(result_bytes({.worker = "w", .idle_seconds = std::nan("")})));
}

}  // namespace
}  // namespace carnot
