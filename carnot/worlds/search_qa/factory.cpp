#include <algorithm>
#include <cctype>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "carnot/core/base/check.h"
#include "carnot/core/base/strings.h"
#include "carnot/core/env/game.h"
#include "carnot/core/env/played_texts.h"
#include "carnot/worlds/reward/answer_metrics.h"
#include "carnot/worlds/search_qa/environment.h"
#include "carnot/worlds/search_qa/protocol.h"

namespace carnot {
namespace {

using Worlds = std::vector<std::shared_ptr<const SearchWorld>>;

constexpr int kDemonstratedTexts = 600;

void add_words(std::set<std::string>& words, std::string_view text) {
  std::string word;
  for (char c : text) {
    if (std::isalpha(static_cast<unsigned char>(c))) {
      word += c;
    } else if (!word.empty()) {
      words.insert(std::move(word));
      word.clear();
    }
  }
  if (!word.empty()) words.insert(word);
}

std::string without_tags(std::string text) {
  for (const std::string& tag : search_protocol_tokens())
    for (auto at = text.find(tag); at != std::string::npos; at = text.find(tag, at)) text.erase(at, tag.size());
  return text;
}

/// The search task as a bare game, without a protocol of messages: `search QUERY` and `answer TEXT` on their own line.
class SearchGame : public Game {
 public:
  SearchGame(SearchTask task, const SearchQaOptions& options)
      : task_(std::move(task)), passages_(options.passages), searches_left_(options.max_searches) {}

  std::string board_json() const override {
    nlohmann::ordered_json board;
    board["question"] = task_.question.text;
    board["hops"] = task_.question.hops();
    board["answer"] = task_.answer();
    return board.dump();
  }

  std::string observation() const override {
    std::string text = "Question: " + task_.question.text + "\n";
    if (!shown_.empty()) text += shown_ + "\n";
    return text + "Actions: search QUERY (" + std::to_string(searches_left_) + " left), answer TEXT";
  }

  GameStep step(std::string_view action) override {
    action = trim(action);
    const auto blank = std::min(action.find(' '), action.size());
    const auto verb = action.substr(0, blank), text = trim(action.substr(blank));
    if (verb == "search" && !text.empty() && searches_left_ > 0) return search(text);
    if (verb == "answer" && !text.empty()) return answer(text);
    return {.observation = observation(), .reward = {.value = 0, .integer = true}};
  }

  std::unique_ptr<Game> clone() const override { return std::make_unique<SearchGame>(*this); }

 private:
  GameStep search(std::string_view query) {
    --searches_left_;
    shown_ = format_passages(*task_.world, task_.world->search(query, passages_));
    return {.observation = observation(), .reward = {.value = 0, .integer = true}, .effective = true, .valid = true};
  }

  GameStep answer(std::string_view text) {
    const bool right = exact_match(text, std::vector<std::string>{task_.answer()});
    shown_ = right ? "Right." : "Wrong: " + task_.answer() + ".";
    return {.observation = observation(),
            .reward = {.value = right ? 1.0 : 0.0, .integer = true},
            .done = true,
            .success = right,
            .effective = true,
            .valid = true};
  }

  SearchTask task_;
  int passages_;
  int searches_left_;
  std::string shown_{};
};

class SearchQaFactory : public EnvironmentFactory {
 public:
  void fields(FieldVisitor& visit) override { options_.fields(visit); }

  Status prepare(std::uint64_t seed) override {
    const auto problems = options_.problems();
    if (!problems.empty()) return join_errors(problems);
    seed_ = seed;
    const SearchNames names(options_.world), others(options_.world, options_.held_out_names ? 1 : 0);
    train_ = build_worlds(names, "search_qa_train_worlds", options_.train_worlds);
    held_out_ = build_worlds(others, "search_qa_held_out_worlds", options_.held_out_worlds);
    return check_questions();
  }

  std::unique_ptr<Environment> make(Split split, std::int64_t index) const override {
    return std::make_unique<SearchQa>(task(split, index, options_.hop_shares), options_);
  }

  std::unique_ptr<Environment> make_demonstrated(std::int64_t index, double progress) const override {
    const auto& shares = demonstrated_shares();
    const bool one_hop = progress < options_.demonstration.one_hop_until && shares[0] > 0;
    return std::make_unique<SearchQa>(task(Split::Train, index, one_hop ? std::vector<double>{1} : shares), options_);
  }

