#include "carnot/serving/tinker/work_queue.h"

#include <limits>
#include <numeric>

#include "carnot/core/base/json.h"
#include "carnot/core/rollout/log_prob_pass.h"

namespace carnot {
namespace {

// A client asks again for a reply that was lost on its way.
constexpr std::chrono::minutes kKeptOnceTaken{2}, kKept{60};

std::vector<float> score_prompt(const Model& model, const std::vector<TokenId>& prompt, int first) {
  std::vector<float> scores(prompt.size(), std::numeric_limits<float>::quiet_NaN());
  MeasuredSequence sequence{.tokens = prompt, .targets = std::vector<int>(prompt.size() - first)};
  std::iota(sequence.targets.begin(), sequence.targets.end(), first);
  const auto measured = measure_targets(model, std::span(&sequence, 1), LogProbPassOptions{}.max_tokens, 1);
  for (std::size_t i = 0; i < measured.log_prob.size(); ++i)
    scores[static_cast<std::size_t>(first) + i] = static_cast<float>(measured.log_prob[i]);
  return scores;
}

void add(SampledText& text, const TextStep& step) {
  text.tokens.push_back(step.draw.token);
  text.log_probs.push_back(step.draw.log_prob);
  text.likeliest.k = static_cast<int>(step.likeliest.size());
  for (const TokenLogProb& likely : step.likeliest) {
    text.likeliest.tokens.push_back(likely.token);
    text.likeliest.log_probs.push_back(likely.log_prob);
  }
}

}  // namespace

Result<const Model*> Sampler::model() {
  if (!model_) {
    CARNOT_ASSIGN_OR_RETURN(auto opened, open_());
    model_.emplace(std::move(opened));
    open_ = nullptr;
  }
  return &*model_;
}

TinkerReply failed_reply(const std::string& message, bool by_caller) {
  return {.body = json_line(Json{{"error", message}, {"category", by_caller ? "user" : "server"}})};
}

/// The texts of one policy that are in work.
class WorkQueue::Texts {
 public:
  Texts(std::shared_ptr<Sampler> sampler, const Model& model, const Tokenizer& tokenizer,
        const TextBatchOptions& options)
      : sampler_(std::move(sampler)), model_(model), batch_(model, tokenizer, options) {}

  const Sampler* sampler() const { return sampler_.get(); }
  bool has_work() const { return batch_.has_work(); }

  void begin(Waiting waiting) {
    SampleWork& work = std::get<SampleWork>(waiting.work);
    Job job{.id = waiting.id, .unfinished = work.job.samples};
    job.output.texts.resize(static_cast<std::size_t>(work.job.samples));
    if (work.first_scored > 0) job.output.prompt_log_probs = score_prompt(model_, work.job.prompt, work.first_scored);
    jobs_.emplace(next_id_, std::move(job));
    batch_.add(next_id_++, std::move(work.job));
  }

  /// The replies that are whole now.
  std::map<std::string, TinkerReply> step() {
    std::map<std::string, TinkerReply> replies;
    for (const TextStep& step : batch_.step()) {
      const auto found = jobs_.find(step.job);
      Job& job = found->second;
      SampledText& text = job.output.texts.at(static_cast<std::size_t>(step.sample));
      add(text, step);
      if (!step.finish) continue;
      text.stopped = *step.finish != Finish::Length;
      if (--job.unfinished > 0) continue;
      replies[job.id] = {.body = sample_bytes(job.output), .is_protobuf = true};
      jobs_.erase(found);
    }
    return replies;
  }

 private:
  struct Job {
    std::string id{};
    int unfinished = 0;
    SampleOutput output{};
  };

  std::shared_ptr<Sampler> sampler_;
  const Model& model_;
  TextBatch batch_;
  std::map<TextJobId, Job> jobs_;
  TextJobId next_id_ = 0;
};

WorkQueue::WorkQueue(const Tokenizer& tokenizer, const TextServiceOptions& options, int longest)
    : tokenizer_(tokenizer), options_(options), longest_(longest), thread_([this] { run(); }) {}

WorkQueue::~WorkQueue() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  added_.notify_all();
  thread_.join();
}

