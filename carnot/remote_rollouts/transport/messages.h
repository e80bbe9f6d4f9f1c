// remote_rollouts/transport/messages.h -- what trainer and workers send each other, and how it is checked.
//
// The trainer announces itself in the key-value store, and so do workers that serve files; tasks come over HTTP. All
// are small JSON objects. Settings and weights are files, named by size and SHA-256, that workers fetch over HTTP. A
// result goes to the trainer in bytes (base/byte_stream.h): both are the same program, which the announcement's
// `program` and `protocol` make sure of.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "carnot/core/base/result.h"

namespace carnot {

/// Changes with any of the formats below.
inline constexpr std::int64_t kWorkerProtocol = 4;

/// The program's version, as announced.
std::string program_version();

/// A file that the trainer serves under /files/SHA256, and workers that have it may.
struct WorkerFile {
  std::string sha256{};
  std::int64_t bytes = 0;

  bool operator==(const WorkerFile&) const = default;
};

/// The trainer as it is now.
struct Announcement {
  std::int64_t protocol = kWorkerProtocol;
  std::string program{};             ///< version
  std::string run{};                 ///< this start of the trainer, 32 hexadecimal digits
  std::int64_t number = 1;           ///< of this start: one more than that of the trainer announced before
  std::string place{};               ///< "process 4711 on node-3", for messages
  std::string kernels{};             ///< what decides on the bits of a forward pass
  std::string url{};                 ///< of its HTTP server
  bool open = true;                  ///< false: it has ended
  WorkerFile setup{};                ///< a WorkerSetup
  std::optional<WorkerFile> base{};  ///< the weights under adapters
  std::int64_t version = -1;         ///< optimizer steps of the weights; -1: none yet
  WorkerFile weights{};              ///< what training changes, as safetensors
};

std::string announcement_json(const Announcement& announcement);
/// Another protocol is no error: the rest is then as it is by default.
Result<Announcement> parse_announcement(std::string_view text);

/// Why this program cannot work for that trainer: it has another protocol or version.
Status check_same_program(const Announcement& announcement);
/// Why this machine cannot: it has other `kernels`.
Status check_same_kernels(const Announcement& announcement, const std::string& kernels);

/// A worker that serves a file: announced under SHA256.ID, where the ID is the worker's own.
struct WorkerPeer {
  std::string place{};  ///< "process 12 on node-7", for messages
  std::string url{};    ///< of its HTTP server

  bool operator==(const WorkerPeer&) const = default;
};
std::string peer_json(const WorkerPeer& peer);
Result<WorkerPeer> parse_peer(std::string_view text);

/// What a worker needs besides weights.
struct WorkerSetup {
  std::string recipe{};                        ///< resolved, as YAML
  std::map<std::string, std::string> files{};  ///< config.json, tokenizer.json and others of a model folder

  bool operator==(const WorkerSetup&) const = default;
};
std::string setup_json(const WorkerSetup& setup);
Result<WorkerSetup> parse_setup(std::string_view text);

/// Consecutive groups of one step.
struct WorkerTask {
  std::string run{};
  std::int64_t step = 0;
  std::uint64_t seed = 0;         ///< of the draws
  std::int64_t first_task = 0;    ///< as the environment counts
  std::uint64_t first_group = 0;  ///< as the step counts
  std::int64_t groups = 1;
  std::int64_t version = 0;  ///< of the weights; in asynchronous mode the oldest that will do
  std::string weights{};     ///< their SHA-256

  /// Names it within the run.
  std::string key() const;
  bool operator==(const WorkerTask&) const = default;
};
std::string task_json(const WorkerTask& task);
Result<WorkerTask> parse_task(std::string_view text);

struct WorkerResult {
  std::string worker{};  ///< "process 12 on node-7"
  std::string kernels{};
  double idle_seconds = 0;  ///< that the worker had nothing to roll out, since its last result
  std::string rollout{};    ///< bytes (rollout/rollout_bytes.h)
};
std::string result_bytes(const WorkerResult& result);
Result<WorkerResult> parse_result(std::string_view bytes);

/// 64 lower-case hexadecimal digits.
bool is_sha256(std::string_view text);

/// "process 4711 on node-3".
std::string this_place();

}  // namespace carnot
