#include "carnot/worlds/alfworld/pddl_problem.h"

#include <algorithm>

#include "carnot/core/base/printable.h"

namespace carnot {
namespace {

/// Reads brackets and words, one after the other.
class PddlWords {
 public:
  explicit PddlWords(std::string_view text) : text_(text) {}

  /// Empty at the end.
  std::string_view next() {
    skip_blanks();
    const std::size_t begin = at_;
    if (at_ == text_.size()) return {};
    if (is_bracket(text_[at_])) return text_.substr(at_++, 1);
    while (at_ < text_.size() && !is_bracket(text_[at_]) && !is_blank(text_[at_]) && text_[at_] != ';') ++at_;
    return text_.substr(begin, at_ - begin);
  }

  /// Of the last word.
  std::string where(const std::string& name) const {
    const auto lines = std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(at_), '\n');
    return name + ":" + std::to_string(lines + 1) + ": ";
  }

 private:
  static bool is_bracket(char c) { return c == '(' || c == ')'; }
  static bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

  void skip_blanks() {
    while (at_ < text_.size() && (is_blank(text_[at_]) || text_[at_] == ';')) {
      if (text_[at_] == ';')
        at_ = std::min(text_.find('\n', at_), text_.size());
      else
        ++at_;
    }
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

class ProblemReader {
 public:
  ProblemReader(std::string_view text, const std::string& name) : words_(text), name_(name) {}

  Result<PddlProblem> read() {
    if (!(expect("(") && expect("define"))) return error_;
    for (std::string_view word = words_.next(); word != ")"; word = words_.next()) {
      if (word != "(") return wrong(word, "a section in brackets");
      if (!read_section()) return error_;
    }
    if (!problem_.types.empty() && !problem_.facts.empty() && !problem_.goal.empty()) return std::move(problem_);
    return Error{name_ + ": expected a problem with :objects, :init and :goal"};
  }

 private:
  bool expect(std::string_view wanted) {
    const std::string_view word = words_.next();
    if (word == wanted) return true;
    wrong(word, "'" + std::string(wanted) + "'");
    return false;
  }

  Error wrong(std::string_view word, const std::string& expected) {
    error_ = Error{words_.where(name_) + "expected " + expected + ", found " +
                   (word.empty() ? "the end" : quoted_word(word))};
    return error_;
  }

  bool read_section() {
    const std::string_view section = words_.next();
    if (section == ":objects") return read_objects();
    if (section == ":init") return read_facts();
    return read_words(section == ":goal" ? &problem_.goal : nullptr);
  }

  /// The words up to the section's closing bracket, without it.
  bool read_words(std::vector<std::string_view>* words) {
    for (int depth = 1;;) {
      const std::string_view word = words_.next();
      if (word.empty()) return wrong(word, "')'"), false;
      depth += word == "(" ? 1 : word == ")" ? -1 : 0;
      if (depth == 0) return true;
      if (words != nullptr) words->push_back(word);
    }
  }

  bool read_objects() {
    std::vector<std::string_view> ids;
    for (std::string_view word = words_.next(); word != ")"; word = words_.next()) {
      if (word.empty() || word == "(") return wrong(word, "names, '-' and their type"), false;
      if (word != "-") {
        ids.push_back(word);
        continue;
      }
      const std::string_view type = words_.next();
      if (type.empty() || type == "(" || type == ")") return wrong(type, "a type"), false;
      for (const std::string_view id : ids)
        if (const auto [known, added] = problem_.types.emplace(id, type); !added && known->second != type)
          return wrong(id, "a name of one type"), false;
      ids.clear();
    }
    return ids.empty() || (wrong(ids.front(), "names, '-' and their type"), false);
  }

  bool read_facts() {
    for (std::string_view word = words_.next(); word != ")"; word = words_.next()) {
      if (word != "(") return wrong(word, "a fact in brackets"), false;
      PddlFact fact{.predicate = words_.next(), .arguments = {}};
      if (fact.predicate.empty() || fact.predicate == "(" || fact.predicate == ")")
        return wrong(fact.predicate, "a predicate"), false;
      for (word = words_.next(); word != ")"; word = words_.next()) {
        if (word.empty() || word == "(") return wrong(word, "arguments of " + quoted_word(fact.predicate)), false;
        if (fact.count == fact.arguments.size()) return wrong(word, "at most two arguments"), false;
        fact.arguments[fact.count++] = word;
      }
      problem_.facts.push_back(fact);
    }
    return true;
  }

  PddlWords words_;
  const std::string& name_;
  PddlProblem problem_{};
  Error error_{};
};

}  // namespace

std::vector<std::string_view> pddl_words(std::string_view text) {
  std::vector<std::string_view> all;
  PddlWords words(text);
  for (std::string_view word = words.next(); !word.empty(); word = words.next()) all.push_back(word);
  return all;
}

std::string quoted_word(std::string_view word) { return "'" + printable(word.substr(0, 60)) + "'"; }

Result<PddlProblem> parse_pddl_problem(std::string_view text, const std::string& name) {
  return ProblemReader(text, name).read();
}

}  // namespace carnot
