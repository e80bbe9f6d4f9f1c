#include "carnot/worlds/alfworld/room.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

#include "carnot/core/base/check.h"
#include "carnot/core/base/strings.h"
#include "carnot/worlds/alfworld/pddl_problem.h"

namespace carnot {
namespace {

constexpr int kMaxLocations = 1024;
constexpr std::string_view kIdBreak = "_bar_";

struct GoalForm {
  RoomTask task;
  std::string_view words;  ///< $object, $receptacle and $lamp are types
};

constexpr std::array<GoalForm, 6> kGoalForms = {{
    {RoomTask::Place,
     "( and ( exists ( ?r - receptacle ) ( exists ( ?o - object ) ( and ( inreceptacle ?o ?r ) ( objecttype ?o $object "
     ") "
     "( receptacletype ?r $receptacle ) ) ) ) )"},
    {RoomTask::PlaceClean,
     "( and ( exists ( ?r - receptacle ) ( exists ( ?o - object ) ( and ( cleanable ?o ) ( objecttype ?o $object ) "
     "( receptacletype ?r $receptacle ) ( isclean ?o ) ( inreceptacle ?o ?r ) ) ) ) )"},
    {RoomTask::PlaceHot,
     "( and ( exists ( ?r - receptacle ) ( exists ( ?o - object ) ( and ( heatable ?o ) ( objecttype ?o $object ) "
     "( receptacletype ?r $receptacle ) ( ishot ?o ) ( inreceptacle ?o ?r ) ) ) ) )"},
    {RoomTask::PlaceCool,
     "( and ( exists ( ?r - receptacle ) ( exists ( ?o - object ) ( and ( coolable ?o ) ( objecttype ?o $object ) "
     "( receptacletype ?r $receptacle ) ( iscool ?o ) ( inreceptacle ?o ?r ) ) ) ) )"},
    {RoomTask::PlaceTwo,
     "( and ( exists ( ?r - receptacle ) ( exists ( ?o1 - object ) ( and ( objecttype ?o1 $object ) ( receptacletype "
     "?r "
     "$receptacle ) ( inreceptacle ?o1 ?r ) ( exists ( ?o2 - object ) ( and ( not ( = ?o1 ?o2 ) ) ( objecttype ?o2 "
     "$object ) ( receptacletype ?r $receptacle ) ( inreceptacle ?o2 ?r ) ) ) ) ) ) )"},
    {RoomTask::LookInLight,
     "( and ( exists ( ?ot - object ?r - receptacle ?a - agent ?l - location ) ( and ( objecttype ?ot $lamp ) "
     "( toggleable ?ot ) ( istoggled ?ot ) ( receptacleatlocation ?r ?l ) ( atlocation ?a ?l ) ( inreceptacle ?ot ?r ) "
     ") ) "
     "( exists ( ?o - object ?a - agent ) ( and ( objecttype ?o $object ) ( holds ?a ?o ) ) ) )"},
}};

using GoalTypes = std::map<std::string_view, std::string_view>;

/// What the form's words with '$' are in the goal; empty if the goal has another form.
std::optional<GoalTypes> match(const GoalForm& form, const std::vector<std::string_view>& goal) {
  GoalTypes types;
  const std::vector<std::string_view> words = pddl_words(form.words);
  if (words.size() != goal.size()) return std::nullopt;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string_view wanted = words[i], found = goal[i];
    if (!wanted.starts_with('$')) {
      if (found != wanted) return std::nullopt;
    } else if (found == "(" || found == ")" || types.emplace(wanted, found).first->second != found) {
      return std::nullopt;
    }
  }
  return types;
}

/// "sinkbasin" of "sink_bar__minus_01_dot_99_bar_sinkbasin": what names begin with.
std::string first_part(std::string_view id) {
  std::string part(id.substr(0, id.find(kIdBreak)));
  if (id.find("basin") != std::string_view::npos) part += "basin";
  return part;
}

/// Turns the parts of a problem into a room.
class RoomBuilder {
 public:
  RoomBuilder(const PddlProblem& problem, const std::string& name) : problem_(problem), name_(name) {}

