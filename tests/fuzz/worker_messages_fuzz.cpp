// Messages between trainer and workers: any bytes are a message within its bounds, or refused with a reason. What is
// read can be written, and reads back to the same.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "carnot/core/base/check.h"
#include "carnot/remote_rollouts/transport/address.h"
#include "carnot/remote_rollouts/transport/messages.h"
#include "tests/fuzz/target.h"

CARNOT_FUZZ_TARGET(worker_messages) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto read = carnot::parse_announcement(text)) {
    if (read->protocol == carnot::kWorkerProtocol) {
      CARNOT_CHECK(read->run.size() == 32 && carnot::is_sha256(read->setup.sha256), "an announcement");
      const auto again = carnot::parse_announcement(carnot::announcement_json(*read));
      CARNOT_CHECK(again && again->weights == read->weights && again->url == read->url, "an announcement");
    }
    (void)carnot::check_same_program(*read);
  } else {
    CARNOT_CHECK(!read.error().message.empty(), "refused without a reason");
  }
  if (const auto read = carnot::parse_task(text)) {
    CARNOT_CHECK(read->groups >= 1 && carnot::is_sha256(read->weights), "a task");
    CARNOT_CHECK(carnot::parse_task(carnot::task_json(*read)).value() == *read, "a task");
  }
  if (const auto read = carnot::parse_peer(text))
    CARNOT_CHECK(carnot::parse_peer(carnot::peer_json(*read)).value() == *read, "a worker that serves");
  if (const auto read = carnot::parse_setup(text))
    for (const auto& [name, content] : read->files)
      CARNOT_CHECK(name.find('/') == std::string::npos && !name.starts_with('.'), name);
  if (const auto read = carnot::parse_result(text)) CARNOT_CHECK(carnot::result_bytes(*read) == text, "a result");
  if (const auto read = carnot::parse_broker_address(text, "rollout.workers"))
    CARNOT_CHECK(carnot::parse_broker_address(read->text(), "again")->server == read->server, read->server);
  return 0;
}
