#include "carnot/core/data/group_bytes.h"

#include <type_traits>
#include <utility>

#include "carnot/core/base/byte_stream.h"

namespace carnot {
namespace {

template <class Value, class Struct>
concept EitherConst = std::is_same_v<std::remove_const_t<Value>, Struct>;

// The members of each struct, for both directions. Structured bindings name all of them, so a new member breaks the
// build until it is added here.
template <EitherConst<Span> Value, class Visit>
void visit_members(Value& value, const Visit& visit) {
  auto& [kind, begin, end] = value;
  visit(kind, begin, end);
}

template <EitherConst<Turn> Value, class Visit>
void visit_members(Value& value, const Visit& visit) {
  auto& [parent, context, tokens, sampled_begin, sampled_end, spans, reward, penalty, valid_action, info_gain,
         turn_entropy, anchor, tool, status, latency_ms, policy_version] = value;
  visit(parent, context, tokens, sampled_begin, sampled_end, spans, reward, penalty, valid_action, info_gain,
        turn_entropy, anchor, tool, status, latency_ms, policy_version);
}

template <EitherConst<Leaf> Value, class Visit>
void visit_members(Value& value, const Visit& visit) {
  auto& [turn, sibling, trajectory_id, parent, branch_turn, outcome, score, success, dropped, measures, answer] = value;
  visit(turn, sibling, trajectory_id, parent, branch_turn, outcome, score, success, dropped, measures, answer);
}

template <EitherConst<Tree> Value, class Visit>
void visit_members(Value& value, const Visit& visit) {
  auto& [turns, leaves, columns] = value;
  visit(turns, leaves, columns);
}

template <EitherConst<Group> Value, class Visit>
void visit_members(Value& value, const Visit& visit) {
  auto& [uid, task_index, seed, step, ground_truth, info, trees, query_baseline] = value;
  visit(uid, task_index, seed, step, ground_truth, info, trees, query_baseline);
}

class GroupWriter {
 public:
  template <class Struct>
  void operator()(const Struct& value) {
    visit_members(value, [this](const auto&... member) { ((*this)(member), ...); });
  }
  template <PlainNumber Number>
  void operator()(const Number& number) {
    out_.add(number);
  }
  template <class Value>
  void operator()(const std::optional<Value>& value) {
    out_.add(value);
  }
  template <class Value>
  void operator()(const std::map<std::string, Value>& items) {
    out_.add(items);
  }
  template <class Struct>
  void operator()(const std::vector<Struct>& items) {
    out_.add(static_cast<std::uint64_t>(items.size()));
    for (const Struct& item : items) (*this)(item);
  }
  void operator()(const std::vector<TokenId>& tokens) { out_.add(tokens); }
  void operator()(const std::string& text) { out_.add(text); }
  void operator()(const Columns& columns) {
    for (int c = 0; c < kNumColumns; ++c) {
      const auto column = static_cast<Column>(c);
      const int turns = columns.num_turns(column);
      out_.add(static_cast<std::uint64_t>(turns));
      for (int turn = 0; turn < turns; ++turn) out_.add(columns.turn(column, turn));
    }
  }

  std::string take() { return out_.take(); }

 private:
  ByteWriter out_{};
};

class GroupReader {
 public:
  explicit GroupReader(std::string_view bytes) : in_(bytes) {}

  bool complete() const { return in_.complete(); }

  template <class Struct>
  void operator()(Struct& value) {
    visit_members(value, [this](auto&... member) { ((*this)(member), ...); });
  }
  template <PlainNumber Number>
  void operator()(Number& number) {
    in_.get(number);
  }
  template <class Value>
  void operator()(std::optional<Value>& value) {
    in_.get(value);
  }
  template <class Value>
  void operator()(std::map<std::string, Value>& items) {
    in_.get(items);
  }
  template <class Struct>
  void operator()(std::vector<Struct>& items) {
    for (std::size_t left = in_.get_size(1); left > 0 && in_.ok(); --left) (*this)(items.emplace_back());
  }
  void operator()(std::vector<TokenId>& tokens) { in_.get(tokens); }
  void operator()(std::string& text) { in_.get(text); }
  void operator()(Context& context) { word(context, Context::Fresh); }
  void operator()(SpanKind& kind) { word(kind, SpanKind::Observation); }
  void operator()(Outcome& outcome) { word(outcome, Outcome::InfraFailed); }
  void operator()(Columns& columns) {
    for (int c = 0; c < kNumColumns; ++c) {
      const std::size_t turns = in_.get_size(sizeof(std::uint64_t));
      for (std::size_t turn = 0; turn < turns && in_.ok(); ++turn)
        in_.get(columns.edit(static_cast<Column>(c), static_cast<int>(turn), 0));
    }
  }

 private:
  template <class Word>
  void word(Word& word, Word last) {
    in_.get(word);
    if (word > last) in_.fail();
  }

  ByteReader in_;
};

}  // namespace

std::string bytes_of_groups(const std::vector<Group>& groups) {
  GroupWriter writer;
  writer(groups);
  return writer.take();
}

Result<std::vector<Group>> groups_of_bytes(std::string_view bytes) {
  GroupReader reader(bytes);
  std::vector<Group> groups;
  reader(groups);
  if (!reader.complete())
    return Error{"groups of another process: " + std::to_string(bytes.size()) + " bytes that are no groups"};
  std::vector<std::string> problems;
  for (const Group& group : groups)
    for (const Tree& tree : group.trees)
      for (const std::string& problem : violations(tree)) problems.push_back("group " + group.uid + ": " + problem);
  if (!problems.empty()) return join_errors(problems);
  return groups;
}

}  // namespace carnot
