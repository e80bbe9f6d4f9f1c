#include "carnot/tools/mcp/session.h"

#include <set>
#include <utility>

namespace carnot {
namespace {

constexpr std::size_t kMostTools = 1000;
constexpr int kMostPages = 100;
constexpr auto kAnswerTime = std::chrono::seconds(5);

}  // namespace

McpSession::McpSession(std::unique_ptr<McpTransport> transport, Deadline deadline) : transport_(std::move(transport)) {
  try {
    transport_->open(
        {.on_message = [this](std::string_view text, const std::string& where) { return receive(text, where); },
         .on_end = [this](const std::string& why) { fail(why); }},
        deadline);
    shake_hands(deadline);
    list_tools(deadline);
  } catch (...) {
    close();
    throw;
  }
}

McpSession::~McpSession() { close(); }

// The transport's threads call this object.
void McpSession::close() {
  {
    const std::lock_guard lock(mutex_);
    if (failure_.empty()) failure_ = transport_->label() + " is being closed";
  }
  transport_->close();
}

void McpSession::shake_hands(Deadline deadline) {
  const McpMessage answer = request("initialize", mcp_initialize_params(), "", deadline);
  // A server of the revision without a handshake does not know the method.
  is_stateless_ = answer.error && (answer.error->code == kMcpMethodNotFound || answer.error->code == kMcpOtherVersion);
  if (is_stateless_) return transport_->set_version(std::string(kMcpStatelessVersion));
  if (answer.error) throw PeerFailure(transport_->label() + ": initialize: " + answer.error->message);
  const auto version = read_mcp_version(answer.body);
  if (!version) throw PeerFailure(transport_->label() + " " + version.error().message);
  transport_->set_version(*version);
  send(mcp_notification("notifications/initialized"), "", "", deadline);
  if (!is_alive()) throw PeerFailure(failure_);
}

void McpSession::send(const std::string& message, std::string_view method, std::string_view tool, Deadline deadline) {
  try {
    transport_->send(message, method, tool, deadline);
  } catch (const PeerFailure& failure) {
    fail(failure.what());  // unless it has failed before, which is then the cause of this
  }
}

OrderedJson McpSession::result_of(std::string_view method, OrderedJson params, Deadline deadline) {
  McpMessage answer = request(method, std::move(params), "", deadline);
  if (answer.error) throw PeerFailure(transport_->label() + ": " + std::string(method) + ": " + answer.error->message);
  return std::move(answer.body);
}

void McpSession::list_tools(Deadline deadline) {
  std::set<std::string> names;
  std::string cursor;
  for (int page = 0; page < kMostPages; ++page) {
    OrderedJson params = OrderedJson::object();
    if (!cursor.empty()) params["cursor"] = cursor;
    auto read = read_mcp_tools(result_of("tools/list", std::move(params), deadline));
    if (!read) throw PeerFailure(transport_->label() + ": " + read.error().message);
    for (std::size_t i = 0; i < read->tools.size(); ++i) {
      if (!names.insert(read->tools[i].name).second)
        throw PeerFailure(transport_->label() + " has two tools " + read->tools[i].name);
      tools_.tools.push_back(std::move(read->tools[i]));
      tools_.names.push_back(std::move(read->names[i]));
    }
    tools_.only_read = tools_.only_read && read->only_read;
    if (tools_.tools.size() > kMostTools)
      throw PeerFailure(transport_->label() + " has more than " + std::to_string(kMostTools) + " tools");
    cursor = std::move(read->next_cursor);
    if (cursor.empty()) return;
  }
  throw PeerFailure(transport_->label() + ": the list of tools has more than " + std::to_string(kMostPages) + " pages");
}

ToolResult McpSession::call(std::string_view tool, const OrderedJson& arguments, Deadline deadline) {
  const McpMessage answer = request("tools/call", {{"name", tool}, {"arguments", arguments}}, tool, deadline);
  if (answer.error && answer.error->code == kMcpBadParameters)
    return {.text = "Error: " + answer.error->message, .status = "bad_arguments"};
  const std::string where = transport_->label() + ": tools/call of " + std::string(tool) + ": ";
  if (answer.error) throw PeerFailure(where + answer.error->message);
  auto result = read_mcp_result(answer.body);
  if (!result) throw PeerFailure(where + result.error().message);
  return std::move(result).value();
}

McpMessage McpSession::request(std::string_view method, OrderedJson params, std::string_view tool, Deadline deadline) {
  Waiting waiting;
  std::unique_lock lock(mutex_);
  if (!failure_.empty()) throw PeerFailure(failure_);
  const std::int64_t id = ++last_id_;
  waiting_[id] = &waiting;
  lock.unlock();
  send(mcp_request(id, method, std::move(params), is_stateless_), method, tool, deadline);
  lock.lock();
  waiting.changed.wait_until(lock, deadline, [&] { return waiting.answer || !failure_.empty(); });
  waiting_.erase(id);
  if (waiting.answer) return std::move(*waiting.answer);
  lock.unlock();
  fail(transport_->label() + " did not answer " + std::string(method) + " in time");
  lock.lock();
  throw PeerFailure(failure_);
}

bool McpSession::receive(std::string_view text, const std::string& where) {
  auto messages = parse_mcp(text, where);
  if (!messages) {
    fail(messages.error().message);
    return false;
  }
  bool has_answer = false;
  for (McpMessage& message : *messages) {
    if (message.kind == McpMessage::Kind::Request)
      send(mcp_answer(message.body), "", "", std::chrono::steady_clock::now() + kAnswerTime);
    if (message.kind == McpMessage::Kind::Answer) has_answer = deliver(std::move(message)) || has_answer;
  }
  return has_answer;
}

// What belongs to no open request answers a call that was given up.
bool McpSession::deliver(McpMessage message) {
  const std::lock_guard lock(mutex_);
  const auto place = waiting_.find(message.id);
  if (!failure_.empty() || place == waiting_.end() || place->second->answer) return false;
  place->second->answer = std::move(message);
  place->second->changed.notify_all();
  return true;
}

void McpSession::fail(const std::string& why) {
  const std::lock_guard lock(mutex_);
  if (!failure_.empty()) return;
  failure_ = why + transport_->last_words();
  transport_->kill();
  for (const auto& [id, waiting] : waiting_) waiting->changed.notify_all();
}

bool McpSession::is_alive() const {
  const std::lock_guard lock(mutex_);
  return failure_.empty();
}

}  // namespace carnot
