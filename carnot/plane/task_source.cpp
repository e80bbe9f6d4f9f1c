#include "carnot/plane/task_source.h"

#include <utility>

#include "carnot/base/log.h"

namespace carnot {

using std::chrono::milliseconds;

Result<std::unique_ptr<TaskSource>> TaskSource::connect(const PlaneAddress& address, const BrokerOptions& options,
                                                        const std::string& key, const GoOn& go_on) {
  auto broker = Broker::connect(options, go_on);
  if (!broker) return broker.error();
  if (!*broker) return std::unique_ptr<TaskSource>();
  return std::unique_ptr<TaskSource>(new TaskSource(address, key, std::move(broker).value()));
}

Result<std::optional<Announcement>> TaskSource::trainer() {
  const auto announced = broker_->announced(address_.table(), "trainer");
  if (!announced) return announced.error();
  if (!announced->value) return std::optional<Announcement>();
  auto trainer = parse_announcement(*announced->value);
  if (!trainer) return trainer.error();
  return std::optional(std::move(trainer).value());
}

Result<PlaneAttempt> TaskSource::fetch(const Announcement& trainer, const PlaneFile& file,
                                       const std::filesystem::path& path, const GoOn& go_on) {
  const auto url = parse_url(trainer.url);
  if (!url) return url.error();
  return fetch_file(*url, key_, file, path, go_on);
}

Result<std::optional<LeasedTask>> TaskSource::next_task(const std::string& run, milliseconds patience) {
  auto leased = broker_->lease(address_.queue(), patience);
  if (!leased) return leased.error();
  if (!leased->value) return std::optional<LeasedTask>();
  auto task = parse_task(leased->value->data());
  if (!task) {
    log_warning(task.error().message + "; it is dropped");
    leased->value->finish();
    return std::optional<LeasedTask>();
  }
  if (task->run != run) {
    const auto now = trainer();
    if (now && *now && (*now)->run == task->run)  // the caller does not know yet
      leased->value->give_back();
    else
      leased->value->finish();
    return std::optional<LeasedTask>();
  }
  return std::optional(LeasedTask{.lease = std::move(*leased->value), .task = std::move(task).value()});
}

Result<PlaneAttempt> TaskSource::hand_in(const Announcement& trainer, const PlaneTask& task,
                                         const PlaneResult& result) {
  const auto url = parse_url(trainer.url);
  if (!url) return url.error();
  HttpHeaders headers = key_header(key_);
  headers.push_back({"Content-Type", "application/octet-stream"});
  const auto answer = http_exchange({.method = "POST",
                                     .url = url->append("results/" + task.run + "/" + task.key()),
                                     .headers = std::move(headers),
                                     .body = result_bytes(result)},
                                    {.time = std::chrono::minutes(10)});
  if (!answer) return PlaneAttempt{.why_not = answer.error().message};
  if (answer->status == 401) return key_refusal(*url);
  if (answer->status == 410) return PlaneAttempt{.done = true};
  if (answer->status == 413 || answer->status == 422)
    return Error{"the trainer (" + trainer.place + ") refuses the result of task " + task.key() + ": " + answer->body};
  if (!answer->is_success())
    return PlaneAttempt{.why_not = "POST " + url->shown() + ": status " + std::to_string(answer->status)};
  return PlaneAttempt{.done = true};
}

}  // namespace carnot
