#include "carnot/remote_rollouts/transport/task_board.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <exception>
#include <thread>
#include <utility>

#include "carnot/core/base/check.h"
#include "carnot/core/base/log.h"
#include "carnot/core/base/temporary_name.h"

namespace carnot {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr const char* kTrainerKey = "trainer";
constexpr milliseconds kSlice{200};
constexpr seconds kBetweenLooks{2};
constexpr seconds kLonely{15};
constexpr int kConnections = 1024;
constexpr milliseconds kLeaseSlice{100};
constexpr int kLeaseSlices = 5;  // then the worker is asked to come again

HttpReply said(int status, const std::string& text) {
  return {.status = status, .body = text, .content_type = "text/plain"};
}

/// The parts of "/a/b/c", without the first slash.
std::vector<std::string> parts_of(std::string_view path) {
  std::vector<std::string> parts;
  while (!path.empty()) {
    path.remove_prefix(1);
    parts.emplace_back(path.substr(0, path.find('/')));
    path.remove_prefix(parts.back().size());
  }
  return parts;
}

/// Calls until the broker was reached. False if `go_on` ended it.
template <class Call>
Result<bool> persist(const GoOn& go_on, const Call& call) {
  for (;; std::this_thread::sleep_for(kSlice)) {
    CARNOT_ASSIGN_OR_RETURN(const auto outcome, call());
    if (outcome.reached) return true;
    if (!go_on()) return false;
  }
}

}  // namespace

TaskBoard::TaskBoard(const TaskBoardOptions& options, std::unique_ptr<Broker> broker)
    : options_(options), broker_(std::move(broker)), files_(options.most_uploads) {
  announcement_.program = program_version();
  announcement_.run = random_hexadecimal(32);
  announcement_.place = this_place();
  announcement_.kernels = options.kernels;
}

Status check_listening(const TaskBoardOptions& options) {
  if (!options.key.empty() || is_loopback(options.host)) return Done{};
  return Error{"rollout.workers_listen: other machines reach " + options.host +
               "; expected rollout.workers_key_env with the name of an environment variable that holds a key, or "
               "127.0.0.1"};
}

Result<std::unique_ptr<TaskBoard>> TaskBoard::open(const TaskBoardOptions& options, const GoOn& go_on) {
  CARNOT_RETURN_IF_ERROR(check_listening(options));
  CARNOT_ASSIGN_OR_RETURN(auto broker, Broker::connect(options.broker, go_on));
  if (!broker) return std::unique_ptr<TaskBoard>();
  std::unique_ptr<TaskBoard> board(new TaskBoard(options, std::move(broker)));
  CARNOT_RETURN_IF_ERROR(board->listen());
  CARNOT_ASSIGN_OR_RETURN(const auto known, persist(go_on, [&] {
                            auto last = board->announced();
                            if (last && last->value) board->announcement_.number = last->value->number + 1;
                            return last;
                          }));
  if (!known) return std::unique_ptr<TaskBoard>();
  return board;
}

Status TaskBoard::listen() {
  auto server = HttpServer::start(
      {.host = options_.host,
       .port = options_.port,
       .key = options_.key,
       .body_types = {"application/octet-stream"},
       .certificate = options_.certificate,
       .private_key = options_.private_key,
       .max_body_bytes = options_.max_result_bytes,
       .max_connections = kConnections,
       .receive_time = std::chrono::minutes(10)},
      [this](const HttpCall& call, const HttpConnection& connection) { return answer(call, connection); });
  if (!server) return Error{"rollout.workers_listen: " + server.error().message};
  server_ = std::move(server).value();
  const bool is_ipv6 = options_.host.find(':') != std::string::npos && !options_.host.starts_with('[');
  announcement_.url = options_.url;
  if (options_.url.empty())
    announcement_.url = std::string(options_.certificate.empty() ? "http://" : "https://") +
                        (is_ipv6 ? "[" + options_.host + "]" : options_.host) + ":" + std::to_string(server_->port());
  return Done{};
}

