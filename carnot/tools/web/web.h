// tools/web/web.h -- the web as tools see it: results for a query, the text of a page, a summary; cached, live or both.
//
// A query or page that the cache has is answered from there. What is away (the API, the second model, an offline cache
// that lacks a query where on_miss is Fail) is a PeerFailure: never a reward, never the policy's fault. A page that
// cannot be read is a fact about the web, which the policy reads.
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "carnot/core/base/result.h"
#include "carnot/core/env/tool.h"
#include "carnot/serving/openai/chat_endpoint.h"
#include "carnot/tools/web/cache.h"
#include "carnot/tools/web/options.h"
#include "carnot/tools/web/search_api.h"

namespace carnot {

class Web {
 public:
  /// Reads the cache and the keys; asks no one yet. Every error names its key below env.web.
  static Result<std::shared_ptr<Web>> open(const WebOptions& options);

  /// At most options.results for a query. Throws PeerFailure. Any thread, as the next two.
  std::vector<WebResult> search(const std::string& query, Tool::Deadline deadline);

  /// The page at an address, cut after options.page_length characters, or why it cannot be read. Throws PeerFailure
  /// where the cache should have it (offline, on_miss: fail).
  WebPage page(const std::string& url, Tool::Deadline deadline);

  /// What the second model writes about `pages`. Throws PeerFailure.
  std::string summarize(const std::string& query, const std::string& pages, Tool::Deadline deadline);

  const WebOptions& options() const { return options_; }

 private:
  explicit Web(const WebOptions& options) : options_(options) {}
  Status set_up();
  std::vector<WebResult> ask_api(const std::string& query, Tool::Deadline deadline);
  void wait_for_turn(Tool::Deadline deadline);
  std::string without_api_key(std::string text) const;
  void keep(const Status& kept);

  WebOptions options_;
  Url api_{};
  std::string key_{};
  std::unique_ptr<WebCache> cache_{};
  std::unique_ptr<ChatEndpoint> summary_{};
  std::mutex turn_{};
  std::chrono::steady_clock::time_point next_turn_{};
  std::once_flag warned_{};  // that the cache cannot be written
};

/// Without the thoughts that some models put before what they say: what is behind the last </think>, stripped.
std::string without_thoughts(const std::string& text);

}  // namespace carnot
