#include "carnot/remote_rollouts/transport/messages.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "carnot/core/base/byte_stream.h"
#include "carnot/core/base/host_name.h"
#include "carnot/core/base/json_fields.h"
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

// Every field must be there.

void read_text(const JsonFields& from, const char* name, std::string& text, std::size_t longest = kLongestText) {
  const Json* found = from.find(name);
  if (found == nullptr || !found->is_string() || found->get_ref<const std::string&>().size() > longest)
    return from.expected(name, "a string of up to " + std::to_string(longest) + " bytes");
  text = found->get<std::string>();
}

void read_hexadecimal(const JsonFields& from, const char* name, std::string& text, std::size_t digits) {
  const Json* found = from.find(name);
  if (found == nullptr || !found->is_string() || !is_hexadecimal(found->get_ref<const std::string&>(), digits))
    return from.expected(name, std::to_string(digits) + " hexadecimal digits");
  text = found->get<std::string>();
}

void read_url(const JsonFields& from, std::string& url) {
  read_text(from, "url", url);
  if (!parse_url(url)) from.expected("url", "the address of an HTTP server");
}

void read_file(const JsonFields& from, const char* name, WorkerFile& file) {
  const auto fields = from.object(name, "a file's size and SHA-256");
  if (!fields) return;
  read_hexadecimal(*fields, "sha256", file.sha256, 64);
  fields->read_whole("bytes", file.bytes, 0, kMostBytes);
}

Json json_of(const WorkerFile& file) { return {{"sha256", file.sha256}, {"bytes", file.bytes}}; }

}  // namespace

bool is_sha256(std::string_view text) { return is_hexadecimal(text, 64); }

std::string program_version() { return CARNOT_VERSION; }

std::string this_place() { return "process " + std::to_string(::getpid()) + " on " + host_name(); }

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
  CARNOT_ASSIGN_OR_RETURN(const auto json, parse_json_object(text, where));
  std::vector<std::string> problems;
  const JsonFields fields(json, where, problems);
  Announcement a;
  fields.read_whole("protocol", a.protocol, 0, kMostSteps);
  if (problems.empty() && a.protocol != kWorkerProtocol) return a;
  read_text(fields, "program", a.program);
  read_hexadecimal(fields, "run", a.run, 32);
  fields.read_whole("number", a.number, 1, kMostSteps);
  read_text(fields, "place", a.place);
  read_text(fields, "kernels", a.kernels);
  read_url(fields, a.url);
  if (fields.require("open")) fields.read("open", a.open);
  read_file(fields, "setup", a.setup);
  if (fields.find("base") != nullptr) read_file(fields, "base", a.base.emplace());
  fields.read_whole("version", a.version, -1, std::numeric_limits<int>::max());
  if (a.version >= 0) read_file(fields, "weights", a.weights);
  if (!problems.empty()) return join_errors(problems);
  return a;
}

Status check_same_program(const Announcement& a) {
  if (a.protocol != kWorkerProtocol)
    return Error{"the trainer speaks version " + std::to_string(a.protocol) +
                 " of the workers' protocol, this program " + std::to_string(kWorkerProtocol) +
                 "; expected the same build of carnot on both"};
  if (a.program == program_version()) return Done{};
  return Error{"the trainer (" + a.place + ") is carnot " + a.program + ", this worker " + program_version() +
               "; expected the same version on both"};
}

Status check_same_kernels(const Announcement& a, const std::string& kernels) {
  if (a.kernels == kernels) return Done{};
  return Error{
      "the trainer (" + a.place + ") computes with the kernels " + a.kernels + ", this worker with " + kernels +
      ": their log-probabilities would differ in the last bits; expected processors of one kind, CARNOT_KERNELS "
      "in the environment of both for a set that both have, or rollout.other_kernels=recompute"};
}

std::string peer_json(const WorkerPeer& peer) {
  return Json{{"place", peer.place}, {"url", peer.url}}.dump(-1, ' ', true, Json::error_handler_t::replace);
}

Result<WorkerPeer> parse_peer(std::string_view text) {
  const std::string where = "a worker that serves a file";
  CARNOT_ASSIGN_OR_RETURN(const auto json, parse_json_object(text, where));
  std::vector<std::string> problems;
  const JsonFields fields(json, where, problems);
  WorkerPeer peer;
  read_text(fields, "place", peer.place);
  read_url(fields, peer.url);
  if (!problems.empty()) return join_errors(problems);
  return peer;
}

std::string setup_json(const WorkerSetup& setup) {
  const Json json{{"recipe", setup.recipe}, {"files", setup.files}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<WorkerSetup> parse_setup(std::string_view text) {
  const std::string where = "the trainer's settings";
  CARNOT_ASSIGN_OR_RETURN(const auto json, parse_json_object(text, where));
  std::vector<std::string> problems;
  const JsonFields fields(json, where, problems);
  WorkerSetup setup;
  read_text(fields, "recipe", setup.recipe, kMaxRecipeBytes);
  const Json* files = fields.find("files");
  if (files == nullptr || !files->is_object()) {
    fields.expected("files", "files by name");
  } else {
    for (const auto& [name, content] : files->items()) {
      const bool plain = !name.empty() && name.size() <= 100 && !name.starts_with('.') &&
                         std::ranges::all_of(name, [](unsigned char c) {
                           return c == '.' || c == '_' || c == '-' || (c >= '0' && c <= '9') ||
                                  (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
                         });
      if (!plain || !content.is_string())
        fields.expected("files", "strings under plain names", content);
      else
        setup.files[name] = content.get<std::string>();
    }
  }
  if (!problems.empty()) return join_errors(problems);
  return setup;
}

std::string WorkerTask::key() const { return std::to_string(step) + "-" + std::to_string(first_group); }

std::string task_json(const WorkerTask& t) {
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

Result<WorkerTask> parse_task(std::string_view text) {
  const std::string where = "a task";
  CARNOT_ASSIGN_OR_RETURN(const auto json, parse_json_object(text, where));
  std::vector<std::string> problems;
  const JsonFields fields(json, where, problems);
  WorkerTask t;
  std::int64_t first_group = 0;
  read_hexadecimal(fields, "run", t.run, 32);
  fields.read_whole("step", t.step, 0, kMostSteps);
  if (fields.require("seed")) fields.read_whole("seed", t.seed);
  fields.read_whole("first_task", t.first_task, 0, kMostSteps);
  fields.read_whole("first_group", first_group, 0, kMostSteps);
  fields.read_whole("groups", t.groups, 1, kMostGroups);
  fields.read_whole("version", t.version, 0, std::numeric_limits<int>::max());
  read_hexadecimal(fields, "weights", t.weights, 64);
  t.first_group = static_cast<std::uint64_t>(first_group);
  if (!problems.empty()) return join_errors(problems);
  return t;
}

std::string result_bytes(const WorkerResult& result) {
  ByteWriter out;
  out.add(result.worker);
  out.add(result.kernels);
  out.add(result.idle_seconds);
  out.add(result.rollout);
  return std::string(kResultMark) + out.take();
}

Result<WorkerResult> parse_result(std::string_view bytes) {
  WorkerResult result;
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
  if (!whole) return Error{"a worker's result: " + std::to_string(bytes.size()) + " bytes that are not one"};
  return result;
}

}  // namespace carnot
