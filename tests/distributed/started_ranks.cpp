#include "started_ranks.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <thread>

#include "carnot/core/base/check.h"
#include "carnot/core/base/file.h"
#include "testing/paths.h"

extern char** environ;

namespace carnot::testing {
namespace {

std::vector<char*> word_pointers(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

std::vector<std::string> environment_of(int rank, int size, int port) {
  std::vector<std::string> words{"RANK=" + std::to_string(rank), "WORLD_SIZE=" + std::to_string(size),
                                 "MASTER_ADDR=127.0.0.1", "MASTER_PORT=" + std::to_string(port)};
  for (char** word = environ; *word != nullptr; ++word) words.emplace_back(*word);
  return words;
}

std::string name_of_stream(const std::string& kind, std::size_t rank) { return kind + std::to_string(rank); }

}  // namespace

StartedRanks::StartedRanks(int size, const std::vector<std::string>& arguments)
    : StartedRanks(std::vector<std::vector<std::string>>(static_cast<std::size_t>(size), arguments)) {}

StartedRanks::StartedRanks(const std::vector<std::vector<std::string>>& arguments) {
  const int port = free_port(), size = static_cast<int>(arguments.size());
  for (int rank = 0; rank < size; ++rank) {
    const auto number = static_cast<std::size_t>(rank);
    const std::string out = scratch_.write(name_of_stream("out", number), ""),
                      err = scratch_.write(name_of_stream("err", number), "");
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, out.c_str(), O_WRONLY, 0600);
    posix_spawn_file_actions_addopen(&files, STDERR_FILENO, err.c_str(), O_WRONLY, 0600);
    std::vector<std::string> words{build_path("carnot")};
    words.insert(words.end(), arguments[number].begin(), arguments[number].end());
    std::vector<std::string> environment = environment_of(rank, size, port);
    pid_t child = 0;
    CARNOT_CHECK_EQ(posix_spawn(&child, words[0].c_str(), &files, nullptr, word_pointers(words).data(),
                                word_pointers(environment).data()),
                    0);
    posix_spawn_file_actions_destroy(&files);
    processes_.push_back(child);
  }
}

StartedRanks::~StartedRanks() {
  for (const pid_t process : processes_) {
    if (process == 0) continue;
    kill(process, SIGKILL);
    waitpid(process, nullptr, 0);
  }
}

std::vector<EndedRank> StartedRanks::wait() {
  using namespace std::chrono;
  const auto deadline = steady_clock::now() + minutes(3);
  std::vector<EndedRank> ended;
  for (std::size_t rank = 0; rank < processes_.size(); ++rank) {
    int status = 0;
    while (waitpid(processes_[rank], &status, WNOHANG) == 0) {
      if (steady_clock::now() > deadline) kill(processes_[rank], SIGKILL);
      std::this_thread::sleep_for(milliseconds(5));
    }
    processes_[rank] = 0;
    ended.push_back({.exit = WIFEXITED(status) ? WEXITSTATUS(status) : -1,
                     .signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0,
                     .out = read_file(scratch_.path(name_of_stream("out", rank))).value(),
                     .err = read_file(scratch_.path(name_of_stream("err", rank))).value()});
  }
  return ended;
}

}  // namespace carnot::testing
