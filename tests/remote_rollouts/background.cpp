#include "tests/remote_rollouts/background.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <thread>
#include <utility>

#include "carnot/core/base/check.h"
#include "carnot/core/base/descriptor.h"
#include "carnot/core/base/file.h"

extern char** environ;

namespace carnot::testing {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr std::chrono::minutes kPatience{5};  // with programs on a busy machine

std::vector<char*> as_pointers(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

bool answers(int port) {
  const Descriptor socket(::socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

}  // namespace

Background::Background(const std::vector<std::string>& words, const std::string& log,
                       const std::vector<std::string>& environment)
    : log_(log) {
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
  std::vector<std::string> arguments = words, variables = environment;
  for (char** variable = environ; *variable != nullptr; ++variable) variables.emplace_back(*variable);
  const int problem = posix_spawnp(&process_, words[0].c_str(), &files, nullptr, as_pointers(arguments).data(),
                                   as_pointers(variables).data());
  posix_spawn_file_actions_destroy(&files);
  CARNOT_CHECK(problem == 0, words[0] + ": " + std::strerror(problem) + "; tools/install.sh installs what tests need");
}

Background::~Background() { kill(); }
Background::Background(Background&& other) noexcept
    : process_(std::exchange(other.process_, -1)), exit_(other.exit_), log_(std::move(other.log_)) {}
Background& Background::operator=(Background&& other) noexcept {
  std::swap(process_, other.process_);
  std::swap(exit_, other.exit_);
  std::swap(log_, other.log_);
  return *this;
}

void Background::signal(int number) const {
  if (process_ > 0) ::kill(process_, number);
}

bool Background::reap(int flags) {
  if (process_ <= 0) return true;
  int status = 0;
  if (::waitpid(process_, &status, flags) != process_) return false;
  exit_ = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  process_ = -1;
  return true;
}

void Background::kill() {
  signal(SIGKILL);
  reap(0);
}

int Background::wait() {
  const auto deadline = Clock::now() + kPatience;
  while (!reap(WNOHANG) && Clock::now() < deadline) std::this_thread::sleep_for(milliseconds(10));
  if (process_ <= 0) return exit_;
  kill();
  return -2;
}

bool Background::is_running() { return !reap(WNOHANG); }

std::string Background::written() const {
  const auto text = read_file(log_);
  return text ? *text : "";
}

bool Background::writes(const std::string& text) {
  const auto deadline = Clock::now() + kPatience;
  while (written().find(text) == std::string::npos) {
    if (!is_running() || Clock::now() > deadline) return written().find(text) != std::string::npos;
    std::this_thread::sleep_for(milliseconds(10));
  }
  return true;
}

NatsServer::NatsServer(const ScratchFolder& scratch, std::vector<std::string> further, bool jetstream)
    : scratch_(scratch), further_(std::move(further)), jetstream_(jetstream), port_(free_port()), server_(start()) {}

std::string NatsServer::address(const std::string& name) const {
  return "nats://127.0.0.1:" + std::to_string(port_) + (name.empty() ? "" : "/" + name);
}

Background NatsServer::start() {
  constexpr const char* kDebian = "/usr/sbin/nats-server";
  std::vector<std::string> words{std::filesystem::exists(kDebian) ? kDebian : "nats-server", "-a", "127.0.0.1", "-p",
                                 std::to_string(port_)};
  if (jetstream_) words.insert(words.end(), {"-js", "-sd", scratch_.path("nats" + std::to_string(folder_))});
  words.insert(words.end(), further_.begin(), further_.end());
  // Another connection may hold the port for a moment, which ends the server: then it is started again.
  const auto deadline = Clock::now() + kPatience;
  for (;; std::this_thread::sleep_for(milliseconds(100))) {
    Background server(words, scratch_.path("nats.log." + std::to_string(starts_++)));
    while (server.is_running() && !answers(port_) && Clock::now() < deadline)
      std::this_thread::sleep_for(milliseconds(10));
    if (server.is_running()) return server;
    CARNOT_CHECK(Clock::now() < deadline, "nats-server: " + server.written());
  }
}

void NatsServer::restart(bool with_its_data) {
  if (!with_its_data) ++folder_;
  server_ = start();
}

}  // namespace carnot::testing
