// worlds/search_qa/relations.h -- what can be said and asked in a search world: kinds of entity, relations, sentences.
//
// Every word of a sentence is between single spaces, punctuation too, so that a name or keyword looks the same,
// leading blank included, in questions, queries, passages and answers.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace carnot {

enum class EntityKind : std::uint8_t { Person, Town, Region, Company };
inline constexpr std::array kEntityKinds = {EntityKind::Person, EntityKind::Town, EntityKind::Region,
                                            EntityKind::Company};

/// One way to state a fact: "X <before> <keyword> <after> Y .".
struct Phrasing {
  std::string_view before;
  std::string_view keyword;  ///< the word that a search for the fact needs
  std::string_view after;    ///< may be empty
};

struct Relation {
  std::string_view name;  ///< "the <name> of X"
  EntityKind subject;
  EntityKind object;
  std::array<Phrasing, 2> phrasings;
  bool geography;  ///< may be the same in every world, and then be remembered
};

/// All relations; two for each kind of subject. Indices into it name relations elsewhere.
std::span<const Relation> relations();

/// Sentences that answer no question: "X <predicate> <object> .".
struct Filler {
  EntityKind subject;
  std::string_view predicate;
  std::vector<std::string_view> objects;
};
std::span<const Filler> fillers();

/// Every way to ask `hops` relations one after the other, each as indices into relations(), innermost first.
/// A region's capital is never followed by that town's region: the answer would be known. REQUIRES: 1 <= hops <= 3.
const std::vector<std::vector<int>>& relation_paths(int hops);
inline constexpr int kMostHops = 3;

/// "Who" or "What".
std::string_view question_word(EntityKind asked);

}  // namespace carnot
