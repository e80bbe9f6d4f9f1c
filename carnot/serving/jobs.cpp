#include "carnot/serving/jobs.h"

#include <algorithm>
#include <istream>
#include <numeric>
#include <ostream>

#include "carnot/core/base/file.h"
#include "carnot/core/base/json.h"
#include "carnot/core/base/log.h"
#include "carnot/core/rollout/log_prob_pass.h"

namespace carnot {
namespace {

constexpr const char* kStandardInput = "standard input";

/// The text of a file, and the name of it in messages.
struct Source {
  std::string name{};
  std::string text{};
};
Result<Source> read_source(const std::string& input, std::istream& in) {
  const std::string name = input == "-" ? kStandardInput : input;
  CARNOT_ASSIGN_OR_RETURN(auto text, input == "-" ? read_stream(in, name) : read_maybe_compressed(input));
  return Source{name, std::move(text)};
}

InputFormat format_of(const LoadedModel& model) {
  return {.tokenizer = model.tokenizer.get(),
          .tokenizer_problem = model.tokenizer_problem,
          .chat = model.chat.get(),
          .vocab_size = model.model->config().vocab_size,
          .max_positions = model.model->config().max_positions};
}

Result<std::vector<InputLine>> prompts_of(const GenerateRequest& request, const InputFormat& format, std::istream& in) {
  if (!request.input.empty()) {
    if (!request.prompts.empty() || !request.messages.empty())
      return Error{"--input: given together with prompts; expected one of them"};
    CARNOT_ASSIGN_OR_RETURN(const auto source, read_source(request.input, in));
    return prompt_lines(source.text, format, source.name);
  }
  std::vector<InputLine> prompts;
  for (std::size_t i = 0; i < request.prompts.size(); ++i) {
    CARNOT_ASSIGN_OR_RETURN(auto prompt, prompt_input(request.prompts[i], format, "prompt " + std::to_string(i + 1)));
    prompts.push_back(std::move(prompt));
  }
  if (!request.messages.empty()) {
    CARNOT_ASSIGN_OR_RETURN(auto prompt, messages_input(request.messages, format, "--messages"));
    prompts.push_back(std::move(prompt));
  }
  if (prompts.empty()) {
    CARNOT_ASSIGN_OR_RETURN(const auto text, read_stream(in, kStandardInput));
    CARNOT_ASSIGN_OR_RETURN(auto prompt, prompt_input(text, format, kStandardInput));
    prompts.push_back(std::move(prompt));
  }
  return prompts;
}

/// Flags win over generation_config.json; where neither says to sample, the most likely token is taken.
SamplingOptions sampling_of(const GenerateRequest& request, const LoadedModel& model) {
  SamplingOptions sampling = folder_sampling(model).value_or(SamplingOptions{.temperature = 0});
  sampling.temperature = request.temperature.value_or(sampling.temperature);
  sampling.top_p = request.top_p.value_or(sampling.top_p);
  sampling.top_k = request.top_k.value_or(sampling.top_k);
  return sampling;
}

std::vector<std::vector<TokenId>> tokens_of(const std::vector<InputLine>& lines) {
  std::vector<std::vector<TokenId>> tokens;
  for (const InputLine& line : lines) tokens.push_back(line.tokens);
  return tokens;
}

std::string heading(const GeneratedText& text, const GenerateOptions& options) {
  std::string line = "-------- prompt " + std::to_string(text.prompt + 1);
  if (options.samples > 1) line += ", sample " + std::to_string(text.sample + 1);
  return line + "\n";
}

bool write(std::ostream& out, const std::string& text) {
  out << text << std::flush;
  return out.good();
}

/// Consecutive sequences that make a forward pass.
std::size_t pass_end(const std::vector<InputLine>& sequences, std::size_t begin, int batch_tokens) {
  std::size_t end = begin, rows = 0;
  while (end < sequences.size() &&
         (end == begin || rows + sequences[end].tokens.size() <= static_cast<std::size_t>(batch_tokens)))
    rows += sequences[end++].tokens.size();
  return end;
}

std::vector<MeasuredSequence> whole_sequences(std::span<const InputLine> lines) {
  std::vector<MeasuredSequence> sequences;
  for (const InputLine& line : lines) {
    MeasuredSequence sequence{.tokens = line.tokens};
    sequence.targets.resize(line.tokens.size() - 1);
    std::iota(sequence.targets.begin(), sequence.targets.end(), 1);
    sequences.push_back(std::move(sequence));
  }
  return sequences;
}

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

/// Per token after the first.
struct SequenceStatistics {
  std::span<const double> log_prob{}, entropy{}, logsumexp{};
};

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

}  // namespace

Result<GenerateJob> prepare_generate(const GenerateRequest& request, std::istream& in) {
  auto model = load_for_generation(request.model);
  if (!model) return model.error();
  InputFormat format = format_of(*model);
  format.system = request.system;
  if (request.raw) format.chat = nullptr;
  if (format.chat == nullptr && !request.system.empty())
    return Error{"--system: needs a chat format; the model has none, or --raw leaves it out"};
  if (!model->chat_problem.empty() && !request.raw)
    log_warning(model->folder.string() + ": " + model->chat_problem +
                "; so prompts are sent as they are. --chat names a format, --raw says that this is meant");
  CARNOT_ASSIGN_OR_RETURN(auto prompts, prompts_of(request, format, in));
  warn_of_ignored_settings(*model);
  GenerateOptions options = request.options;
  options.sampling = sampling_of(request, *model);
  options.stop_tokens = request.raw ? end_tokens(*model) : answer_end_tokens(*model);
  if (options.samples > 1 && options.sampling.temperature == 0)
    return Error{"--samples: at temperature 0 all samples are alike; expected --temperature above 0"};
  return GenerateJob{.model = std::move(model).value(),
                     .prompts = std::move(prompts),
                     .options = std::move(options),
                     .json = request.json};
}

RunEnd run_generate(const GenerateJob& job, const JobControl& control) {
  const bool alone = job.prompts.size() == 1 && job.options.samples == 1;
  bool written = true;
  GenerateEvents events;
  if (alone && !job.json)
    events.on_piece = [&](std::size_t, int, std::string_view piece) {
      written = written && write(control.out, control.shown(piece));
    };
  events.on_text = [&](const GeneratedText& text) {
    if (job.json) return written = write(control.out, generated_line(text, job.prompts[text.prompt]));
    if (alone) return written = write(control.out, "\n");
    return written = write(control.out, heading(text, job.options) + control.shown(text.text) + "\n");
  };
  events.go_on = [&] { return written && !control.stop_requested(); };
  const auto tokens = tokens_of(job.prompts);
  if (generate(*job.model.model, *job.model.tokenizer, tokens, job.options, events) || !written)
    return RunEnd::Complete;
  if (alone && !job.json) write(control.out, "\n");
  return RunEnd::Interrupted;
}

Result<ScoreJob> prepare_score(const ScoreRequest& request, std::istream& in) {
  CARNOT_ASSIGN_OR_RETURN(auto model, load_for_log_probs(request.model));
  CARNOT_ASSIGN_OR_RETURN(const auto source, read_source(request.input, in));
  CARNOT_ASSIGN_OR_RETURN(auto sequences, sequence_lines(source.text, format_of(model), source.name));
  return ScoreJob{.model = std::move(model),
                  .sequences = std::move(sequences),
                  .temperature = request.temperature,
                  .batch_tokens = request.batch_tokens};
}

RunEnd run_score(const ScoreJob& job, const JobControl& control) {
  for (std::size_t begin = 0; begin < job.sequences.size();) {
    if (control.stop_requested()) return RunEnd::Interrupted;
    const std::size_t end = pass_end(job.sequences, begin, job.batch_tokens);
    const auto sequences = whole_sequences(std::span(job.sequences).subspan(begin, end - begin));
    const TargetStatistics statistics = measure_targets(*job.model.model, sequences, job.batch_tokens, job.temperature);
    std::size_t offset = 0;
    for (; begin < end; ++begin) {
      const std::size_t count = job.sequences[begin].tokens.size() - 1;
      const auto part = [&](const std::vector<double>& values) { return std::span(values).subspan(offset, count); };
      const SequenceStatistics of_sequence{.log_prob = part(statistics.log_prob),
                                           .entropy = part(statistics.entropy),
                                           .logsumexp = part(statistics.logsumexp)};
      if (!write(control.out, statistics_line(begin, job.sequences[begin], of_sequence))) return RunEnd::Complete;
      offset += count;
    }
  }
  return RunEnd::Complete;
}

}  // namespace carnot
