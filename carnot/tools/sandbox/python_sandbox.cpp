#include "carnot/tools/sandbox/python_sandbox.h"

#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "carnot/core/base/file.h"
#include "carnot/core/base/log.h"
#include "carnot/core/base/process_environment.h"
#include "carnot/core/base/strings.h"
#include "carnot/core/base/utf8.h"
#include "carnot/tools/sandbox/sandboxed_process.h"

namespace carnot {

extern const std::string_view kPythonWorker;  // worker.py, which is part of the library

namespace {

constexpr std::chrono::seconds kStartPatience{60};
constexpr std::chrono::seconds kAfterAFailure{1};

/// What a trusted program prints; empty if it fails.
std::optional<std::string> output_of(const std::vector<std::string>& command) {
  std::string line = "exec";
  for (const std::string& word : command) line += " " + in_single_quotes(word);
  std::FILE* pipe = ::popen((line + " 2>/dev/null").c_str(), "r");
  if (pipe == nullptr) return std::nullopt;
  std::string text;
  for (char piece[4096]; const std::size_t size = std::fread(piece, 1, sizeof piece, pipe);) text.append(piece, size);
  if (::pclose(pipe) != 0) return std::nullopt;
  return text;
}

struct Interpreter {
  std::string program{};
  std::vector<std::string> folders{};  ///< its libraries
};

Result<Interpreter> find_interpreter(const std::string& name) {
  const auto said =
      output_of({name, "-c", "import sys; print(sys.executable, sys.prefix, sys.base_prefix, sep='\\n')"});
  const auto lines = said ? split_lines(*said) : std::vector<std::string_view>{};
  if (lines.size() != 3) return Error{"\"" + name + "\" is not an interpreter of Python that works"};
  Interpreter found{.program = std::string(lines[0])};
  for (const std::string_view folder : {lines[1], lines[2]})
    if (std::find(found.folders.begin(), found.folders.end(), folder) == found.folders.end())
      found.folders.emplace_back(folder);
  const bool is_everything = std::find(found.folders.begin(), found.folders.end(), "/") != found.folders.end();
  if (!found.program.starts_with('/') || is_everything)
    return Error{"\"" + name + "\" does not say where it is: " + join(found.folders)};
  return found;
}

/// The layers to try where these are refused; empty if these are limits only.
std::optional<SandboxLayers> next_lower(SandboxLayers layers) {
  if (layers.namespaces) {
    layers.namespaces = false;
  } else if (layers.landlock > 0) {
    layers.landlock = 0;
  } else if (layers.system_calls) {
    layers.system_calls = false;
  } else {
    return std::nullopt;
  }
  return layers;
}

/// What the kernel says that it has; namespaces are found out by trying.
Result<SandboxLayers> probe(const std::string& launcher, const SandboxTrial& trial) {
  constexpr int kLeastLandlock = 3;  // before it, files can be emptied
  const auto said = output_of({launcher, "probe"});
  SandboxLayers layers{.namespaces = trial.namespaces};
  int filters = 0;
  if (!said || std::sscanf(said->c_str(), "landlock %d\nsystem_calls %d", &layers.landlock, &filters) != 2)
    return Error{launcher + " does not run"};
  if (!trial.landlock || layers.landlock < kLeastLandlock) layers.landlock = 0;
  layers.system_calls = trial.system_calls && filters == 1;
  return layers;
}

Status check_level(const SandboxLayers& layers, SandboxLevel least, const std::vector<std::string>& refusals) {
  if (level_of(layers) >= least) return Done{};
  std::string why;
  for (const std::string& refusal : refusals) why += "; " + refusal;
  return Error{"level " + kSandboxLevels[static_cast<std::size_t>(least)] +
               " is the least that is accepted, but this " + "machine grants " + shown(layers) + why};
}

}  // namespace

class PythonSandbox::Pool {
 public:
  explicit Pool(SandboxedProgram program) : program_(std::move(program)) {}

  ~Pool() {
    {
      const std::lock_guard lock(mutex_);
      is_over_ = true;
    }
    wake_.notify_all();
    if (starter_.joinable()) starter_.join();
  }

  /// REQUIRES: the first process was started well.
  void begin(std::unique_ptr<SandboxedProcess> first) {
    if (program_.limits.warm > 0) ready_.push_back(std::move(first));
    starter_ = std::thread([this] { keep_ready(); });
  }

  const SandboxedProgram& program() const { return program_; }