  std::unique_ptr<ScriptedAgent> script(const Environment& environment, double progress,
                                        RandomStream random) const override {
    const auto* search_qa = dynamic_cast<const SearchQa*>(&environment);
    CARNOT_CHECK(search_qa != nullptr, "the environment is not one of this factory");
    auto demonstration = options_.demonstration.at(progress);
    if (!options_.world.fixed_geography) demonstration.recall = 0;
    return make_search_demonstrator(*search_qa, demonstration, random);
  }

  Result<std::unique_ptr<Game>> make_game(std::uint64_t seed) const override {
    return std::unique_ptr<Game>(std::make_unique<SearchGame>(
        task(Split::Validation, static_cast<std::int64_t>(seed), options_.hop_shares), options_));
  }

  std::vector<std::string> tokenizer_texts() const override {
    std::vector<std::string> texts;
    for (int i = 0; i < kDemonstratedTexts; ++i) {
      const double progress = static_cast<double>(i) / kDemonstratedTexts;
      const auto environment = make_demonstrated(i, progress);
      const auto agent =
          script(*environment, progress, RandomStream(derive_seed(seed_, "tokenizer", static_cast<std::uint64_t>(i))));
      const Opening opening = environment->open();
      std::string text = opening.system + "\n" + opening.user + "\n";
      for (const std::string& said : played_texts(*environment, *agent)) text += said;
      texts.push_back(std::move(text));
    }
    return texts;
  }

  std::string answer_lead() const override { return std::string(kSearchAnswerPrefix) + " "; }

  std::vector<std::string> tokenizer_words() const override {
    std::set<std::string> words;
    const SearchNames names(options_.world);
    for (const auto* list : {&names.first_names, &names.last_names, &names.towns, &names.regions, &names.companies})
      words.insert(list->begin(), list->end());
    for (const auto& world : train_)
      for (const Passage& passage : world->passages()) add_words(words, passage.predicate);
    for (const std::string& text : tokenizer_texts()) add_words(words, without_tags(text));
    return {words.begin(), words.end()};
  }

  std::vector<std::string> tokenizer_added_tokens() const override { return search_protocol_tokens(); }

 private:
  Worlds build_worlds(const SearchNames& names, std::string_view purpose, int count) const {
    Worlds worlds;
    for (int i = 0; i < count; ++i)
      worlds.push_back(std::make_shared<const SearchWorld>(options_.world, names,
                                                           derive_seed(seed_, purpose, static_cast<std::uint64_t>(i))));
    return worlds;
  }

  const std::vector<double>& demonstrated_shares() const {
    return options_.demonstrated_shares.empty() ? options_.hop_shares : options_.demonstrated_shares;
  }

  // Very small worlds may have no chain of different entities.
  Status check_questions() const {
    for (const auto* shares : {&options_.hop_shares, &demonstrated_shares()})
      for (const Worlds* worlds : {&train_, &held_out_})
        for (const auto& world : *worlds)
          for (std::size_t i = 0; i < shares->size(); ++i)
            if ((*shares)[i] > 0 && !world->has_question(static_cast<int>(i) + 1))
              return Error{"env: the worlds are too small for questions of " + std::to_string(i + 1) + " hops"};
    return Done{};
  }

  SearchTask task(Split split, std::int64_t index, const std::vector<double>& shares) const {
    CARNOT_CHECK_GE(index, 0);
    const bool training = split == Split::Train;
    const Worlds& worlds = training ? train_ : held_out_;
    CARNOT_CHECK(!worlds.empty(), "prepare() has not been called");
    RandomStream random(derive_seed(seed_, training ? "search_qa_train_tasks" : "search_qa_validation_tasks",
                                    static_cast<std::uint64_t>(index)));
    const auto number = static_cast<std::size_t>(random.below(worlds.size()));
    const int hops = static_cast<int>(random.weighted(shares)) + 1;
    SearchTask task{.world = worlds[number],
                    .world_name = (training ? "train " : "validation ") + std::to_string(number)};
    task.question = task.world->sample_question(hops, random);
    return task;
  }

  SearchQaOptions options_;
  std::uint64_t seed_ = 0;
  Worlds train_;
  Worlds held_out_;
};

}  // namespace

std::unique_ptr<EnvironmentFactory> make_search_qa() { return std::make_unique<SearchQaFactory>(); }

}  // namespace carnot
