// reference/alfworld_grounder.h -- the slow reference of worlds/alfworld/simulator.h: reads ALFWorld's PDDL domain and
// a problem, and tries every action on everything.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

namespace carnot::reference {

class AlfworldGrounder {
 public:
  /// Strings of well-formed PDDL.
  AlfworldGrounder(std::string_view domain, std::string_view problem);

  /// Commands of the actions whose precondition holds, sorted, each once; going to the current place is left out.
  std::vector<std::string> admissible() const;
  /// Carries out an admissible command.
  void apply(const std::string& command);
  bool won() const;

 private:
  using Word = int;
  struct Node {
    Word word = -1;  ///< of a leaf
    std::vector<Node> children{};
  };
  struct Variable {
    Word name = -1;
    Word type = -1;
  };
  struct Action {
    std::string name{};
    std::vector<Variable> parameters{};
    std::vector<std::pair<std::size_t, Node>> conditions{};  ///< all must hold; how many parameters each needs
    Node effect{};
  };
  struct Grounded {
    const Action* action = nullptr;
    std::vector<Word> binding{};
  };
  using Facts = std::unordered_set<unsigned long long>;

  Word word(const std::string& text);
  std::vector<std::string> words_of(std::string_view text) const;
  Node parse(const std::vector<std::string>& words, std::size_t& at);
  static std::vector<Variable> variables(const Node& list, Word dash);
  void read_domain(const Node& domain);
  void read_problem(const Node& problem);
  void name_ids();

  unsigned long long key(const Node& atom, const std::vector<Word>& binding) const;
  bool holds(const Node& condition, std::vector<Word>& binding) const;
  bool exists(const std::vector<Variable>& all, std::size_t next, const Node& condition,
              std::vector<Word>& binding) const;
  bool is_bound(const Node& node, const std::vector<Word>& binding) const;
  void ground(const Action& action, std::size_t next, std::vector<Word>& binding, std::vector<Grounded>& all) const;
  std::vector<std::pair<std::string, Grounded>> grounded() const;
  std::string command(const Grounded& grounded) const;
  void collect(const Node& effect, std::vector<Word>& binding, Facts& added, Facts& removed) const;

  std::map<std::string, Word> numbers_{};
  std::vector<std::string> texts_{};
  std::map<Word, std::vector<Word>> ids_{};  ///< by type
  std::map<Word, std::string> names_{};
  std::vector<Action> actions_{};
  std::vector<Node> initial_{};
  Node goal_{};
  Facts facts_{};
};

}  // namespace carnot::reference
