#include "carnot/worlds/search_qa/demonstrator.h"

#include <algorithm>
#include <optional>

#include "carnot/worlds/search_qa/environment.h"

namespace carnot {
namespace {

constexpr std::string_view kThoughtOpen = "<think> ";
constexpr std::string_view kThoughtClose = " </think>";
constexpr std::string_view kThenAnswer = "Then answer .";

const Relation& relation_at(int number) { return relations()[number]; }

class SearchDemonstrator : public ScriptedAgent {
 public:
  SearchDemonstrator(const SearchQa& environment, const SearchDemonstrationOptions& options, RandomStream random)
      : environment_(environment),
        world_(*environment.task().world),
        question_(environment.task().question),
        options_(options),
        random_(random),
        entity_(question_.entities.front()) {}

  PolicyResponse respond(std::string_view) override {
    if (environment_.searches() > 0) read_passages();
    if (!answer_) remember();
    return answer_ ? final_response() : search_response();
  }

 private:
  int relation() const { return question_.path[hop_]; }
  bool last_hop() const { return hop_ + 1 == question_.path.size(); }

  std::string fact(Entity object) const {
    return "The " + std::string(relation_at(relation()).name) + " of " + world_.name(entity_) + " is " +
           world_.name(object) + " .";
  }

  void read_passages() {
    const auto& found = environment_.found();
    const auto hit = std::ranges::find_if(found, [&](int number) {
      return world_.passage(number).subject == entity_ && world_.passage(number).relation == relation();
    });
    if (hit != found.end() && !random_.chance(options_.wrong_pick))
      believe(world_.passage(*hit).object);
    else if (hit == found.end() && random_.chance(options_.give_up))
      guess();
    else if (hit != found.end() || random_.chance(options_.settle))
      believe_another();
    else
      thought_ = "Nothing here .";
    if (!answer_ && environment_.searches_left() == 0) guess();
  }

  void believe(Entity object) {
    thought_ = fact(object);
    if (last_hop()) {
      answer_ = object;
    } else if (random_.chance(options_.early_stop)) {
      if (random_.chance(options_.guess_when_early))
        guess();
      else
        answer_ = object;
    } else if (random_.chance(options_.redundant_search)) {
      thought_ = "Look again .";
    } else {
      ++hop_;
      entity_ = object;
      tried_ = {};
    }
  }

  // Takes something else that the passages name for the wanted fact, of the right kind if there is one.
  void believe_another() {
    std::vector<Entity> objects, subjects;
    for (int number : environment_.found()) {
      const Passage& passage = world_.passage(number);
      subjects.push_back(passage.subject);
      if (passage.object >= 0 && passage.object != question_.answer()) objects.push_back(passage.object);
    }
    auto& named = objects.empty() ? subjects : objects;
    if (named.empty()) return guess();
    const EntityKind wanted = relation_at(relation()).object;
    std::vector<Entity> fitting;
    std::ranges::copy_if(named, std::back_inserter(fitting),
                         [&](Entity entity) { return world_.kind(entity) == wanted; });
    const Entity chosen = random_.pick(fitting.empty() ? named : fitting);
    if (world_.kind(chosen) == wanted) return believe(chosen);
    thought_ = fact(chosen);
    answer_ = chosen;
  }

  void guess() {
    answer_ = world_.any(relation_at(question_.path.back()).object, random_);
    thought_ = kThenAnswer;
  }

  // A last fact that is the same in all worlds need not be looked up; a first one is what the question is about.
  void remember() {
    if (hop_ == 0 || !last_hop() || !relation_at(relation()).geography || !random_.chance(options_.recall)) return;
    const Entity object = world_.object_of(entity_, relation());
    thought_ += " I remember : " + fact(object);
    answer_ = object;
  }

  std::string search_response() {
    std::string text(kThoughtOpen);
    if (!thought_.empty()) text += thought_ + " ";
    text += "I need the " + std::string(relation_at(relation()).name) + " of " + world_.name(entity_) + " .";
    text += std::string(kThoughtClose) + " <search> " + query() + " </search>";
    return with_tag_error(std::move(text));
  }

  std::string query() {
    const auto& phrasings = relation_at(relation()).phrasings;
    auto chosen = static_cast<std::size_t>(random_.below(2));
    if (tried_[chosen] && !tried_[1 - chosen]) chosen = 1 - chosen;
    const std::string keyword(phrasings[chosen].keyword);
    if (random_.chance(options_.bad_query)) return bad_query(keyword);
    tried_[chosen] = true;
    return world_.name(entity_) + " " + keyword;
  }