  Result<Room> build() {
    number_ids();
    if (problems_.empty()) read_facts();
    if (problems_.empty()) finish();
    if (!problems_.empty()) return join_errors(problems_);
    return std::move(room_);
  }

 private:
  using Numbers = std::unordered_map<std::string_view, int>;

  void problem(const std::string& what) {
    if (problems_.size() < 20) problems_.push_back(name_ + ": " + what);
  }

  std::string_view type_of(std::string_view id) const {
    const auto found = problem_.types.find(id);
    return found == problem_.types.end() ? std::string_view{} : found->second;
  }

  void number_ids() {
    std::vector<std::string_view> ids;
    for (const PddlFact& fact : problem_.facts)
      ids.insert(ids.end(), fact.arguments.begin(), fact.arguments.begin() + static_cast<std::ptrdiff_t>(fact.count));
    std::sort(ids.begin(), ids.end());
    ids.erase(std::unique(ids.begin(), ids.end()), ids.end());

    std::map<std::string, int> left;
    for (const std::string_view id : ids)
      if (is_named(id)) ++left[first_part(id)];
    for (const std::string_view id : ids) {
      if (type_of(id) == "location") locations_.emplace(id, static_cast<int>(locations_.size()));
      if (!is_named(id)) continue;
      const std::string part = first_part(id);
      const std::string name = part + " " + std::to_string(left[part]--);
      if (type_of(id) == "object") {
        objects_.emplace(id, static_cast<int>(objects_.size()));
        room_.objects.push_back({.name = name});
      } else {
        receptacles_.emplace(id, static_cast<int>(receptacles_.size()));
        room_.receptacles.push_back({.name = name});
      }
    }
    check_sizes();
  }

  bool is_named(std::string_view id) const { return type_of(id) == "object" || type_of(id) == "receptacle"; }

  void check_sizes() {
    const std::string limit = std::to_string(kMaxAlfworldEntities);
    if (objects_.size() > kMaxAlfworldEntities)
      problem("has " + std::to_string(objects_.size()) + " objects; expected at most " + limit);
    if (receptacles_.size() > kMaxAlfworldEntities)
      problem("has " + std::to_string(receptacles_.size()) + " receptacles; expected at most " + limit);
    if (locations_.size() > kMaxLocations)
      problem("has " + std::to_string(locations_.size()) + " locations; expected at most " +
              std::to_string(kMaxLocations));
    room_.locations = static_cast<int>(locations_.size());
    room_.start.inside.resize(receptacles_.size());
    room_.start.taken.resize(receptacles_.size());
    room_.start.at.resize(locations_.size());
  }

  /// The number of a fact's argument; a problem where it is of another type.
  int number(const PddlFact& fact, std::size_t argument, const Numbers& numbers, std::string_view type) {
    const std::string_view id = argument < fact.count ? fact.arguments[argument] : std::string_view{};
    const auto found = numbers.find(id);
    if (found != numbers.end()) return found->second;
    problem(std::string(fact.predicate.substr(0, 60)) + ": expected the name of an existing " + std::string(type) +
            ", found " + quoted_word(id));
    return kNowhere;
  }
  int object(const PddlFact& fact, std::size_t argument = 0) { return number(fact, argument, objects_, "object"); }
  int receptacle(const PddlFact& fact, std::size_t argument = 0) {
    return number(fact, argument, receptacles_, "receptacle");
  }
  int location(const PddlFact& fact, std::size_t argument) { return number(fact, argument, locations_, "location"); }

  void read_facts() {
    for (const PddlFact& fact : problem_.facts) read_fact(fact);
    std::unordered_map<std::string_view, EntitySet> objects;
    for (std::size_t o = 0; o < room_.objects.size(); ++o)
      if (!room_.objects[o].type.empty()) objects[room_.objects[o].type].add(static_cast<int>(o));
    for (const PddlFact& fact : problem_.facts)
      if (fact.predicate == "cancontain") read_can_contain(fact, objects);
  }

