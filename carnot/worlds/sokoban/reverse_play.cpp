#include "carnot/worlds/sokoban/reverse_play.h"

#include <algorithm>
#include <array>
#include <cstdlib>

namespace carnot {
namespace {

constexpr std::size_t kMaxBoards = 300000;

// A board without its walls: where the player is, and where boxes are, in the order of their cells.
struct BoardKey {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  bool operator==(const BoardKey&) const = default;
};

// Boards seen, by open addressing; the player's cell is never 0, so an all-zero key marks a free slot.
class BoardSet {
 public:
  BoardSet() : slots_(1024) {}

  std::size_t size() const { return size_; }

  /// False if the key is there already.
  bool insert(const BoardKey& key) {
    if (2 * size_ >= slots_.size()) grow();
    BoardKey& slot = find(key);
    if (slot == key) return false;
    slot = key;
    ++size_;
    return true;
  }

 private:
  BoardKey& find(const BoardKey& key) {
    const std::uint64_t mixed = (key.low * 0x9e3779b97f4a7c15u) ^ (key.high * 0xc2b2ae3d27d4eb4fu);
    std::size_t i = (mixed ^ (mixed >> 29)) & (slots_.size() - 1);
    while (slots_[i] != BoardKey{} && slots_[i] != key) i = (i + 1) & (slots_.size() - 1);
    return slots_[i];
  }

  void grow() {
    std::vector<BoardKey> old(slots_.size() * 2);
    old.swap(slots_);
    for (const auto& key : old)
      if (key != BoardKey{}) find(key) = key;
  }

  std::vector<BoardKey> slots_;
  std::size_t size_ = 0;
};

struct Box {
  int origin = 0;
  int cell = 0;
  bool pulled = false;  // pulled back onto its target, it makes another board: published rooms depend on it
};

class ReverseSearch {
 public:
  explicit ReverseSearch(const SokobanRoom& solved)
      : room_(solved), steps_{-solved.columns, solved.columns, -1, 1}, occupant_(solved.cells.size(), kNobody) {
    for (std::size_t i = 0; i < solved.boxes.size(); ++i) {
      boxes_.push_back({.origin = solved.boxes[i], .cell = solved.boxes[i]});
      occupant_[solved.boxes[i]] = static_cast<std::int8_t>(i);
    }
    player_ = solved.player;
  }

  ReversePlay run(int depth) {
    roll_out(depth, 0, kNobody);
    ReversePlay best{.room = room_, .displacement = displacement(best_boxes_)};
    best.room.player = best_player_;
    best.room.boxes.clear();
    for (const Box& box : best_boxes_) best.room.boxes.push_back(box.cell);
    std::sort(best.room.boxes.begin(), best.room.boxes.end());
    return best;
  }

 private:
  static constexpr int kNobody = -1;

  void roll_out(int depth, int swaps, int last_pulled) {
    if (depth - 1 <= 0 || seen_.size() >= kMaxBoards) return;
    if (!seen_.insert(key())) return;
    const int score = all_targets_visible() ? swaps * displacement(boxes_) : 0;
    if (score > best_score_) {
      best_score_ = score;
      best_boxes_ = boxes_;
      best_player_ = player_;
    }
    for (const int step : steps_) pull(step, depth - 1, swaps, last_pulled);
  }

  // One move of the player, a box behind it following; explores from there and takes the move back.
  void pull(int step, int depth, int swaps, int last_pulled) {
    const int here = player_, there = here + step, behind = here - step;
    if (room_.at(there) == SokobanCell::Wall || occupant(there) != kNobody) return;
    const int box = occupant(behind);
    player_ = there;
    if (box == kNobody) {
      roll_out(depth, swaps, last_pulled);
    } else {
      Box& moved = boxes_[box];
      const Box before = moved;
      moved = {.origin = before.origin, .cell = here, .pulled = true};
      std::swap(occupant(here), occupant(behind));
      roll_out(depth, swaps + (box != last_pulled ? 1 : 0), box);
      std::swap(occupant(here), occupant(behind));
      moved = before;
    }
    player_ = here;
  }

  std::int8_t& occupant(int i) { return occupant_[i]; }

  bool all_targets_visible() {
    for (const Box& box : boxes_)
      if (box.origin == player_ || occupant(box.origin) != kNobody) return false;
    return true;
  }

  int displacement(const std::vector<Box>& boxes) const {
    int sum = 0;
    for (const Box& box : boxes)
      sum += std::abs(box.cell / room_.columns - box.origin / room_.columns) +
             std::abs(box.cell % room_.columns - box.origin % room_.columns);
    return sum;
  }

  // Eight bits of player, then nine a box: which box is which does not matter, so they are sorted.
  BoardKey key() const {
    std::array<std::uint32_t, kMaxSokobanBoxes> codes;
    for (std::size_t i = 0; i < boxes_.size(); ++i)
      codes[i] = static_cast<std::uint32_t>(boxes_[i].cell) * 2 + (boxes_[i].pulled ? 1 : 0);
    std::sort(codes.begin(), codes.begin() + static_cast<std::ptrdiff_t>(boxes_.size()));
    unsigned __int128 packed = static_cast<unsigned>(player_);
    for (std::size_t i = 0; i < boxes_.size(); ++i) packed = (packed << 9) | codes[i];
    return {.low = static_cast<std::uint64_t>(packed), .high = static_cast<std::uint64_t>(packed >> 64)};
  }

  const SokobanRoom& room_;
  std::array<int, 4> steps_;
  std::vector<std::int8_t> occupant_;  // box on each cell
  std::vector<Box> boxes_;
  int player_ = 0;
  BoardSet seen_;
  int best_score_ = -1;
  std::vector<Box> best_boxes_;
  int best_player_ = 0;
};

}  // namespace

ReversePlay reverse_play(const SokobanRoom& solved, int depth) { return ReverseSearch(solved).run(depth); }

}  // namespace carnot
