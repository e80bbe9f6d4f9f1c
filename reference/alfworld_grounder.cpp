#include "reference/alfworld_grounder.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <stdexcept>
#include <utility>

namespace carnot::reference {
namespace {

/// What players write for an action; in braces the parameter whose name is there.
const std::map<std::string, std::string> kTemplates = {
    {"gotolocation", "go to {?r}"},
    {"openobject", "open {?r}"},
    {"closeobject", "close {?r}"},
    {"pickupobject", "take {?o} from {?r}"},
    {"putobject", "move {?o} to {?r}"},
    {"inventory", "inventory"},
    {"examinereceptacle", "examine {?r}"},
    {"examineobject", "examine {?o}"},
    {"toggleobject", "use {?o}"},
    {"heatobject", "heat {?o} with {?r}"},
    {"cleanobject", "clean {?o} with {?r}"},
    {"coolobject", "cool {?o} with {?r}"},
    {"sliceobject", "slice {?co} with {?ko}"},
    {"look", "look"},
    {"help", "help"},
};

}  // namespace

AlfworldGrounder::AlfworldGrounder(std::string_view domain, std::string_view problem) {
  std::size_t at = 0;
  read_domain(parse(words_of(domain), at));
  at = 0;
  read_problem(parse(words_of(problem), at));
  name_ids();
}

AlfworldGrounder::Word AlfworldGrounder::word(const std::string& text) {
  const auto [found, added] = numbers_.emplace(text, static_cast<Word>(texts_.size()));
  if (added) texts_.push_back(text);
  return found->second;
}

std::vector<std::string> AlfworldGrounder::words_of(std::string_view text) const {
  std::vector<std::string> words;
  bool comment = false, running = false;
  for (const char c : text) {
    if (c == '\n') comment = false;
    if (c == ';') comment = true;
    const bool bracket = c == '(' || c == ')';
    if (comment || bracket || std::isspace(static_cast<unsigned char>(c)) != 0) {
      running = false;
      if (bracket && !comment) words.emplace_back(1, c);
      continue;
    }
    if (!running) words.emplace_back();
    running = true;
    words.back() += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return words;
}

AlfworldGrounder::Node AlfworldGrounder::parse(const std::vector<std::string>& words, std::size_t& at) {
  if (words.at(at) != "(") return {.word = word(words.at(at++))};
  Node list;
  ++at;
  while (words.at(at) != ")") list.children.push_back(parse(words, at));
  ++at;
  return list;
}

/// "?l - location, ?r - receptacle" has, as the original reads it, a variable of the type "location,", of which there
/// is no object.
std::vector<AlfworldGrounder::Variable> AlfworldGrounder::variables(const Node& list, Word dash) {
  std::vector<Variable> all;
  std::size_t untyped = 0;
  for (std::size_t i = 0; i < list.children.size(); ++i) {
    if (list.children[i].word != dash) {
      all.push_back({.name = list.children[i].word});
      continue;
    }
    for (++i; untyped < all.size(); ++untyped) all[untyped].type = list.children[i].word;
  }
  return all;
}

void AlfworldGrounder::read_domain(const Node& domain) {
  for (const Node& section : domain.children) {
    if (section.children.empty() || section.children[0].word != word(":action")) continue;
    Action action{.name = texts_[static_cast<std::size_t>(section.children[1].word)]};
    for (std::size_t i = 2; i + 1 < section.children.size(); i += 2) {
      const Word key = section.children[i].word;
      const Node& value = section.children[i + 1];
      if (key == word(":parameters")) action.parameters = variables(value, word("-"));
      if (key == word(":effect")) action.effect = value;
      if (key != word(":precondition") || value.children.empty()) continue;
      std::vector<Node> conditions = {value};
      if (value.children[0].word == word("and")) conditions.assign(value.children.begin() + 1, value.children.end());
      for (Node& condition : conditions) {
        std::vector<Word> binding(texts_.size(), -1);
        std::size_t bound = 0;
        for (; bound < action.parameters.size() && !is_bound(condition, binding); ++bound)
          binding[static_cast<std::size_t>(action.parameters[bound].name)] = 0;
        action.conditions.emplace_back(bound, std::move(condition));
      }
    }
    actions_.push_back(std::move(action));
  }
}

void AlfworldGrounder::read_problem(const Node& problem) {
  for (const Node& section : problem.children) {
    if (section.children.empty()) continue;
    const Word head = section.children[0].word;
    Node rest;
    rest.children.assign(section.children.begin() + 1, section.children.end());
    if (head == word(":objects"))
      for (const Variable& id : variables(rest, word("-"))) ids_[id.type].push_back(id.name);
    if (head == word(":init")) initial_ = rest.children;
    if (head == word(":goal")) goal_ = rest.children.at(0);
  }
  const std::vector<Word> unbound(texts_.size(), -1);
  for (const Node& fact : initial_) facts_.insert(key(fact, unbound));
}

void AlfworldGrounder::name_ids() {
  std::set<std::string> used;
  for (const Node& fact : initial_)
    for (std::size_t i = 1; i < fact.children.size(); ++i)
      used.insert(texts_[static_cast<std::size_t>(fact.children[i].word)]);
  const auto base = [](const std::string& id) {
    return id.substr(0, id.find("_bar_")) + (id.find("basin") != std::string::npos ? "basin" : "");
  };
  for (const char* type : {"object", "receptacle"})
    for (const Word id : ids_[word(type)]) {
      const std::string& text = texts_[static_cast<std::size_t>(id)];
      if (!used.contains(text)) continue;
      const auto above = std::count_if(used.lower_bound(text), used.end(),
                                       [&](const std::string& other) { return base(other) == base(text); });
      names_[id] = base(text) + " " + std::to_string(above);
    }
}

unsigned long long AlfworldGrounder::key(const Node& atom, const std::vector<Word>& binding) const {
  unsigned long long all = 0;
  for (const Node& part : atom.children) {
    const Word bound = binding[static_cast<std::size_t>(part.word)];
    all = all * 1'000'000 + static_cast<unsigned long long>(bound >= 0 ? bound : part.word) + 1;
  }
  return all;
}

bool AlfworldGrounder::is_bound(const Node& node, const std::vector<Word>& binding) const {
  if (node.word >= 0) {
    const std::string& text = texts_[static_cast<std::size_t>(node.word)];
    return text[0] != '?' || binding[static_cast<std::size_t>(node.word)] >= 0;
  }
  // What a quantifier binds need not be bound before.
  if (!node.children.empty() && node.children[0].word >= 0 &&
      texts_[static_cast<std::size_t>(node.children[0].word)] == "exists") {
    std::vector<Word> inner = binding;
    for (const Node& part : node.children[1].children) inner[static_cast<std::size_t>(part.word)] = 0;
    return is_bound(node.children[2], inner);
  }
  return std::all_of(node.children.begin(), node.children.end(),
                     [&](const Node& child) { return is_bound(child, binding); });
}

bool AlfworldGrounder::holds(const Node& condition, std::vector<Word>& binding) const {
  const std::string& head = texts_[static_cast<std::size_t>(condition.children.at(0).word)];
  const auto holds_too = [&](const Node& child) { return holds(child, binding); };
  if (head == "and") return std::all_of(condition.children.begin() + 1, condition.children.end(), holds_too);
  if (head == "or") return std::any_of(condition.children.begin() + 1, condition.children.end(), holds_too);
  if (head == "not") return !holds(condition.children[1], binding);
  if (head == "=")
    return binding[static_cast<std::size_t>(condition.children[1].word)] ==
           binding[static_cast<std::size_t>(condition.children[2].word)];
  if (head == "exists")
    return exists(variables(condition.children[1], numbers_.at("-")), 0, condition.children[2], binding);
  return facts_.contains(key(condition, binding));
}

bool AlfworldGrounder::exists(const std::vector<Variable>& all, std::size_t next, const Node& condition,
                              std::vector<Word>& binding) const {
  if (next == all.size()) return holds(condition, binding);
  const auto ids = ids_.find(all[next].type);
  if (ids == ids_.end()) return false;
  const auto slot = static_cast<std::size_t>(all[next].name);
  const Word before = binding[slot];
  bool found = false;
  for (std::size_t i = 0; i < ids->second.size() && !found; ++i) {
    binding[slot] = ids->second[i];
    found = exists(all, next + 1, condition, binding);
  }
  binding[slot] = before;
  return found;
}

void AlfworldGrounder::ground(const Action& action, std::size_t next, std::vector<Word>& binding,
                              std::vector<Grounded>& all) const {
  // Each condition is checked as soon as its variables are bound: the same as checking all of them at the end.
  for (const auto& [bound, condition] : action.conditions)
    if (bound == next && !holds(condition, binding)) return;
  if (next == action.parameters.size()) return all.push_back({.action = &action, .binding = binding});
  const auto ids = ids_.find(action.parameters[next].type);
  if (ids == ids_.end()) return;
  const auto slot = static_cast<std::size_t>(action.parameters[next].name);
  for (const Word id : ids->second) {
    binding[slot] = id;
    ground(action, next + 1, binding, all);
  }
  binding[slot] = -1;
}

std::string AlfworldGrounder::command(const Grounded& grounded) const {
  std::string text = kTemplates.at(grounded.action->name);
  for (auto open = text.find('{'); open != std::string::npos; open = text.find('{')) {
    const auto close = text.find('}', open);
    const Word variable = numbers_.at(text.substr(open + 1, close - open - 1));
    const auto name = names_.find(grounded.binding[static_cast<std::size_t>(variable)]);
    if (name == names_.end()) return "";
    text.replace(open, close - open + 1, name->second);
  }
  return text;
}

std::vector<std::pair<std::string, AlfworldGrounder::Grounded>> AlfworldGrounder::grounded() const {
  std::vector<std::pair<std::string, Grounded>> all;
  for (const Action& action : actions_) {
    std::vector<Word> binding(texts_.size(), -1);
    std::vector<Grounded> found;
    ground(action, 0, binding, found);
    for (Grounded& one : found) {
      if (action.name == "gotolocation" && one.binding[static_cast<std::size_t>(numbers_.at("?lstart"))] ==
                                               one.binding[static_cast<std::size_t>(numbers_.at("?lend"))])
        continue;
      std::string text = command(one);
      all.emplace_back(std::move(text), std::move(one));
    }
  }
  return all;
}

std::vector<std::string> AlfworldGrounder::admissible() const {
  std::set<std::string> commands;
  for (const auto& [text, one] : grounded()) commands.insert(text);
  return {commands.begin(), commands.end()};
}

void AlfworldGrounder::collect(const Node& effect, std::vector<Word>& binding, Facts& added, Facts& removed) const {
  const std::string& head = texts_[static_cast<std::size_t>(effect.children.at(0).word)];
  if (head == "increase") return;
  if (head == "and") {
    for (std::size_t i = 1; i < effect.children.size(); ++i) collect(effect.children[i], binding, added, removed);
  } else if (head == "when") {
    if (holds(effect.children[1], binding)) collect(effect.children[2], binding, added, removed);
  } else if (head == "not") {
    removed.insert(key(effect.children[1], binding));
  } else {
    added.insert(key(effect, binding));
  }
}

void AlfworldGrounder::apply(const std::string& command) {
  for (auto& [text, one] : grounded()) {
    if (text != command) continue;
    Facts added, removed;
    collect(one.action->effect, one.binding, added, removed);
    for (const auto fact : removed) facts_.erase(fact);
    facts_.insert(added.begin(), added.end());
    return;
  }
  throw std::invalid_argument("not admissible: " + command);
}

bool AlfworldGrounder::won() const {
  std::vector<Word> binding(texts_.size(), -1);
  return holds(goal_, binding);
}

}  // namespace carnot::reference
