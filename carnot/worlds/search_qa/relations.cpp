#include "carnot/worlds/search_qa/relations.h"

#include "carnot/core/base/check.h"

namespace carnot {
namespace {

using enum EntityKind;

constexpr std::array<Relation, 8> kRelations = {{
    {"birthplace", Person, Town, {{{"was", "born", "in"}, {"is a", "native", "of"}}}, false},
    {"employer", Person, Company, {{{"has a", "job", "at"}, {"was", "hired", "by"}}}, false},
    {"mayor", Town, Person, {{{"elected as", "mayor", ""}, {"is", "managed", "by"}}}, false},
    {"region", Town, Region, {{{"", "belongs", "to"}, {"is", "situated", "in"}}}, true},
    {"headquarters", Company, Town, {{{"has", "offices", "in"}, {"", "operates", "from"}}}, false},
    {"founder", Company, Person, {{{"was", "founded", "by"}, {"was", "started", "by"}}}, false},
    {"capital", Region, Town, {{{"has its", "capital", "at"}, {"is", "administered", "from"}}}, true},
    {"governor", Region, Person, {{{"answers to", "governor", ""}, {"takes", "orders", "from"}}}, false},
}};

bool may_follow(int first, int second) {
  const Relation& a = kRelations[first];
  const Relation& b = kRelations[second];
  return a.object == b.subject && !(a.name == "capital" && b.name == "region");
}

std::vector<std::vector<int>> extended(const std::vector<std::vector<int>>& paths) {
  std::vector<std::vector<int>> longer;
  for (const auto& path : paths)
    for (int next = 0; next < static_cast<int>(kRelations.size()); ++next) {
      if (!path.empty() && !may_follow(path.back(), next)) continue;
      longer.push_back(path);
      longer.back().push_back(next);
    }
  return longer;
}

}  // namespace

std::span<const Relation> relations() { return kRelations; }

std::span<const Filler> fillers() {
  static const std::vector<Filler> all = {
      {Person, "likes", {"dancing", "stamps", "sailing", "soup", "poetry", "cycling"}},
      {Person, "speaks", {"Danish", "Persian", "Basque", "Tamil"}},
      {Town, "is known for", {"fountains", "carpets", "bakers", "lanterns", "canals"}},
      {Region, "is known for", {"cliffs", "orchards", "storms", "moors"}},
      {Company, "sells", {"kettles", "paint", "violins", "rope", "gloves"}},
  };
  return all;
}

const std::vector<std::vector<int>>& relation_paths(int hops) {
  static const auto all = [] {
    std::array<std::vector<std::vector<int>>, kMostHops> paths;
    paths[0] = extended({{}});
    for (std::size_t i = 1; i < paths.size(); ++i) paths[i] = extended(paths[i - 1]);
    return paths;
  }();
  CARNOT_CHECK(hops >= 1 && hops <= kMostHops, std::to_string(hops) + " hops");
  return all[hops - 1];
}

std::string_view question_word(EntityKind asked) { return asked == Person ? "Who" : "What"; }

}  // namespace carnot
