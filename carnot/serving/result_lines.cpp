#include "carnot/serving/result_lines.h"

#include <numeric>

#include "carnot/core/base/json.h"

namespace carnot {
namespace {

std::string line_of(const OrderedJson& object) {
  return object.dump(-1, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

void add_id(OrderedJson& object, const InputLine& line) {
  if (!line.id.empty()) object["id"] = parse_json<OrderedJson>(line.id, "id").value();
}

/// One entry per token of the sequence; the first has nothing before it.
OrderedJson after_first(std::span<const double> values) {
  OrderedJson list = OrderedJson::array({nullptr});
  for (const double value : values) list.push_back(value);
  return list;
}

OrderedJson json_mean(std::span<const double> values) {
  if (values.empty()) return nullptr;
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

}  // namespace

std::string generated_line(const GeneratedText& text, const InputLine& prompt) {
  OrderedJson object{{"prompt", text.prompt}, {"sample", text.sample}};
  add_id(object, prompt);
  object["text"] = text.text;
  object["finish_reason"] = text.finish == Finish::Length ? "length" : "stop";
  object["stop"] = text.finish == Finish::StopString ? OrderedJson(text.stop_string) : OrderedJson();
  object["prompt_ids"] = prompt.tokens;
  OrderedJson ids = OrderedJson::array(), log_probs = OrderedJson::array(), entropies = OrderedJson::array();
  for (const TokenDraw& draw : text.draws) {
    ids.push_back(draw.token);
    log_probs.push_back(draw.log_prob);
    entropies.push_back(draw.entropy);
  }
  object["ids"] = std::move(ids);
  object["logp"] = std::move(log_probs);
  object["entropy"] = std::move(entropies);
  return line_of(object);
}

std::string statistics_line(std::size_t index, const InputLine& line, const SequenceStatistics& statistics) {
  OrderedJson object{{"index", index}};
  add_id(object, line);
  object["ids"] = line.tokens;
  object["logp"] = after_first(statistics.log_prob);
  object["entropy"] = after_first(statistics.entropy);
  object["logsumexp"] = after_first(statistics.logsumexp);
  object["mean_logp"] = json_mean(statistics.log_prob);
  object["mean_entropy"] = json_mean(statistics.entropy);
  object["mean_logsumexp"] = json_mean(statistics.logsumexp);
  return line_of(object);
}

}  // namespace carnot