  std::string bad_query(const std::string& keyword) {
    const std::string& name = world_.name(entity_);
    const double which = random_.uniform();
    const auto blank = name.find(' ');
    if (which < 0.3) return name;
    if (which < 0.55 && blank != std::string::npos)
      return (random_.chance(0.5) ? name.substr(0, blank) : name.substr(blank + 1)) + " " + keyword;
    if (which < 0.7) return keyword;
    return name + " " + any_keyword_of(relation_at(relation()).subject);
  }

  std::string any_keyword_of(EntityKind subject) {
    std::vector<std::string_view> keywords;
    for (const Relation& relation : relations())
      if (relation.subject == subject)
        for (const Phrasing& phrasing : relation.phrasings) keywords.push_back(phrasing.keyword);
    return std::string(random_.pick(keywords));
  }

  std::string final_response() {
    const bool right = *answer_ == question_.answer();
    if (right && random_.chance(options_.answer_prefix)) thought_ = kThenAnswer;
    const std::string& name = world_.name(*answer_);
    const std::string boxed = random_.chance(options_.tag_error) ? name : "\\boxed{ " + name + " }";
    return with_tag_error(std::string(kThoughtOpen) + thought_ + std::string(kThoughtClose)) + " <answer> " + boxed +
           " </answer>";
  }

  std::string with_tag_error(std::string text) {
    if (!random_.chance(options_.tag_error)) return text;
    const auto tag = random_.chance(0.5) ? kThoughtOpen : kThoughtClose;
    return text.erase(text.find(tag), tag.size());
  }

  const SearchQa& environment_;
  const SearchWorld& world_;
  const Question& question_;
  const SearchDemonstrationOptions options_;
  RandomStream random_;

  std::size_t hop_ = 0;
  Entity entity_;                // believed to be the end of the path
  std::array<bool, 2> tried_{};  // phrasings searched for, of the present relation
  std::string thought_{};        // what the last passages said
  std::optional<Entity> answer_{};
};

}  // namespace

void SearchDemonstrationOptions::fields(FieldVisitor& visit) {
  const auto probability = [&](std::string_view name, double& value, std::string_view help) {
    visit.field(name, value, help, between(0, 1));
  };
  probability("bad_query", bad_query, "searches that lack the name, the keyword or half the name");
  probability("wrong_pick", wrong_pick, "after a hit: believes another passage");
  probability("give_up", give_up, "after a miss: guesses an entity of the asked kind");
  probability("settle", settle, "after a miss, not given up: believes what the passages name");
  probability("early_stop", early_stop, "after a fact before the last one: answers there");
  probability("guess_when_early", guess_when_early, "early stops that guess an entity of the asked kind instead");
  probability("redundant_search", redundant_search, "after a fact before the last one: searches for it again");
  probability("tag_error", tag_error, "responses without one of their think tags, answers without their box");
  probability("recall", recall, "last facts of fixed geography answered from memory");
  probability("answer_prefix", answer_prefix, "right answers whose thought is only 'Then answer .'");
  probability("one_hop_until", one_hop_until, "progress up to which tasks have one hop, the only mistakes bad queries");
  probability("one_hop_bad_query", one_hop_bad_query, "share of bad queries up to there");
  probability("clean_until", clean_until, "progress up to which there are no mistakes");
}

SearchDemonstrationOptions SearchDemonstrationOptions::clean() const {
  SearchDemonstrationOptions options = *this;
  options.bad_query = options.wrong_pick = options.give_up = options.settle = 0;
  options.early_stop = options.redundant_search = options.tag_error = 0;
  return options;
}

SearchDemonstrationOptions SearchDemonstrationOptions::at(double progress) const {
  if (progress >= one_hop_until && progress >= clean_until) return *this;
  SearchDemonstrationOptions options = clean();
  if (progress < one_hop_until) options.bad_query = one_hop_bad_query;
  return options;
}

std::unique_ptr<ScriptedAgent> make_search_demonstrator(const SearchQa& environment,
                                                        const SearchDemonstrationOptions& options,
                                                        RandomStream random) {
  return std::make_unique<SearchDemonstrator>(environment, options, random);
}

}  // namespace carnot
