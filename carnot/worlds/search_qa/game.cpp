#include "carnot/worlds/search_qa/game.h"

#include <nlohmann/json.hpp>

#include "carnot/core/base/strings.h"
#include "carnot/worlds/reward/answer_metrics.h"
#include "carnot/worlds/search_qa/environment.h"

namespace carnot {
namespace {

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

}  // namespace

std::unique_ptr<Game> make_search_game(SearchTask task, const SearchQaOptions& options) {
  return std::make_unique<SearchGame>(std::move(task), options);
}

}  // namespace carnot
