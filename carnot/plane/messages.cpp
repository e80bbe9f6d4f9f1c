#include "carnot/plane/messages.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "carnot/base/byte_stream.h"
#include "carnot/base/json.h"
#include "carnot/http/url.h"

namespace carnot {
namespace {

constexpr std::string_view kResultMark = "carnot rollout 2\n";
constexpr std::int64_t kMostBytes = std::int64_t{1} << 44;
constexpr std::int64_t kMostSteps = std::int64_t{1} << 40;
constexpr std::int64_t kMostGroups = 1'000'000;
constexpr std::size_t kLongestText = 4096;

bool is_hexadecimal(std::string_view text, std::size_t digits) {
  return text.size() == digits &&
         std::ranges::all_of(text, [](unsigned char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

/// The members of an object, each named with what was expected where it is not right.
class ObjectReader {
 public:
  ObjectReader(const Json& object, std::string where) : object_(object), where_(std::move(where)) {}

  std::string text(const char* name, std::size_t longest = kLongestText) {
    const Json* value = member(name);
    if (value != nullptr && value->is_string() && value->get_ref<const std::string&>().size() <= longest)
      return value->get<std::string>();
    refuse(name, value, "a text of up to " + std::to_string(longest) + " bytes");
    return {};
  }
  std::int64_t number(const char* name, std::int64_t least, std::int64_t most) {
    const Json* value = member(name);
    if (value != nullptr && value->is_number_integer()) {
      const bool fits = !value->is_number_unsigned() ||
                        value->get<std::uint64_t>() <= std::uint64_t{std::numeric_limits<std::int64_t>::max()};
      if (const auto number = value->get<std::int64_t>(); fits && number >= least && number <= most) return number;
    }
    refuse(name, value, "a whole number from " + std::to_string(least) + " to " + std::to_string(most));
    return least;
  }
  std::uint64_t unsigned_number(const char* name) {
    const Json* value = member(name);
    if (value != nullptr && value->is_number_unsigned()) return value->get<std::uint64_t>();
    refuse(name, value, "a whole number of at least 0");
    return 0;
  }
  bool truth(const char* name) {
    const Json* value = member(name);
    if (value != nullptr && value->is_boolean()) return value->get<bool>();
    refuse(name, value, "true or false");
    return false;
  }
  std::string hexadecimal(const char* name, std::size_t digits) {
    const std::string found = text(name, digits);
    if (!is_hexadecimal(found, digits)) refuse(name, member(name), std::to_string(digits) + " hexadecimal digits");
    return found;
  }
  PlaneFile file(const char* name) {
    static const Json kNone = Json::object();
    const Json* value = member(name);
    if (value == nullptr || !value->is_object()) refuse(name, value, "a file's size and SHA-256");
    ObjectReader reader(value != nullptr && value->is_object() ? *value : kNone, where_ + ": " + name);
    PlaneFile file{.sha256 = reader.hexadecimal("sha256", 64), .bytes = reader.number("bytes", 0, kMostBytes)};
    std::ranges::move(reader.problems_, std::back_inserter(problems_));
    return file;
  }
  void refuse(const char* name, const Json* value, const std::string& expected) {
    problems_.push_back(where_ + ": " + name + ": expected " + expected +
                        (value == nullptr ? ", found nothing" : ", found " + shown(*value)));
  }
  const Json* member(const char* name) const {
    const auto found = object_.find(name);
    return found == object_.end() ? nullptr : &*found;
  }
  const std::vector<std::string>& problems() const { return problems_; }

 private:
  const Json& object_;
  std::string where_;
  std::vector<std::string> problems_{};
};

Json json_of(const PlaneFile& file) { return {{"sha256", file.sha256}, {"bytes", file.bytes}}; }

}  // namespace

bool is_sha256(std::string_view text) { return is_hexadecimal(text, 64); }

std::string plane_program() { return CARNOT_VERSION; }

std::string this_place() {
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) host[0] = '?';
  return "process " + std::to_string(::getpid()) + " on " + host.data();
}

std::string announcement_json(const Announcement& a) {
  Json json{{"protocol", a.protocol},    {"program", a.program}, {"run", a.run}, {"number", a.number},
            {"place", a.place},          {"kernels", a.kernels}, {"url", a.url}, {"open", a.open},
            {"setup", json_of(a.setup)}, {"version", a.version}};
  if (a.base) json["base"] = json_of(*a.base);
  if (a.version >= 0) json["weights"] = json_of(a.weights);
  return json.dump(-1, ' ', true, Json::error_handler_t::replace);
}

Result<Announcement> parse_announcement(std::string_view text) {
  const std::string where = "the trainer's announcement";
  const auto json = parse_json_object(text, where);
  if (!json) return json.error();
  ObjectReader reader(*json, where);
  Announcement a;
  a.protocol = reader.number("protocol", 0, kMostSteps);
  if (reader.problems().empty() && a.protocol != kPlaneProtocol) return a;
  a.program = reader.text("program");
  a.run = reader.hexadecimal("run", 32);
  a.number = reader.number("number", 1, kMostSteps);
  a.place = reader.text("place");
  a.kernels = reader.text("kernels");
  a.url = reader.text("url");
  a.open = reader.truth("open");
  a.setup = reader.file("setup");
  if (reader.member("base") != nullptr) a.base = reader.file("base");
  a.version = reader.number("version", -1, std::numeric_limits<int>::max());
  if (a.version >= 0) a.weights = reader.file("weights");
  if (!parse_url(a.url)) reader.refuse("url", reader.member("url"), "the address of an HTTP server");
  if (!reader.problems().empty()) return join_errors(reader.problems());
  return a;
}

Status check_same_program(const Announcement& a) {
  if (a.protocol != kPlaneProtocol)
    return Error{"the trainer speaks version " + std::to_string(a.protocol) +
                 " of the workers' protocol, this program " + std::to_string(kPlaneProtocol) +
                 "; expected the same build of carnot on both"};
  if (a.program == plane_program()) return Done{};
  return Error{"the trainer (" + a.place + ") is carnot " + a.program + ", this worker " + plane_program() +
               "; expected the same version on both"};
}

Status check_same_kernels(const Announcement& a, const std::string& kernels) {
  if (a.kernels == kernels) return Done{};
  return Error{
      "the trainer (" + a.place + ") computes with the kernels " + a.kernels + ", this worker with " + kernels +
      ": their log-probabilities would differ in the last bits; expected processors of one kind, CARNOT_KERNELS "
      "in the environment of both for a set that both have, or rollout.other_kernels=recompute"};
}

std::string peer_json(const PlanePeer& peer) {
  return Json{{"place", peer.place}, {"url", peer.url}}.dump(-1, ' ', true, Json::error_handler_t::replace);
}

Result<PlanePeer> parse_peer(std::string_view text) {
  const std::string where = "a worker that serves a file";
  const auto json = parse_json_object(text, where);
  if (!json) return json.error();
  ObjectReader reader(*json, where);
  PlanePeer peer{.place = reader.text("place"), .url = reader.text("url")};
  if (!parse_url(peer.url)) reader.refuse("url", reader.member("url"), "the address of an HTTP server");
  if (!reader.problems().empty()) return join_errors(reader.problems());
  return peer;
}

std::string setup_json(const WorkerSetup& setup) {
  const Json json{{"recipe", setup.recipe}, {"files", setup.files}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<WorkerSetup> parse_setup(std::string_view text) {
  const std::string where = "the trainer's settings";
  const auto json = parse_json_object(text, where);
  if (!json) return json.error();
  ObjectReader reader(*json, where);
  WorkerSetup setup{.recipe = reader.text("recipe", kMaxRecipeBytes)};
  const Json* files = reader.member("files");
  if (files == nullptr || !files->is_object()) {
    reader.refuse("files", files, "files by name");
  } else {
    for (const auto& [name, content] : files->items()) {
      const bool plain = !name.empty() && name.size() <= 100 && !name.starts_with('.') &&
                         std::ranges::all_of(name, [](unsigned char c) {
                           return c == '.' || c == '_' || c == '-' || (c >= '0' && c <= '9') ||
                                  (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
                         });
      if (!plain || !content.is_string())
        reader.refuse("files", &content, "texts under plain names");
      else
        setup.files[name] = content.get<std::string>();
    }
  }
  if (!reader.problems().empty()) return join_errors(reader.problems());
  return setup;
}

std::string PlaneTask::key() const { return std::to_string(step) + "-" + std::to_string(first_group); }

std::string task_json(const PlaneTask& t) {
  return Json{{"run", t.run},
              {"step", t.step},
              {"seed", t.seed},
              {"first_task", t.first_task},
              {"first_group", t.first_group},
              {"groups", t.groups},
              {"version", t.version},
              {"weights", t.weights}}
      .dump();
}

Result<PlaneTask> parse_task(std::string_view text) {
  const std::string where = "a task of the queue";
  const auto json = parse_json_object(text, where);
  if (!json) return json.error();
  ObjectReader reader(*json, where);
  PlaneTask t;
  t.run = reader.hexadecimal("run", 32);
  t.step = reader.number("step", 0, kMostSteps);
  t.seed = reader.unsigned_number("seed");
  t.first_task = reader.number("first_task", 0, kMostSteps);
  t.first_group = static_cast<std::uint64_t>(reader.number("first_group", 0, kMostSteps));
  t.groups = reader.number("groups", 1, kMostGroups);
  t.version = reader.number("version", 0, std::numeric_limits<int>::max());
  t.weights = reader.hexadecimal("weights", 64);
  if (!reader.problems().empty()) return join_errors(reader.problems());
  return t;
}

std::string result_bytes(const PlaneResult& result) {
  ByteWriter out;
  out.add(result.worker);
  out.add(result.kernels);
  out.add(result.idle_seconds);
  out.add(result.rollout);
  return std::string(kResultMark) + out.take();
}

Result<PlaneResult> parse_result(std::string_view bytes) {
  PlaneResult result;
  bool whole = bytes.starts_with(kResultMark);
  if (whole) {
    ByteReader in(bytes.substr(kResultMark.size()));
    in.get(result.worker);
    in.get(result.kernels);
    in.get(result.idle_seconds);
    in.get(result.rollout);
    whole = in.complete() && result.worker.size() <= kLongestText && result.kernels.size() <= kLongestText &&
            std::isfinite(result.idle_seconds) && result.idle_seconds >= 0;
  }
  if (!whole) return Error{"a worker's result: " + std::to_string(bytes.size()) + " bytes that are no result"};
  return result;
}

}  // namespace carnot
