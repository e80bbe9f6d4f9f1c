#include "carnot/worlds/search_qa/world.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

#include "carnot/core/base/check.h"
#include "carnot/core/base/random.h"

namespace carnot {
namespace {

// Few stems and endings, so that a byte-pair vocabulary reaches every name through few intermediate pieces.
constexpr std::array<std::string_view, 24> kStems = {"Bal", "Ber", "Cor", "Dan", "Dor", "Fen", "Gil", "Har",
                                                     "Hol", "Jor", "Kel", "Lam", "Lin", "Mar", "Mer", "Nor",
                                                     "Pel", "Ral", "Ros", "Sim", "Tal", "Tor", "Ven", "Wil"};
constexpr std::array<std::array<std::string_view, 4>, 5> kEndings = {{
    {"eda", "win", "ilo", "una"},
    {"croft", "strand", "low", "gate"},
    {"haven", "wich", "stow", "minster"},
    {"avia", "oria", "esse", "undy"},
    {"dyne", "tron", "wares", "mills"},
}};

std::string lower_first(std::string_view stem) {
  std::string text(stem);
  text[0] = static_cast<char>(text[0] - 'A' + 'a');
  return text;
}

int half_as_many_again(int count) { return (count * 3 + 1) / 2; }

// A different town of its region for each region, so that a capital is not known by its place in the list.
int capital_number(int region, int towns_per_region) { return region % towns_per_region; }

std::vector<std::string> sample(std::vector<std::string> from, int count, RandomStream& random) {
  random.shuffle(from);
  from.resize(count);
  return from;
}

void append_word(std::string& text, std::string_view word) {
  if (word.empty()) return;
  if (!text.empty()) text += ' ';
  text += word;
}

std::string stated(const Phrasing& phrasing, std::string_view object) {
  std::string text;
  for (auto part : {phrasing.before, phrasing.keyword, phrasing.after, object, std::string_view(".")})
    append_word(text, part);
  return text;
}

}  // namespace

std::vector<std::string> invent_names(NameKind kind, int count, int first) {
  CARNOT_CHECK_GE(std::min(first, count), 0);
  CARNOT_CHECK_LE(first + count, kMostNames);
  const auto& endings = kEndings[static_cast<std::size_t>(kind)];
  RandomStream random(derive_seed(0, "search_names", static_cast<std::uint64_t>(kind)));

  std::vector<std::string> names, longer;
  for (auto ending : endings)
    for (auto stem : kStems) {
      names.push_back(std::string(stem) + std::string(ending));
      for (auto second : kStems) longer.push_back(std::string(stem) + lower_first(second) + std::string(ending));
    }
  random.shuffle(names);
  random.shuffle(longer);
  names.insert(names.end(), longer.begin(), longer.end());
  return {names.begin() + first, names.begin() + first + count};
}

void SearchWorldOptions::fields(FieldVisitor& visit) {
  visit.field("people", people, "people in a world", between(4, 1000000));
  visit.field("first_names", first_names, "first names that a world's people share", between(2, 1000));
  visit.field("last_names", last_names, "last names that a world's people share", between(2, 1000));
  visit.field("towns", towns, "towns in a world, the same number in each region", between(4, 1000));
  visit.field("regions", regions, "regions in a world", between(2, 500));
  visit.field("companies", companies, "companies in a world", between(2, 1000));
  visit.field("fixed_geography", fixed_geography,
              "a town's region and a region's capital are the same in all worlds and can be memorised");
  section(visit, "bm25", bm25, "ranking of the passages");
}

std::vector<std::string> SearchWorldOptions::problems() const {
  std::vector<std::string> found;
  if (people > first_names * last_names / 2)
    found.push_back("env.people: expected at most half of env.first_names * env.last_names (" +
                    std::to_string(first_names * last_names / 2) + "), got " + std::to_string(people));
  if (towns % regions != 0 || towns < 2 * regions)
    found.push_back("env.towns: expected a multiple of env.regions (" + std::to_string(regions) +
                    "), at least twice as many, got " + std::to_string(towns));
  return found;
}

bool SearchWorldOptions::has_names_for(int sets) const {
  const int most = std::max({first_names, last_names, towns, companies});
  return sets * half_as_many_again(most) <= kMostNames;
}

SearchNames::SearchNames(const SearchWorldOptions& options, int set) {
  const auto names = [set](NameKind kind, int count) { return invent_names(kind, count, set * count); };
  first_names = names(NameKind::FirstName, half_as_many_again(options.first_names));
  last_names = names(NameKind::LastName, half_as_many_again(options.last_names));
  // Whole regions are drawn, with their towns.
  towns = names(NameKind::Town, half_as_many_again(options.regions) * (options.towns / options.regions));
  regions = names(NameKind::Region, half_as_many_again(options.regions));
  companies = names(NameKind::Company, half_as_many_again(options.companies));
}

SearchWorld::SearchWorld(const SearchWorldOptions& options, const SearchNames& names, std::uint64_t seed) {
  RandomStream random(seed);
  choose_entities(options, names, random);
  choose_facts(options, random);
  write_passages(random);

  std::vector<std::string> texts;
  texts.reserve(passages_.size());
  for (const Passage& passage : passages_) texts.push_back(name(passage.subject) + " " + passage.predicate);
  index_ = Bm25Index(texts, options.bm25);
}

void SearchWorld::add_entities(EntityKind kind, const std::vector<std::string>& names) {
  names_.insert(names_.end(), names.begin(), names.end());
  first_[static_cast<std::size_t>(kind) + 1] = num_entities();
}

void SearchWorld::choose_entities(const SearchWorldOptions& options, const SearchNames& names, RandomStream& random) {
  const auto first = sample(names.first_names, options.first_names, random);
  const auto last = sample(names.last_names, options.last_names, random);
  std::set<std::string> taken;
  std::vector<std::string> people;
  while (static_cast<int>(people.size()) < options.people) {
    std::string person = random.pick(first) + " " + random.pick(last);
    if (taken.insert(person).second) people.push_back(std::move(person));
  }
  add_entities(EntityKind::Person, people);

  const int towns_per_region = options.towns / options.regions;
  std::vector<int> region_numbers(names.regions.size());
  for (std::size_t i = 0; i < region_numbers.size(); ++i) region_numbers[i] = static_cast<int>(i);
  random.shuffle(region_numbers);
  std::vector<std::string> towns, regions;
  for (int region = 0; region < options.regions; ++region) {
    const int listed = region_numbers[region];
    regions.push_back(names.regions[listed]);
    geography_capital_.push_back(region * towns_per_region + capital_number(listed, towns_per_region));
    for (int i = 0; i < towns_per_region; ++i) {
      towns.push_back(names.towns[listed * towns_per_region + i]);
      geography_region_.push_back(region);
    }
  }
  add_entities(EntityKind::Town, towns);
  add_entities(EntityKind::Region, regions);
  add_entities(EntityKind::Company, sample(names.companies, options.companies, random));
}

void SearchWorld::choose_facts(const SearchWorldOptions& options, RandomStream& random) {
  for (const Relation& relation : relations()) {
    auto& objects = objects_.emplace_back();
    const auto& geography = relation.subject == EntityKind::Town ? geography_region_ : geography_capital_;
    for (int i = 0; i < count(relation.subject); ++i) {
      const bool fixed = options.fixed_geography && relation.geography;
      const Entity first = first_[static_cast<std::size_t>(relation.object)];
      objects.push_back(fixed ? first + geography[i] : any(relation.object, random));
    }
  }
}

void SearchWorld::write_passages(RandomStream& random) {
  for (std::size_t r = 0; r < relations().size(); ++r) {
    const Relation& relation = relations()[r];
    for (int i = 0; i < count(relation.subject); ++i) {
      const Entity subject = first_[static_cast<std::size_t>(relation.subject)] + i;
      const Entity object = objects_[r][i];
      passages_.push_back({.subject = subject,
                           .relation = static_cast<int>(r),
                           .object = object,
                           .predicate = stated(random.pick(relation.phrasings), name(object))});
    }
  }
  for (const Filler& filler : fillers())
    for (int i = 0; i < count(filler.subject); ++i) {
      const auto object = random.pick(filler.objects);
      passages_.push_back({.subject = first_[static_cast<std::size_t>(filler.subject)] + i,
                           .predicate = std::string(filler.predicate) + " " + std::string(object) + " ."});
    }
  random.shuffle(passages_);  // so that equal scores prefer no kind of fact
}

int SearchWorld::count(EntityKind kind) const {
  return first_[static_cast<std::size_t>(kind) + 1] - first_[static_cast<std::size_t>(kind)];
}

EntityKind SearchWorld::kind(Entity entity) const {
  CARNOT_CHECK(entity >= 0 && entity < num_entities(), "entity " + std::to_string(entity));
  const auto after = std::upper_bound(first_.begin(), first_.end(), entity);
  return kEntityKinds[static_cast<std::size_t>(after - first_.begin()) - 1];
}

Entity SearchWorld::any(EntityKind kind, RandomStream& random) const {
  const auto number = random.below(static_cast<std::uint64_t>(count(kind)));
  return first_[static_cast<std::size_t>(kind)] + static_cast<int>(number);
}

Entity SearchWorld::object_of(Entity subject, int relation) const {
  const Relation& asked = relations()[relation];
  CARNOT_CHECK(kind(subject) == asked.subject, std::string(asked.name) + " of " + name(subject));
  const int number = subject - first_[static_cast<std::size_t>(asked.subject)];
  return objects_[relation][number];
}

std::vector<int> SearchWorld::search(std::string_view query, int k) const {
  std::vector<int> numbers;
  for (const SearchHit& hit : index_.search(query, k)) numbers.push_back(hit.document);
  return numbers;
}

// Fills in the entities along the path; false if one comes twice.
bool SearchWorld::follow(Question& question, Entity start) const {
  question.entities = {start};
  for (int relation : question.path) {
    const Entity next = object_of(question.entities.back(), relation);
    if (std::ranges::count(question.entities, next) > 0) return false;
    question.entities.push_back(next);
  }
  return true;
}

bool SearchWorld::has_question(int hops) const {
  Question question;
  for (const auto& path : relation_paths(hops)) {
    question.path = path;
    const EntityKind kind = relations()[path.front()].subject;
    for (int i = 0; i < count(kind); ++i)
      if (follow(question, first_[static_cast<std::size_t>(kind)] + i)) return true;
  }
  return false;
}

Question SearchWorld::sample_question(int hops, RandomStream& random) const {
  Question question;
  do {
    question.path = random.pick(relation_paths(hops));
  } while (!follow(question, any(relations()[question.path.front()].subject, random)));

  question.text = name(question.entities.front());
  for (int relation : question.path)
    question.text = "the " + std::string(relations()[relation].name) + " of " + question.text;
  question.text = std::string(question_word(kind(question.answer()))) + " is " + question.text + " ?";
  return question;
}

std::string format_passages(const SearchWorld& world, const std::vector<int>& numbers) {
  if (numbers.empty()) return "No results found .";
  std::string text;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const Passage& passage = world.passage(numbers[i]);
    if (i > 0) text += '\n';
    text += "Doc " + std::to_string(i + 1) + " (Title: " + world.name(passage.subject) + " ) " + passage.predicate;
  }
  return text;
}

}  // namespace carnot
