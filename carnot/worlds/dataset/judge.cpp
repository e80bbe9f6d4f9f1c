#include "carnot/worlds/dataset/judge.h"

#include <charconv>
#include <cmath>
#include <sstream>

#include "carnot/core/base/file.h"
#include "carnot/core/base/json.h"
#include "carnot/core/base/limits.h"
#include "carnot/core/base/log.h"
#include "carnot/core/base/printable.h"
#include "carnot/core/base/strings.h"
#include "carnot/core/base/utf8.h"

namespace carnot {
namespace {

const std::string kSection = "env.judge.";
constexpr std::size_t kShownAnswerBytes = 200;

[[noreturn]] void fail(const std::string& key, const std::string& why, const std::string& answer) {
  throw ChatFailure(kSection + key + ": " + why + "; the judge answered \"" +
                    printable_line(answer.substr(0, kShownAnswerBytes)) + "\"");
}

double parse_number(const std::string& text, const std::string& answer) {
  const std::string_view digits = trim(text);
  double number = 0;
  const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (problem != std::errc{} || end != digits.data() + digits.size() || !std::isfinite(number))
    fail("score_pattern", "\"" + printable_line(text) + "\" is no number", answer);
  return number;
}

/// Without the ``` lines that models put around JSON.
std::string_view without_fence(std::string_view text) {
  text = trim(text);
  if (!text.starts_with("```") || !text.ends_with("```") || text.size() < 6) return text;
  text.remove_suffix(3);
  const std::size_t line_end = text.find('\n');
  return line_end == std::string_view::npos ? text : trim(text.substr(line_end));
}

Status set_prompt(JudgeOptions& options) {
  if (!options.prompt.empty() && !options.prompt_file.empty())
    return Error{kSection + "prompt_file: has no effect with " + kSection + "prompt; expected one of them"};
  if (!options.prompt_file.empty()) {
    auto text = read_file(options.prompt_file);
    if (!text) return Error{kSection + "prompt_file: " + text.error().message};
    options.prompt = std::move(text).value();
  }
  if (options.prompt.empty()) options.prompt = default_judge_prompt();
  if (options.prompt.find("{response}") == std::string::npos)
    return Error{kSection + "prompt: does not show the response; expected {response} in it"};
  return Done{};
}

}  // namespace

const std::string& default_judge_prompt() {
  static const std::string prompt =
      "Grade a response to a question.\n\nQuestion:\n{question}\n\nRight answer:\n{answer}\n\nResponse:\n{response}\n\n"
      "Is the response right and complete? Give your reason in one or two sentences. Then end with a line \"Score: "
      "N\", "
      "where N is a whole number from 0 (wrong) to 10 (right).";
  return prompt;
}

Result<std::unique_ptr<Judge>> Judge::open(const JudgeOptions& given) {
  JudgeOptions options = given;
  CARNOT_ASSIGN_OR_RETURN(auto endpoint, ChatEndpoint::open(options.endpoint, kSection));
  CARNOT_RETURN_IF_ERROR(set_prompt(options));
  if (options.highest <= options.lowest)
    return Error{kSection + "highest: expected a number above " + kSection + "lowest"};
  if (!options.extra.empty())
    if (const auto extra = parse_json_object(options.extra, kSection + "extra"); !extra) return extra.error();
  std::unique_ptr<Judge> judge(new Judge(options, std::move(endpoint)));
  if (options.score_field.empty()) {
    auto pattern = Pattern::compile(options.score_pattern);
    if (!pattern) return Error{kSection + "score_pattern: " + pattern.error().message};
    judge->pattern_ = std::move(pattern).value();
  }
  if (!options.cache.empty()) {
    auto cache = JudgeCache::open(options.cache);
    if (!cache) return Error{kSection + "cache: " + cache.error().message};
    judge->cache_ = std::move(cache).value();
  }
  return judge;
}

Judge::Judge(const JudgeOptions& options, std::unique_ptr<ChatEndpoint> endpoint)
    : options_(options), endpoint_(std::move(endpoint)) {}

bool Judge::needs_answer() const { return options_.prompt.find("{answer}") != std::string::npos; }

double Judge::score(const DatasetRow& row, std::string_view response) {
  const std::string request = request_for(row, response);
  const std::string name = endpoint_->url().shown() + "?" + endpoint_->url().query + "\n" + request;
  if (cache_)
    if (const auto answer = cache_->find(name)) return score_of(*answer);
  const std::string answer = endpoint_->ask(request);
  const double score = score_of(answer);  // what has no score is not kept
  if (cache_)
    if (const Status stored = cache_->store(name, answer); !stored && !warned_.exchange(true))
      log_warning(kSection + "cache: " + stored.error().message + "; the run continues without keeping such answers");
  return score;
}

std::string Judge::request_for(const DatasetRow& row, std::string_view response) const {
  const auto columns = parse_json<OrderedJson>(row.json, "row").value();
  const std::map<std::string, std::string, std::less<>> own{{"question", row.question},
                                                            {"answer", join(row.answers, " or ")},
                                                            {"response", with_replacement_characters(response)}};
  Json messages = Json::array();
  if (!options_.system.empty())
    messages.push_back({{"role", "system"}, {"content", fill_template(options_.system, columns, own)}});
  messages.push_back({{"role", "user"}, {"content", fill_template(options_.prompt, columns, own)}});
  Json request{{"model", options_.endpoint.model},
               {"messages", messages},
               {"temperature", options_.temperature},
               {"max_tokens", options_.max_tokens}};
  if (!options_.extra.empty()) request.merge_patch(parse_json(options_.extra, kSection + "extra").value());
  return request.dump(-1, ' ', false, Json::error_handler_t::replace);
}

double Judge::score_of(const std::string& answer) const {
  const double stated = stated_score(answer);
  if (stated < options_.lowest || stated > options_.highest) {
    std::ostringstream why;
    why << "a score of " << stated << "; expected " << options_.lowest << " to " << options_.highest;
    fail(stated < options_.lowest ? "lowest" : "highest", why.str(), answer);
  }
  return (stated - options_.lowest) / (options_.highest - options_.lowest);
}

double Judge::stated_score(const std::string& answer) const {
  if (pattern_) {
    const auto text = pattern_->last_match(answer);
    if (!text) fail("score_pattern", "matches nothing", answer);
    return parse_number(*text, answer);
  }
  const auto parsed = parse_json_object(without_fence(answer), "the judge's answer");
  if (!parsed) fail("score_field", parsed.error().message, answer);
  const auto found = parsed->find(options_.score_field);
  if (found == parsed->end()) fail("score_field", "no member \"" + options_.score_field + "\"", answer);
  if (found->is_boolean()) return found->get<bool>() ? options_.highest : options_.lowest;
  if (!found->is_number()) fail("score_field", "expected a number, found " + shown(*found), answer);
  return found->get<double>();
}

void JudgeOptions::fields(FieldVisitor& visit) {
  endpoint.fields(visit);
  visit.field("system", system, "system message for the judge; empty: none");
  visit.field(
      "prompt", prompt,
      "what the judge is asked; {question}, {answer}, {response}, {column}; empty: prompt_file, or Carnot's own");
  visit.field("prompt_file", prompt_file, "file that holds the prompt");
  visit.field("score_pattern", score_pattern,
              "regular expression (PCRE2) whose last match, or its first group, is the score");
  visit.field("score_field", score_field,
              "where the judge answers JSON: the member with the score, instead of a pattern");
  visit.field("lowest", lowest, "the judge's lowest score, which becomes 0; lower ones are failures");
  visit.field("highest", highest, "the judge's highest score, which becomes 1; higher ones are failures");
  visit.field("temperature", temperature, "of the judge", between(0, 10));
  visit.field("max_tokens", max_tokens, "tokens of the judge's answer", between(1, kMaxResponseTokens));
  visit.field("extra", extra, "JSON object that changes the request (RFC 7396): {\"seed\": 1, \"max_tokens\": null}");
  visit.field("cache", cache, "folder that keeps the judge's answers, for this and later runs; empty: none");
}

}  // namespace carnot