  std::unique_ptr<SandboxedProcess> start() const {
    auto process = std::make_unique<SandboxedProcess>(program_);
    process->wait_until_ready(kStartPatience);
    return process;
  }

  CodeResult run(const CodeCall& call) {
    count_running(1);
    const std::shared_ptr<void> at_the_end(nullptr, [this](void*) { count_running(-1); });
    return take()->run(call);
  }

 private:
  /// The starter is to know when the count changes.
  void count_running(int change) {
    {
      const std::lock_guard lock(mutex_);
      running_ += change;
    }
    wake_.notify_all();
  }

  std::unique_ptr<SandboxedProcess> take() {
    for (;;) {
      std::unique_ptr<SandboxedProcess> process;
      {
        const std::lock_guard lock(mutex_);
        if (ready_.empty()) break;
        process = std::move(ready_.front());
        ready_.pop_front();
      }
      wake_.notify_all();
      if (process->is_alive()) return process;
      log_warning("a sandbox that was started ahead has ended; it is replaced");
    }
    return start();
  }

  /// To start an interpreter takes more processor time than a short call. While calls run, it waits, unless as many
  /// calls more would find none ready.
  bool is_one_wanted() const {
    if (ready_.size() >= static_cast<std::size_t>(program_.limits.warm)) return false;
    return running_ == 0 || std::ssize(ready_) < running_;
  }

  void keep_ready() {
    std::unique_lock lock(mutex_);
    for (;;) {
      wake_.wait(lock, [&] { return is_over_ || is_one_wanted(); });
      if (is_over_) return;
      lock.unlock();
      std::unique_ptr<SandboxedProcess> started;
      try {
        started = start();
      } catch (const SandboxFailure&) {
        // A call that finds none ready starts one itself, and reports what is wrong.
      }
      lock.lock();
      if (started)
        ready_.push_back(std::move(started));
      else
        wake_.wait_for(lock, kAfterAFailure, [&] { return is_over_; });
    }
  }

  const SandboxedProgram program_;
  std::mutex mutex_{};
  std::condition_variable wake_{};
  std::deque<std::unique_ptr<SandboxedProcess>> ready_{};
  int running_ = 0;  // calls
  bool is_over_ = false;
  std::thread starter_{};
};

PythonSandbox::PythonSandbox(std::unique_ptr<Pool> pool) : pool_(std::move(pool)) {}
PythonSandbox::~PythonSandbox() = default;

const SandboxLayers& PythonSandbox::layers() const { return pool_->program().layers; }

Result<std::shared_ptr<PythonSandbox>> PythonSandbox::open(const SandboxOptions& options, const SandboxTrial& trial) {
  CARNOT_ASSIGN_OR_RETURN(const auto launcher, find_own_program("carnot-sandbox", "CARNOT_SANDBOX"));
  CARNOT_ASSIGN_OR_RETURN(const auto interpreter, find_interpreter(options.interpreter));
  CARNOT_ASSIGN_OR_RETURN(const auto granted, probe(launcher, trial));
  SandboxedProgram program{.launcher = launcher,
                           .layers = granted,
                           .command = {interpreter.program, "-s", "-c", std::string(kPythonWorker)},
                           .read = interpreter.folders,
                           .limits = options,
                           .as_user = trial.as_user};
  program.command.insert(program.command.end(), options.imports.begin(), options.imports.end());
  program.read.insert(program.read.end(), options.read.begin(), options.read.end());
  std::vector<std::string> refusals;
  for (;;) {
    CARNOT_RETURN_IF_ERROR(check_level(program.layers, options.least, refusals));
    auto pool = std::make_unique<Pool>(program);
    try {
      pool->begin(pool->start());
      return std::shared_ptr<PythonSandbox>(new PythonSandbox(std::move(pool)));
    } catch (const LayerRefused& refusal) {
      refusals.push_back("with " + shown(program.layers) + ": " + refusal.what());
    } catch (const SandboxFailure& failure) {
      return Error{failure.what()};
    }
    const auto lower = next_lower(program.layers);
    if (!lower) return join_errors(refusals);
    program.layers = *lower;
  }
}

CodeResult PythonSandbox::run(const CodeCall& call) {
  const std::size_t longest = static_cast<std::size_t>(pool_->program().limits.code_kb) << 10;
  if (call.code.size() > longest)
    return {.standard_error = "The code has " + std::to_string(call.code.size()) + " bytes; at most " +
                              std::to_string(longest) + " are accepted.\n",
            .exit_code = 1,
            .status = CodeStatus::Refused};
  return pool_->run(call);
}

}  // namespace carnot