Result<Reached<std::optional<Announcement>>> TaskBoard::announced() {
  CARNOT_ASSIGN_OR_RETURN(const auto now, broker_->announced(options_.address.table(), kTrainerKey));
  Reached<std::optional<Announcement>> found{.reached = now.reached};
  if (!now.value) return found;
  if (auto trainer = parse_announcement(*now.value)) found.value = std::move(trainer).value();
  return found;
}

bool TaskBoard::is_later(const Announcement& other) const {
  return other.run != announcement_.run && other.number >= announcement_.number;
}

TaskBoard::~TaskBoard() {
  if (!is_announced_ || !broker_->is_connected()) return;
  if (std::uncaught_exceptions() > 0) return;  // as if killed: workers wait for the trainer that continues
  const auto now = announced();
  if (!now || !now->value || is_later(*now->value)) return;
  announcement_.open = false;
  (void)broker_->announce(options_.address.table(), kTrainerKey, announcement_json(announcement_));
}

void TaskBoard::set_setup(const WorkerFile& setup, const std::optional<WorkerFile>& base) {
  announcement_.setup = setup;
  announcement_.base = base;
}

void TaskBoard::set_weights(std::int64_t version, const WorkerFile& weights) {
  const std::lock_guard lock(mutex_);
  if (announcement_.version >= 0 && announcement_.weights != weights) files_.drop(announcement_.weights);
  announcement_.version = version;
  announcement_.weights = weights;
}

Result<bool> TaskBoard::announce(const GoOn& go_on) {
  is_announced_ = true;
  return persist(go_on, [&] {
    return broker_->announce(options_.address.table(), kTrainerKey, announcement_json(announcement_));
  });
}

HttpReply TaskBoard::answer(const HttpCall& call, const HttpConnection& connection) {
  {
    const std::lock_guard lock(mutex_);
    was_asked_ = true;
  }
  if (call.method == "GET") return files_.answer(call.path);
  const std::vector<std::string> parts = parts_of(call.path);
  if (call.method != "POST" || parts.size() < 3) return said(404, "nothing is there");
  if (parts[1] != announcement_.run) return said(410, "of another run");
  if (parts[0] == "results" && parts.size() == 3) return take_result(parts[2], call.body);
  if (parts[0] == "tasks" && parts.size() == 3) return lease_next(parts[2], connection);
  if (parts[0] == "leases" && parts.size() == 4) return set_lease(parts[2], parts[3], Clock::now() + options_.lease);
  if (parts[0] == "returns" && parts.size() == 4) return set_lease(parts[2], parts[3], {});
  return said(404, "nothing is there");
}

TaskBoard::Entry* TaskBoard::next_free() {
  const auto now = Clock::now();
  const auto place = [](const Entry& entry) { return std::pair(entry.task.step, entry.task.first_group); };
  Entry* first = nullptr;
  for (auto& [key, entry] : entries_)
    if (!entry.done && entry.leased_until <= now && (first == nullptr || place(entry) < place(*first))) first = &entry;
  return first;
}

HttpReply TaskBoard::lease_next(const std::string& worker, const HttpConnection& connection) {
  std::unique_lock lock(mutex_);
  Entry* next = next_free();
  for (int slice = 0; next == nullptr && slice < kLeaseSlices; ++slice) {
    task_came_.wait_for(lock, kLeaseSlice);
    next = next_free();
  }
  if (next == nullptr || connection.may_have_left()) return said(503, "no task is free");
  next->worker = worker;
  next->leased_until = Clock::now() + options_.lease;
  return {.body = task_json(next->task)};
}

HttpReply TaskBoard::set_lease(const std::string& task, const std::string& worker, Clock::time_point until) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(task);
  if (found == entries_.end() || found->second.done || found->second.worker != worker)
    return said(200, "not needed any more");
  found->second.leased_until = until;
  task_came_.notify_one();
  return said(200, "done");
}

