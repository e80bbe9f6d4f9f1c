#include "carnot/http/client.h"

#include <httplib.h>

#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <sstream>
#include <thread>

#include "carnot/core/base/no_pipe_signal.h"

namespace carnot {
namespace {

using Clock = std::chrono::steady_clock;

/// The library's own time-outs are for each read and write, and come later than ours: the Watch says what happened.
constexpr std::chrono::seconds kSlack{2};

/// Ends an exchange from its own thread when its time is over or it is cancelled.
class Watch {
 public:
  enum class Cause { None, Time, Cancelled };

  Watch(httplib::ClientImpl& client, const HttpLimits& limits)
      : client_(client),
        cancel_(limits.cancel),
        deadline_(Clock::now() + limits.time),
        on_cancel_(limits.cancel, [this] { wake(); }),
        thread_([this] { run(); }) {}

  ~Watch() { finish(); }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  /// The exchange is over; what ended it.
  Cause finish() {
    {
      const std::lock_guard lock(mutex_);
      finished_ = true;
    }
    wake();
    if (thread_.joinable()) thread_.join();
    return cause_;
  }

 private:
  void wake() {
    const std::lock_guard lock(mutex_);
    changed_.notify_all();
  }

  void run() {
    std::unique_lock lock(mutex_);
    changed_.wait_until(lock, deadline_, [this] { return finished_ || cancel_.stop_requested(); });
    if (finished_) return;
    cause_ = cancel_.stop_requested() ? Cause::Cancelled : Cause::Time;
    // Again and again: one that comes before the connection is made has no effect.
    do {
      lock.unlock();
      client_.stop();
      lock.lock();
    } while (!changed_.wait_for(lock, std::chrono::milliseconds(20), [this] { return finished_; }));
  }

  httplib::ClientImpl& client_;
  std::stop_token cancel_;
  Clock::time_point deadline_;
  std::mutex mutex_{};
  std::condition_variable changed_{};
  bool finished_ = false;
  Cause cause_ = Cause::None;
  std::stop_callback<std::function<void()>> on_cancel_;
  std::thread thread_;
};

std::unique_ptr<httplib::ClientImpl> client_for(const Url& url, const HttpLimits& limits) {
  auto client = url.secure ? std::make_unique<httplib::SSLClient>(url.host, url.port)
                           : std::make_unique<httplib::ClientImpl>(url.host, url.port);
  client->set_url_encode(false);
  client->set_tcp_nodelay(true);
  client->set_connection_timeout(limits.time);
  client->set_read_timeout(limits.time + kSlack);
  client->set_write_timeout(limits.time + kSlack);
  return client;
}

std::string seconds_text(std::chrono::milliseconds time) {
  std::ostringstream text;
  text << static_cast<double>(time.count()) / 1000 << " s";
  return text.str();
}

/// What the library says after the peer or the network failed.
std::string failure_text(httplib::Error error) {
  switch (error) {
    case httplib::Error::Connection: return "no connection: nothing is listening there, or the name is unknown";
    case httplib::Error::Write: return "the connection broke while the request was sent";
    case httplib::Error::Read: return "the connection ended before the answer was whole";
    case httplib::Error::SSLConnection: return "no secure connection: expected a server that speaks TLS";
    case httplib::Error::SSLLoadingCerts: return "the system's certificates cannot be read";
    case httplib::Error::SSLServerVerification: return "its certificate cannot be trusted";
    default: return "the exchange failed (" + httplib::to_string(error) + ")";
  }
}

/// Takes the answer as it comes.
class Intake {
 public:
  Intake(const HttpLimits& limits, const OnPiece* on_piece) : limits_(limits), on_piece_(on_piece) {}

  bool take_head(const httplib::Response& response) {
    answer_.status = response.status;
    for (const auto& [name, value] : response.headers) answer_.headers.push_back({name, value});
    return true;
  }

  bool take_piece(std::string_view piece) {
    if (piece.size() > limits_.answer_bytes - bytes_) {
      too_large_ = true;
      return false;
    }
    bytes_ += piece.size();
    if (on_piece_ == nullptr || !answer_.is_success()) {
      answer_.body += piece;
      return true;
    }
    try {
      ended_by_reader_ = !(*on_piece_)(answer_, piece);
    } catch (...) {  // not through the library, which holds a connection
      thrown_ = std::current_exception();
    }
    return !ended_by_reader_ && !thrown_;
  }

  void rethrow() const {
    if (thrown_) std::rethrow_exception(thrown_);
  }

  bool is_too_large() const { return too_large_; }
  bool was_ended_by_reader() const { return ended_by_reader_; }
  HttpAnswer answer() && { return std::move(answer_); }

 private:
  const HttpLimits& limits_;
  const OnPiece* on_piece_;
  HttpAnswer answer_{};
  std::size_t bytes_ = 0;
  bool too_large_ = false;
  bool ended_by_reader_ = false;
  std::exception_ptr thrown_{};
};

Result<HttpAnswer> exchange(const HttpRequest& request, const HttpLimits& limits, const OnPiece* on_piece) {
  const auto failed = [&](const std::string& why) {
    return Error{request.method + " " + request.url.shown() + ": " + why};
  };
  for (const HttpHeader& header : request.headers)
    if (!is_valid_header(header)) return failed("the header \"" + header.name + "\" has characters that none may have");

  Intake intake(limits, on_piece);
  httplib::Request sent;
  sent.method = request.method;
  sent.path = request.url.target();
  if (find_header(request.headers, "User-Agent") == nullptr) sent.headers.emplace("User-Agent", "carnot");
  if (!request.body.empty() && find_header(request.headers, "Content-Type") == nullptr)
    sent.headers.emplace("Content-Type", "application/json");
  for (const HttpHeader& header : request.headers) sent.headers.emplace(header.name, header.value);
  sent.body = request.body;
  sent.response_handler = [&](const httplib::Response& response) { return intake.take_head(response); };
  sent.content_receiver = [&](const char* data, std::size_t size, std::uint64_t, std::uint64_t) {
    return intake.take_piece({data, size});
  };

  const NoPipeSignal quiet;
  const auto client = client_for(request.url, limits);
  Watch watch(*client, limits);
  const httplib::Result result = client->send(sent);
  const Watch::Cause cause = watch.finish();
  intake.rethrow();
  if (intake.is_too_large())
    return failed("the answer has more than " + std::to_string(limits.answer_bytes) + " bytes");
  if (intake.was_ended_by_reader()) return std::move(intake).answer();
  // A body without a length looks whole when its connection is ended from here.
  if (cause == Watch::Cause::Cancelled) return failed("cancelled");
  if (cause == Watch::Cause::Time || (!result && result.error() == httplib::Error::ConnectionTimeout))
    return failed("no whole answer within " + seconds_text(limits.time));
  if (!result) return failed(failure_text(result.error()));
  return std::move(intake).answer();
}

}  // namespace

Result<HttpAnswer> http_exchange(const HttpRequest& request, const HttpLimits& limits) {
  return exchange(request, limits, nullptr);
}

Result<HttpAnswer> http_stream(const HttpRequest& request, const HttpLimits& limits, const OnPiece& on_piece) {
  return exchange(request, limits, &on_piece);
}

}  // namespace carnot
