// worlds/alfworld/command.h -- ALFWorld's commands as values, and as the texts that players write.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "carnot/worlds/alfworld/room.h"

namespace carnot {

/// In the order of their words, which is the order of the admissible list.
enum class RoomVerb : std::uint8_t {
  Clean,
  Close,
  Cool,
  Examine,
  Go,
  Heat,
  Help,
  Inventory,
  Look,
  Move,
  Open,
  Slice,
  Take,
  Use,
};

struct RoomCommand {
  RoomVerb verb = RoomVerb::Look;
  std::int16_t object = kNowhere;
  std::int16_t receptacle = kNowhere;
  std::int16_t knife = kNowhere;  ///< Slice: the object to slice with

  bool operator==(const RoomCommand&) const = default;
};

/// "take mug 1 from desk 1", appended to `text`.
void append_command(std::string& text, const Room& room, const RoomCommand& command);
std::string command_text(const Room& room, const RoomCommand& command);

/// Reads a command as append_command() writes it; empty if the text is not a command or names what the room does
/// not have. Says nothing about whether the command can be carried out.
std::optional<RoomCommand> parse_command(const Room& room, std::string_view text);

}  // namespace carnot