WorkQueue::Submitted WorkQueue::submit(const std::string& id, TinkerWork work) {
  {
    const std::lock_guard lock(mutex_);
    forget_old();
    if (entries_.contains(id)) return Submitted::Known;
    if (closed_ || failure_ || unfinished_ >= static_cast<std::size_t>(options_.batch + options_.queue))
      return Submitted::Full;
    entries_[id];
    ++unfinished_;
    waiting_.push_back({id, std::move(work)});
  }
  added_.notify_all();
  return Submitted::Taken;
}

std::variant<TinkerReply, WorkQueue::Missing> WorkQueue::reply(const std::string& id,
                                                               std::chrono::milliseconds patience) {
  std::unique_lock lock(mutex_);
  const auto found = entries_.find(id);
  if (found == entries_.end()) return Missing::Unknown;
  Entry& entry = found->second;
  finished_.wait_for(lock, patience, [&] { return entry.reply || failure_ || ending_; });
  if (!entry.reply) return failure_ ? Missing::Unknown : Missing::Unfinished;
  entry.forgotten = std::min(entry.forgotten, Clock::now() + kKeptOnceTaken);
  return *entry.reply;
}

bool WorkQueue::knows(const std::string& id) const {
  const std::lock_guard lock(mutex_);
  return entries_.contains(id);
}

void WorkQueue::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
}

bool WorkQueue::is_idle() const {
  const std::lock_guard lock(mutex_);
  return unfinished_ == 0;
}

std::exception_ptr WorkQueue::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

void WorkQueue::forget_old() {
  const auto now = Clock::now();
  std::erase_if(entries_, [&](const auto& entry) { return entry.second.reply && entry.second.forgotten < now; });
}

std::optional<WorkQueue::Waiting> WorkQueue::next(const Sampler* sampler) {
  std::unique_lock lock(mutex_);
  if (sampler == nullptr) added_.wait(lock, [&] { return ending_ || !waiting_.empty(); });
  if (ending_ || waiting_.empty()) return std::nullopt;
  const SampleWork* text = std::get_if<SampleWork>(&waiting_.front().work);
  if (sampler != nullptr && (text == nullptr || text->sampler.get() != sampler)) return std::nullopt;
  Waiting first = std::move(waiting_.front());
  waiting_.pop_front();
  return first;
}

void WorkQueue::finish(const std::string& id, TinkerReply reply) {
  {
    const std::lock_guard lock(mutex_);
    entries_[id] = {.reply = std::move(reply), .forgotten = Clock::now() + kKept};
    --unfinished_;
  }
  finished_.notify_all();
}

void WorkQueue::sample(Waiting first) {
  const std::shared_ptr<Sampler> sampler = std::get<SampleWork>(first.work).sampler;
  if (!texts_ || texts_->sampler() != sampler.get()) {
    texts_.reset();  // its cache before the next one's
    const auto model = sampler->model();
    if (!model) return finish(first.id, failed_reply(model.error().message, true));
    texts_ = std::make_unique<Texts>(sampler, **model, tokenizer_,
                                     TextBatchOptions{.texts = options_.batch, .cache_tokens = options_.cache_tokens});
  }
  texts_->begin(std::move(first));
  while (texts_->has_work()) {
    while (auto another = next(sampler.get())) texts_->begin(std::move(*another));
    for (auto& [id, reply] : texts_->step()) finish(id, std::move(reply));
  }
}

void WorkQueue::run() {
  try {
    while (auto waiting = next(nullptr)) {
      if (std::holds_alternative<SampleWork>(waiting->work))
        sample(std::move(*waiting));
      else
        finish(waiting->id, std::get<0>(waiting->work)());
    }
  } catch (...) {
    const std::lock_guard lock(mutex_);
    failure_ = std::current_exception();
    finished_.notify_all();
  }
  texts_.reset();
}

}  // namespace carnot
