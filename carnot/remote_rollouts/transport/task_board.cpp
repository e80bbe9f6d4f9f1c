#include "carnot/remote_rollouts/transport/task_board.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <exception>
#include <random>
#include <thread>
#include <utility>

#include "carnot/core/base/check.h"
#include "carnot/core/base/log.h"

namespace carnot {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr const char* kTrainerKey = "trainer";
constexpr milliseconds kSlice{200};
constexpr seconds kBetweenLooks{2};
constexpr seconds kLonely{15};
constexpr int kConnections = 1024;
constexpr std::string_view kResults = "/results/";

std::string random_run() {
  std::random_device device;
  constexpr char kDigits[] = "0123456789abcdef";
  std::string run;
  while (run.size() < 32) run += kDigits[device() % 16];
  return run;
}

HttpReply said(int status, const std::string& text) {
  return {.status = status, .body = text, .content_type = "text/plain"};
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
  announcement_.run = random_run();
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
  const std::string queue = options.address.queue();
  const auto known = persist(go_on, [&] {
    auto last = board->announced();
    if (last && last->value) board->announcement_.number = last->value->number + 1;
    return last;
  });
  if (!known) return known.error();
  if (!*known) return std::unique_ptr<TaskBoard>();
  for (const auto& step : {std::function([&] { return board->broker_->remove_queue(queue); }),
                           std::function([&] { return board->broker_->make_queue(queue, options.lease); })}) {
    CARNOT_ASSIGN_OR_RETURN(const auto reached, persist(go_on, step));
    if (!reached) return std::unique_ptr<TaskBoard>();
  }
  return board;
}

Status TaskBoard::listen() {
  auto server = HttpServer::start({.host = options_.host,
                                   .port = options_.port,
                                   .key = options_.key,
                                   .body_type = "application/octet-stream",
                                   .certificate = options_.certificate,
                                   .private_key = options_.private_key,
                                   .max_body_bytes = options_.max_result_bytes,
                                   .max_connections = kConnections,
                                   .receive_time = std::chrono::minutes(10)},
                                  [this](const HttpCall& call, const HttpConnection&) { return answer(call); });
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
  if (std::uncaught_exceptions() > 0) return;  // as one that is killed: workers wait for who continues
  const auto now = announced();
  if (!now || !now->value || is_later(*now->value)) return;
  announcement_.open = false;
  (void)broker_->announce(options_.address.table(), kTrainerKey, announcement_json(announcement_));
  (void)broker_->remove_queue(options_.address.queue());
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

HttpReply TaskBoard::answer(const HttpCall& call) {
  {
    const std::lock_guard lock(mutex_);
    was_asked_ = true;
  }
  if (call.method == "POST" && call.path.starts_with(kResults))
    return take_result(call.path.substr(kResults.size()), call.body);
  if (call.method == "GET") return files_.answer(call.path);
  return said(404, "nothing is there");
}

HttpReply TaskBoard::take_result(const std::string& path, const std::string& body) {
  const std::string mine = announcement_.run + "/";
  if (!path.starts_with(mine)) return said(410, "of another run");
  const std::string key = path.substr(mine.size());
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
  entry.in_queue = false;
  may_miss_ = true;
  entry.task.version = announcement_.version;
  entry.task.weights = announcement_.weights.sha256;
  return said(200, "of weights that are too old; the task is handed out again");
}

std::string TaskBoard::note_of(const WorkerResult& result) const {
  return result.kernels == announcement_.kernels ? std::string() : ", with the kernels " + result.kernels;
}

std::size_t TaskBoard::num_unfinished() {
  const std::lock_guard lock(mutex_);
  return static_cast<std::size_t>(std::ranges::count_if(entries_, [](const auto& one) { return !one.second.done; }));
}

void TaskBoard::lose_queue() {
  const std::lock_guard lock(mutex_);
  for (auto& [key, entry] : entries_) entry.in_queue = false;
  may_miss_ = true;
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

void TaskBoard::forget(const std::vector<WorkerTask>& tasks) {
  const std::lock_guard lock(mutex_);
  for (const WorkerTask& task : tasks) entries_.erase(task.key());
}

Result<bool> TaskBoard::hand_out(const std::vector<WorkerTask>& tasks, const GoOn& go_on) {
  {
    const std::lock_guard lock(mutex_);
    for (const WorkerTask& task : tasks) {
      const bool is_new = entries_.emplace(task.key(), Entry{.task = task}).second;
      CARNOT_CHECK(is_new, "task " + task.key() + " is handed out already");
      may_miss_ = true;
    }
  }
  return fill_queue(go_on);
}

std::vector<WorkerTask> TaskBoard::missing_in_queue() {
  std::vector<WorkerTask> missing;
  const std::lock_guard lock(mutex_);
  if (!std::exchange(may_miss_, false)) return missing;
  for (const auto& [key, entry] : entries_)
    if (!entry.done && !entry.in_queue) missing.push_back(entry.task);
  std::ranges::sort(missing, {}, [](const WorkerTask& task) { return std::pair(task.step, task.first_group); });
  return missing;
}

Result<bool> TaskBoard::fill_queue(const GoOn& go_on) {
  const std::vector<WorkerTask> missing = missing_in_queue();
  if (missing.empty()) return true;
  const std::string attempt = "/" + std::to_string(times_filled_++);
  for (const WorkerTask& task : missing) {
    const auto mark = [&](bool in_queue) {
      const std::lock_guard lock(mutex_);
      entries_.at(task.key()).in_queue = in_queue;
      may_miss_ = may_miss_ || !in_queue;
    };
    mark(true);  // first, since its result may come at once
    const auto added = persist(go_on, [&]() -> Result<Reached<Done>> {
      auto outcome = broker_->add(options_.address.queue(), task_json(task), task.run + "/" + task.key() + attempt);
      if (outcome && !outcome->reached && broker_->is_connected())  // the queue may be gone
        (void)broker_->make_queue(options_.address.queue(), options_.lease);
      return outcome;
    });
    if (added && *added) continue;
    mark(false);
    return added;
  }
  return true;
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
  const std::size_t open = num_unfinished();
  CARNOT_ASSIGN_OR_RETURN(const auto size, broker_->size(options_.address.queue()));
  if (!size.reached) return Done{};
  const bool is_gone = !size.value;
  // Results that come between the two looks make it seem short once, a lost message does so again.
  const bool is_short = size.value && *size.value < static_cast<std::int64_t>(open);
  if (is_gone) {
    const auto made = broker_->make_queue(options_.address.queue(), options_.lease);
    if (!made || !made->reached) return made ? Status(Done{}) : made.error();
  }
  if (!is_gone && !(is_short && looked_short_)) {
    looked_short_ = is_short;
    return Done{};
  }
  looked_short_ = false;
  log_info(options_.address.text() + ": the NATS server has lost tasks; they are handed out again");
  lose_queue();
  return Done{};
}

Result<bool> TaskBoard::wait_for(const std::vector<WorkerTask>& tasks, const GoOn& go_on,
                                 const std::function<void(std::size_t done)>& on_progress) {
  begin_wait(tasks);
  const auto begin = Clock::now();
  auto next_look = begin + kBetweenLooks;
  bool warned = false;
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
      forget(tasks);
      return true;
    }
    if (!go_on()) {
      close_queue();
      return false;
    }
    if (!warned && !was_asked && Clock::now() > begin + kLonely) {
      log_info("no worker has come yet; one is started with: carnot worker " + options_.address.text());
      warned = true;
    }
    // One try: what does not succeed is tried again in a moment.
    if (broker_->is_connected())
      if (const auto filled = fill_queue([] { return false; }); !filled) return filled;
    if (Clock::now() < next_look) continue;
    CARNOT_RETURN_IF_ERROR(look_after());
    next_look = Clock::now() + kBetweenLooks;
  }
}

void TaskBoard::close_queue() {
  {
    const std::lock_guard lock(mutex_);
    entries_.clear();
  }
  if (!broker_->is_connected()) return;
  (void)broker_->remove_queue(options_.address.queue());
  (void)broker_->make_queue(options_.address.queue(), options_.lease);
}

}  // namespace carnot