  void read_fact(const PddlFact& fact) {
    const std::string_view predicate = fact.predicate;
    if (EntitySet* set = set_of(predicate)) {
      if (const int o = object(fact); o != kNowhere) set->add(o);
    } else if (predicate == "openable" || predicate == "opened") {
      const int r = receptacle(fact);
      if (r == kNowhere) return;
      if (predicate == "openable") room_.receptacles[static_cast<std::size_t>(r)].openable = true;
      if (predicate == "opened") room_.start.opened.add(r);
    } else if (predicate == "objecttype") {
      if (const int o = object(fact); o != kNowhere) set_type(room_.objects[static_cast<std::size_t>(o)].type, fact);
    } else if (predicate == "receptacletype") {
      if (const int r = receptacle(fact); r != kNowhere)
        set_type(room_.receptacles[static_cast<std::size_t>(r)].type, fact);
    } else if (predicate == "receptacleatlocation") {
      const int r = receptacle(fact), l = location(fact, 1);
      if (r != kNowhere && l != kNowhere) set_once(room_.receptacles[static_cast<std::size_t>(r)].location, l, fact);
    } else if (predicate == "atlocation") {
      if (const int l = location(fact, 1); l != kNowhere) set_once(room_.start.location, l, fact);
    } else if (predicate == "objectatlocation") {
      const int o = object(fact), l = location(fact, 1);
      if (o != kNowhere && l != kNowhere) room_.start.at[static_cast<std::size_t>(l)].add(o);
    } else if (predicate == "inreceptacle") {
      const int o = object(fact), r = receptacle(fact, 1);
      if (o != kNowhere && r != kNowhere) room_.start.inside[static_cast<std::size_t>(r)].add(o);
    } else if (predicate == "inreceptacleobject") {
      const int inner = object(fact), outer = object(fact, 1);
      if (inner != kNowhere && outer != kNowhere) room_.objects[static_cast<std::size_t>(outer)].inner.push_back(inner);
    } else if (predicate == "holds") {
      if (const int o = object(fact, 1); o != kNowhere) set_once(room_.start.held, o, fact);
    }
    // Other predicates are not read by any command, text or goal.
  }

  EntitySet* set_of(std::string_view predicate) {
    const std::array<std::pair<std::string_view, EntitySet*>, 13> sets = {{{"pickupable", &room_.pickupable},
                                                                           {"cleanable", &room_.cleanable},
                                                                           {"heatable", &room_.heatable},
                                                                           {"coolable", &room_.coolable},
                                                                           {"toggleable", &room_.toggleable},
                                                                           {"sliceable", &room_.sliceable},
                                                                           {"isreceptacleobject", &room_.containers},
                                                                           {"isclean", &room_.start.clean},
                                                                           {"ishot", &room_.start.hot},
                                                                           {"iscool", &room_.start.cool},
                                                                           {"ison", &room_.start.on},
                                                                           {"istoggled", &room_.start.toggled},
                                                                           {"issliced", &room_.start.sliced}}};
    for (const auto& [name, set] : sets)
      if (name == predicate) return set;
    return nullptr;
  }

  void set_once(int& value, int found, const PddlFact& fact) {
    if (value != kNowhere && value != found)
      problem(std::string(fact.predicate) + ": expected one for " + quoted_word(fact.arguments[0]) + ", found two");
    value = found;
  }

  void set_type(std::string& type, const PddlFact& fact) {
    const std::string_view found = fact.count == 2 ? fact.arguments[1] : std::string_view{};
    if (found.empty())
      return problem(std::string(fact.predicate) + ": expected a type of " + quoted_word(fact.arguments[0]));
    if (!type.empty() && type != found)
      problem(std::string(fact.predicate) + ": expected one type of " + quoted_word(fact.arguments[0]) + ", found two");
    type = found;
  }

  /// What belongs where is said of types.
  void read_can_contain(const PddlFact& fact, const std::unordered_map<std::string_view, EntitySet>& objects) {
    const auto found = objects.find(fact.arguments[1]);
    if (found == objects.end()) return;
    for (RoomReceptacle& receptacle : room_.receptacles)
      if (!receptacle.type.empty() && receptacle.type == fact.arguments[0])
        receptacle.fits = receptacle.fits | found->second;
  }