HttpReply TaskBoard::take_result(const std::string& key, const std::string& body) {
  const auto result = parse_result(body);
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(key);
  if (found == entries_.end() || found->second.done) return said(200, "not needed any more");
  Entry& entry = found->second;
  Result<Verdict> verdict = Verdict::Taken;
  if (!result)
    verdict = result.error();
  else if (result->kernels != announcement_.kernels && !options_.takes_other_kernels)
    verdict = Error{"computed with the kernels " + result->kernels + "; expected " + announcement_.kernels};
  else
    verdict = accept_(entry.task, *result);
  if (!verdict) {
    log_warning("the result of task " + key + (result ? " from " + result->worker : "") +
                " is refused: " + verdict.error().message);
    return said(422, verdict.error().message);
  }
  if (workers_.insert(result->worker).second) log_info("worker: " + result->worker + note_of(*result));
  entry.done = *verdict == Verdict::Taken;
  if (entry.done && entry.wait == waits_) ++num_done_;
  result_came_.notify_all();
  if (entry.done) return said(200, "taken");
  entry.leased_until = {};
  entry.task.version = announcement_.version;
  entry.task.weights = announcement_.weights.sha256;
  task_came_.notify_one();
  return said(200, "of weights that are too old; the task is handed out again");
}

std::string TaskBoard::note_of(const WorkerResult& result) const {
  return result.kernels == announcement_.kernels ? std::string() : ", with the kernels " + result.kernels;
}

void TaskBoard::begin_wait(const std::vector<WorkerTask>& tasks) {
  const std::lock_guard lock(mutex_);
  ++waits_;
  num_done_ = 0;
  for (const WorkerTask& task : tasks) {
    Entry& entry = entries_.at(task.key());
    entry.wait = waits_;
    num_done_ += entry.done ? 1 : 0;
  }
}

void TaskBoard::hand_out(const std::vector<WorkerTask>& tasks) {
  const std::lock_guard lock(mutex_);
  for (const WorkerTask& task : tasks) {
    const bool is_new = entries_.emplace(task.key(), Entry{.task = task}).second;
    CARNOT_CHECK(is_new, "task " + task.key() + " is handed out already");
  }
  task_came_.notify_all();
}

Status TaskBoard::look_after() {
  if (!broker_->is_connected()) return Done{};
  CARNOT_ASSIGN_OR_RETURN(const auto now, announced());
  if (!now.reached) return Done{};
  if (now.value && is_later(*now.value))
    return Error{"rollout.workers: another trainer (" + now.value->place + ") has taken " + options_.address.text() +
                 "; expected a separate name for each, as in " + options_.address.server + "/second"};
  // A broker that was killed may come back with what was announced before, or with nothing.
  const std::string mine = announcement_json(announcement_);
  if (!now.value || announcement_json(*now.value) != mine)
    (void)broker_->announce(options_.address.table(), kTrainerKey, mine);
  return Done{};
}

Result<bool> TaskBoard::wait_for(const std::vector<WorkerTask>& tasks, const GoOn& go_on,
                                 const std::function<void(std::size_t done)>& on_progress) {
  begin_wait(tasks);
  const auto begin = Clock::now();
  auto next_look = begin + kBetweenLooks;
  bool is_reported = false;
  for (std::size_t last = 0;;) {
    bool was_asked = false;
    {
      std::unique_lock lock(mutex_);
      result_came_.wait_for(lock, kSlice, [&] { return num_done_ > last; });
      last = num_done_;
      was_asked = was_asked_;
    }
    if (on_progress) on_progress(last);
    if (last == tasks.size()) {
      const std::lock_guard lock(mutex_);
      for (const WorkerTask& task : tasks) entries_.erase(task.key());
      return true;
    }
    if (!go_on()) {
      const std::lock_guard lock(mutex_);
      entries_.clear();
      return false;
    }
    if (!is_reported && !was_asked && Clock::now() > begin + kLonely) {
      log_info("no worker has come yet; one is started with: carnot worker " + options_.address.text());
      is_reported = true;
    }
    if (Clock::now() < next_look) continue;
    CARNOT_RETURN_IF_ERROR(look_after());
    next_look = Clock::now() + kBetweenLooks;
  }
}

}  // namespace carnot
