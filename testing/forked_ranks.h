// testing/forked_ranks.h -- a group of ranks as processes of this machine, forked by a test, with a report of each.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <exception>
#include <functional>
#include <string>
#include <vector>

#include "carnot/core/base/check.h"
#include "carnot/core/base/descriptor.h"
#include "carnot/core/rank/launcher.h"

namespace carnot::testing {

/// How a forked rank ended.
struct ForkedRank {
  std::string report{};  ///< what its body returned, or "threw: ..."
  int signal = 0;        ///< that killed it
};

/// A port of the loopback interface that was free a moment ago.
inline int unused_port() {
  const Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  CARNOT_CHECK_EQ(bind(socket.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  CARNOT_CHECK_EQ(getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  return ntohs(address.sin_port);
}

namespace detail {

inline void write_all(int to, const std::string& text) {
  for (std::size_t at = 0; at < text.size();) {
    const ssize_t count = write(to, text.data() + at, text.size() - at);
    if (count <= 0) return;
    at += static_cast<std::size_t>(count);
  }
}

inline std::string read_all(int from) {
  std::string text;
  char buffer[1 << 16];
  for (ssize_t count; (count = read(from, buffer, sizeof buffer)) > 0;) text.append(buffer, count);
  return text;
}

}  // namespace detail

/// Runs `body` as every rank of a group of `size` that meets at the loopback. REQUIRES: the calling process has one
/// thread. A rank that takes longer than five minutes is killed.
inline std::vector<ForkedRank> fork_ranks(int size, const std::function<std::string(const RankSetting&)>& body) {
  const int port = unused_port();
  std::vector<pid_t> processes;
  std::vector<Descriptor> pipes;
  for (int rank = 0; rank < size; ++rank) {
    int ends[2];
    CARNOT_CHECK_EQ(pipe(ends), 0);
    Descriptor from(ends[0]), to(ends[1]);
    const pid_t process = ::fork();
    CARNOT_CHECK_GE(process, 0);
    if (process == 0) {
      alarm(300);
      std::signal(SIGPIPE, SIG_IGN);  // as the program does: c10d writes to ranks that have ended
      std::string report;
      try {
        report = body({.rank = rank,
                       .size = size,
                       .local_rank = rank,
                       .local_size = size,
                       .address = size > 1 ? "127.0.0.1" : "",
                       .port = size > 1 ? port : 0});
      } catch (const std::exception& error) {
        report = std::string("threw: ") + error.what();
      }
      detail::write_all(to.get(), report);
      _exit(0);
    }
    processes.push_back(process);
    pipes.push_back(std::move(from));
  }
  std::vector<ForkedRank> ranks;
  for (const Descriptor& pipe : pipes) ranks.push_back({.report = detail::read_all(pipe.get())});
  for (int rank = 0; rank < size; ++rank) {
    int status = 0;
    waitpid(processes[rank], &status, 0);
    if (WIFSIGNALED(status)) ranks[rank].signal = WTERMSIG(status);
  }
  return ranks;
}

}  // namespace carnot::testing
