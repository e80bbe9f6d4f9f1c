// worlds/search_qa/world.h -- an invented world of people, towns, regions and companies, as facts, passages and an
// index.
//
// Each fact is written once, in one of two phrasings, so that a search with the other one's keyword often misses it.
// All worlds of one setting draw their names from the same lists but state different facts, so that facts cannot be
// memorised; only geography (a town's region, a region's capital) may be the same everywhere.
//
// A function of (options, seed). Immutable; thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "carnot/core/base/fields.h"
#include "carnot/core/base/random.h"
#include "carnot/retrieval/bm25/bm25.h"
#include "carnot/worlds/search_qa/relations.h"

namespace carnot {

/// Kinds of invented names: one pronounceable word each, whose ending shows its kind. A list depends on its kind alone,
/// never on a seed, and a longer list begins with the shorter one: tokenizers and checkpoints fit every run whose
/// worlds are not larger.
enum class NameKind : std::uint8_t { FirstName, LastName, Town, Region, Company };

/// Most names of one kind.
inline constexpr int kMostNames = 2000;

/// `count` names of a kind from number `first` on, all different, and different from those of every other kind.
/// REQUIRES: both are at least 0, and their sum is at most kMostNames.
std::vector<std::string> invent_names(NameKind kind, int count, int first = 0);

struct SearchWorldOptions {
  int people = 60;
  int first_names = 20;  ///< that the people of one world share
  int last_names = 20;
  int towns = 24;
  int regions = 6;
  int companies = 16;
  bool fixed_geography = true;  ///< a town's region and a region's capital are the same in all worlds
  Bm25Options bm25 = {.k1 = 1.2, .b = 0.75};

  void fields(FieldVisitor& visit);

  /// What the single limits cannot say; one line per problem.
  std::vector<std::string> problems() const;

  /// Whether there are names for so many sets of SearchNames.
  bool has_names_for(int sets) const;
};

/// Every name that a world of these sizes may use: half as many again as it does use.
struct SearchNames {
  /// Different sets share no name.
  explicit SearchNames(const SearchWorldOptions& options, int set = 0);

  std::vector<std::string> first_names, last_names, towns, regions, companies;
};

/// Number of an entity in its world.
using Entity = int;

struct Passage {
  Entity subject = 0;
  int relation = -1;  ///< index into relations(); -1 for a filler sentence
  Entity object = -1;
  std::string predicate{};  ///< what is said about the subject: "was born in Balwich ."
};

struct Question {
  std::vector<int> path{};         ///< relations, innermost first
  std::vector<Entity> entities{};  ///< start, after each relation; all different
  std::string text{};

  int hops() const { return static_cast<int>(path.size()); }
  Entity answer() const { return entities.back(); }
};

class SearchWorld {
 public:
  /// REQUIRES: options without problems().
  SearchWorld(const SearchWorldOptions& options, const SearchNames& names, std::uint64_t seed);

  int num_entities() const { return static_cast<int>(names_.size()); }
  const std::string& name(Entity entity) const { return names_[entity]; }
  EntityKind kind(Entity entity) const;
  /// One of that kind, each as likely as any other.
  Entity any(EntityKind kind, RandomStream& random) const;
  /// REQUIRES: the entity is of the relation's subject kind.
  Entity object_of(Entity subject, int relation) const;

  const std::vector<Passage>& passages() const { return passages_; }
  const Passage& passage(int number) const { return passages_[number]; }

  /// Numbers of the best passages, best first.
  std::vector<int> search(std::string_view query, int k) const;

  /// Whether any question of that many hops can be asked.
  bool has_question(int hops) const;
  /// REQUIRES: has_question(hops).
  Question sample_question(int hops, RandomStream& random) const;

 private:
  void choose_entities(const SearchWorldOptions& options, const SearchNames& names, RandomStream& random);
  void choose_facts(const SearchWorldOptions& options, RandomStream& random);
  void write_passages(RandomStream& random);
  void add_entities(EntityKind kind, const std::vector<std::string>& names);
  int count(EntityKind kind) const;
  bool follow(Question& question, Entity start) const;

  std::vector<std::string> names_;                    // by entity; grouped by kind, kinds in order
  std::array<int, kEntityKinds.size() + 1> first_{};  // first entity of each kind
  std::vector<int> geography_region_;                 // by town: number of its region, where geography is fixed
  std::vector<int> geography_capital_;                // by region: number of its capital
  std::vector<std::vector<Entity>> objects_;          // by relation, then by number of the subject in its kind
  std::vector<Passage> passages_;
  Bm25Index index_;
};

/// As the policy reads them: "Doc 1 (Title: X ) was born in Y ." on a line each, or "No results found .".
std::string format_passages(const SearchWorld& world, const std::vector<int>& numbers);

}  // namespace carnot
