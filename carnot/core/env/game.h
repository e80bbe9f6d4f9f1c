// env/game.h -- the bare world of an environment: actions in, observations out; no prompts, no budgets.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace carnot {

/// A reward keeps whether it is an integer, because texts show `1` and `1.0` differently.
struct Reward {
  double value = 0;
  bool integer = false;
};

/// As Python adds: plain double addition; integers stay whole.
Reward operator+(const Reward& a, const Reward& b);

/// Shortest text that reads back as the number, as Python's repr writes it: "-0.1", "10.9", "1.0"; integers "1".
std::string python_number(const Reward& reward);

struct GameStep {
  std::string observation{};
  Reward reward{};
  bool done = false;
  bool success = false;
  bool effective = false;  ///< the action changed something, by the game's own definition
  bool valid = false;      ///< the game knows the action
};

/// A member of the objects that `carnot env NAME --json` writes.
struct ShownMember {
  std::string name{};
  std::string json{};
};

/// `text` as a JSON string, quotes included; letters outside ASCII are kept, invalid UTF-8 becomes U+FFFD.
std::string json_text(std::string_view text);

class Game {
 public:
  virtual ~Game() = default;

  /// The instance in the notation of the golden boards (a grid, a map, digits), as JSON text.
  virtual std::string board_json() const = 0;
  /// The state as text.
  virtual std::string observation() const = 0;
  /// One action as the game writes it ("Up", "place 3 at row 1 col 2"). Unknown: not valid, not effective, same state.
  /// REQUIRES: no step before was done.
  virtual GameStep step(std::string_view action) = 0;
  virtual std::string anchor() const { return observation(); }
  /// What `carnot env NAME --json` shows next to the observation of the present state, and once at the start.
  virtual std::vector<ShownMember> members() const { return {}; }
  virtual std::vector<ShownMember> opening_members() const { return {}; }
  /// Numbers for metrics, read at the end of an episode.
  virtual std::map<std::string, double> measures() const { return {}; }
  virtual std::unique_ptr<Game> clone() const = 0;
  /// As Environment::redraw().
  virtual void redraw(std::uint64_t /*key*/) {}
};

}  // namespace carnot
