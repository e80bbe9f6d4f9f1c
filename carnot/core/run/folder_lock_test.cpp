#include "carnot/core/run/folder_lock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "carnot/core/base/file.h"
#include "carnot/core/base/temporary_name.h"

namespace carnot {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

class FolderLocks : public ::testing::Test {
 protected:
  FolderLocks() : root_(make_temporary_folder(fs::temp_directory_path()).value()) {}
  ~FolderLocks() override { fs::remove_all(root_); }

  fs::path root_;
};

/// Another process that holds `folder` until it is killed.
class Holder {
 public:
  explicit Holder(const fs::path& folder) {
    int ready[2];
    CARNOT_CHECK_EQ(::pipe(ready), 0);
    child_ = ::fork();
    if (child_ == 0) {
      const auto lock = FolderLock::take(folder);
      const char answer = lock ? 'y' : 'n';
      if (::write(ready[1], &answer, 1) == 1)
        while (true) ::pause();
      ::_exit(1);
    }
    ::close(ready[1]);
    char answer = 0;
    CARNOT_CHECK_EQ(::read(ready[0], &answer, 1), 1);
    ::close(ready[0]);
    CARNOT_CHECK_EQ(answer, 'y');
  }
  ~Holder() { kill(); }

  pid_t pid() const { return child_; }
  void kill() {
    if (child_ <= 0) return;
    ::kill(child_, SIGKILL);
    ::waitpid(std::exchange(child_, 0), nullptr, 0);
  }

 private:
  pid_t child_;
};

TEST_F(FolderLocks, AreFreeHeldOrAbandoned) {
  EXPECT_EQ(lock_state(root_), LockState::Free);
  {
    const auto lock = FolderLock::take(root_);
    EXPECT_EQ(lock_state(root_), LockState::Held);
  }
  EXPECT_EQ(lock_state(root_), LockState::Free);
  Holder holder(root_);
  EXPECT_EQ(lock_state(root_), LockState::Held);
  holder.kill();
  EXPECT_EQ(lock_state(root_), LockState::Abandoned);
}

TEST_F(FolderLocks, AreHeldByOneProcessWhichIsNamed) {
  const Holder holder(root_);
  const auto refused = FolderLock::take(root_);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message,
              HasSubstr(root_.string() + ": is being written by process " + std::to_string(holder.pid()) + " on "));
  EXPECT_THAT(refused.error().message, HasSubstr(" since 20"));
}

TEST_F(FolderLocks, AreTheSameThroughALink) {
  fs::create_directories(root_ / "run");
  fs::create_directory_symlink("run", root_ / "link");
  const Holder holder(root_ / "link");
  EXPECT_FALSE(FolderLock::take(root_ / "run").ok());
}

TEST_F(FolderLocks, AreFreeAgainWhenTheHolderIsKilled) {
  Holder holder(root_);
  holder.kill();
  EXPECT_TRUE(fs::exists(root_ / ".carnot-lock")) << "what a kill leaves";
  EXPECT_TRUE(FolderLock::take(root_).ok());
  EXPECT_TRUE(fs::is_empty(root_));
}

TEST_F(FolderLocks, AreHeldAgainstTheOwnProcessToo) {
  const auto lock = FolderLock::take(root_ / "run");
  ASSERT_TRUE(lock.ok());
  EXPECT_THAT(FolderLock::take(root_ / "run" / ".").error().message,
              HasSubstr("by process " + std::to_string(::getpid())));
  EXPECT_TRUE(FolderLock::take(root_ / "run" / "warm_start").ok());
}

TEST_F(FolderLocks, LeaveNoEmptyFolderBehindThatTheyMade) {
  ASSERT_TRUE(FolderLock::take(root_ / "a" / "b" / "").ok());
  EXPECT_TRUE(fs::is_empty(root_));
  {
    const auto lock = FolderLock::take(root_ / "a" / "b");
    ASSERT_TRUE(write_file_atomically(root_ / "a" / "b" / "x", "x").ok());
  }
  EXPECT_TRUE(fs::exists(root_ / "a" / "b" / "x"));
  EXPECT_FALSE(fs::exists(root_ / "a" / "b" / ".carnot-lock"));
}

TEST_F(FolderLocks, DoNotFollowALinkInPlaceOfTheirFile) {
  ASSERT_TRUE(write_file_atomically(root_ / "victim", "mine").ok());
  fs::create_symlink("victim", root_ / ".carnot-lock");
  EXPECT_THAT(FolderLock::take(root_).error().message, HasSubstr(".carnot-lock: cannot lock the folder"));
  EXPECT_EQ(read_file(root_ / "victim").value(), "mine");
}

TEST_F(FolderLocks, SayWhyAFolderCannotBeMade) {
  ASSERT_TRUE(write_file_atomically(root_ / "file", "").ok());
  const auto refused = FolderLock::take(root_ / "file" / "run");
  EXPECT_THAT(refused.error().message, HasSubstr("file/run: cannot create the folder"));
}

}  // namespace
}  // namespace carnot