  void finish() {
    if (room_.start.location == kNowhere) problem("expected a fact atLocation of the agent, found none");
    for (RoomReceptacle& receptacle : room_.receptacles) {
      const std::string& type = receptacle.type;
      if (type == "sinktype" || type == "sinkbasintype") receptacle.appliance = Appliance::Sink;
      if (type == "microwavetype") receptacle.appliance = Appliance::Microwave;
      if (type == "fridgetype") receptacle.appliance = Appliance::Fridge;
    }
    for (std::size_t o = 0; o < room_.objects.size(); ++o)
      if (room_.objects[o].type == "knifetype" || room_.objects[o].type == "butterknifetype")
        room_.knives.add(static_cast<int>(o));
    for (RoomObject& object : room_.objects) std::sort(object.inner.begin(), object.inner.end());
    sort_names();
    read_goal();
  }

  void sort_names() {
    for (std::size_t o = 0; o < room_.objects.size(); ++o)
      room_.names.push_back({.name = room_.objects[o].name, .object = static_cast<int>(o)});
    for (std::size_t r = 0; r < room_.receptacles.size(); ++r)
      room_.names.push_back({.name = room_.receptacles[r].name, .receptacle = static_cast<int>(r)});
    std::sort(room_.names.begin(), room_.names.end(),
              [](const NamedEntity& a, const NamedEntity& b) { return a.name < b.name; });
    room_.object_rank.resize(room_.objects.size());
    room_.receptacle_rank.resize(room_.receptacles.size());
    room_.receptacles_at.resize(static_cast<std::size_t>(room_.locations));
    for (std::size_t i = 0; i < room_.names.size(); ++i) {
      const int o = room_.names[i].object, r = room_.names[i].receptacle;
      if (o != kNowhere) room_.object_rank[static_cast<std::size_t>(o)] = static_cast<int>(i);
      if (r == kNowhere) continue;
      room_.receptacle_rank[static_cast<std::size_t>(r)] = static_cast<int>(i);
      room_.receptacles_by_name.push_back(r);
      const int l = room_.receptacles[static_cast<std::size_t>(r)].location;
      if (l != kNowhere) room_.receptacles_at[static_cast<std::size_t>(l)].push_back(r);
    }
  }

  void read_goal() {
    for (const GoalForm& form : kGoalForms) {
      const auto types = match(form, problem_.goal);
      if (!types) continue;
      room_.goal.task = form.task;
      room_.goal.objects = objects_of(types->at("$object"));
      if (form.task == RoomTask::PlaceClean) room_.goal.objects = room_.goal.objects & room_.cleanable;
      if (form.task == RoomTask::PlaceHot) room_.goal.objects = room_.goal.objects & room_.heatable;
      if (form.task == RoomTask::PlaceCool) room_.goal.objects = room_.goal.objects & room_.coolable;
      if (form.task == RoomTask::LookInLight) {
        room_.goal.lamps = objects_of(types->at("$lamp")) & room_.toggleable;
        return;
      }
      for (std::size_t r = 0; r < room_.receptacles.size(); ++r)
        if (room_.receptacles[r].type == types->at("$receptacle")) room_.goal.receptacles.add(static_cast<int>(r));
      return;
    }
    problem(":goal: expected one of ALFWorld's six forms, found another one");
  }

  EntitySet objects_of(std::string_view type) const {
    EntitySet all;
    for (std::size_t o = 0; o < room_.objects.size(); ++o)
      if (room_.objects[o].type == type) all.add(static_cast<int>(o));
    return all;
  }

  const PddlProblem& problem_;
  const std::string& name_;
  Numbers objects_{}, receptacles_{}, locations_{};
  Room room_{};
  std::vector<std::string> problems_{};
};

}  // namespace

const NamedEntity* Room::find(std::string_view name) const {
  const auto found =
      std::lower_bound(names.begin(), names.end(), name,
                       [](const NamedEntity& entity, std::string_view wanted) { return entity.name < wanted; });
  return found != names.end() && found->name == name ? &*found : nullptr;
}

Result<Room> parse_room(std::string_view problem, const std::string& name) {
  const std::string text = lower_case(problem);
  CARNOT_ASSIGN_OR_RETURN(const auto parts, parse_pddl_problem(text, name));
  return RoomBuilder(parts, name).build();
}

}  // namespace carnot
