#include "carnot/core/data/group_bytes.h"

#include <type_traits>
#include <utility>

#include "carnot/core/base/byte_stream.h"

namespace carnot {

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

std::string bytes_of_groups(const std::vector<Group>& groups) {
  ByteWriter writer;
  writer.add(groups);
  return writer.take();
}

Result<std::vector<Group>> groups_of_bytes(std::string_view bytes) {
  ByteReader reader(bytes);
  std::vector<Group> groups;
  reader.get(groups);
  if (!reader.complete())
    return Error{"groups of another process: " + std::to_string(bytes.size()) + " bytes that do not encode groups"};
  std::vector<std::string> problems;
  for (const Group& group : groups)
    for (const Tree& tree : group.trees)
      for (const std::string& problem : violations(tree)) problems.push_back("group " + group.uid + ": " + problem);
  if (!problems.empty()) return join_errors(problems);
  return groups;
}

}  // namespace carnot
