// module/episode.h -- one episode of one task, as Python sees it: it may be copied, and threads may share it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "carnot/core/base/result.h"
#include "carnot/core/env/environment.h"
#include "carnot/core/env/environment_boundary.h"

namespace carnot::python {

/// Calls may come from any thread: each waits for the one before.
class Episode {
 public:
  using Make = std::function<std::unique_ptr<Environment>()>;

  /// `make` makes the episode's task each time it is called; it may be called again to play a copy.
  explicit Episode(Make make);

  /// The prompt, the same each time.
  Result<Opening> open();

  /// Answers a response, which gets the prompt's assistant prefix where it lacks it. An error before open(), and after
  /// the end.
  Result<Reply> step(PolicyResponse response);

  /// An independent copy at the present state. An error before open(), after the end, and where can_clone() is false.
  Result<std::unique_ptr<Episode>> clone();
  bool can_clone() const;

  Protocol protocol() const;
  std::string anchor() const;
  std::vector<std::string> ground_truth() const;
  std::map<std::string, std::string> info() const;

 private:
  Status expect_running(const std::string& call) const;

  Make make_;
  mutable std::mutex calls_;
  std::unique_ptr<Environment> environment_;
  std::optional<Opening> opening_{};
  std::string assistant_prefix_{};
  std::vector<PlayedTurn> played_{};  ///< kept only where a copy has to play them again
  bool done_ = false;
};

}  // namespace carnot::python
