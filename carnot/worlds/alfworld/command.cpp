#include "carnot/worlds/alfworld/command.h"

#include <array>

namespace carnot {
namespace {

enum class Operands : std::uint8_t { None, Receptacle, Object, Either, Both, ObjectAndKnife };

struct VerbForm {
  RoomVerb verb;
  std::string_view first;   ///< before the first operand
  std::string_view second;  ///< between the two
  Operands operands;
};

constexpr std::array<VerbForm, 14> kVerbForms = {{
    {RoomVerb::Clean, "clean ", " with ", Operands::Both},
    {RoomVerb::Close, "close ", "", Operands::Receptacle},
    {RoomVerb::Cool, "cool ", " with ", Operands::Both},
    {RoomVerb::Examine, "examine ", "", Operands::Either},
    {RoomVerb::Go, "go to ", "", Operands::Receptacle},
    {RoomVerb::Heat, "heat ", " with ", Operands::Both},
    {RoomVerb::Help, "help", "", Operands::None},
    {RoomVerb::Inventory, "inventory", "", Operands::None},
    {RoomVerb::Look, "look", "", Operands::None},
    {RoomVerb::Move, "move ", " to ", Operands::Both},
    {RoomVerb::Open, "open ", "", Operands::Receptacle},
    {RoomVerb::Slice, "slice ", " with ", Operands::ObjectAndKnife},
    {RoomVerb::Take, "take ", " from ", Operands::Both},
    {RoomVerb::Use, "use ", "", Operands::Object},
}};

const std::string& object_name(const Room& room, int object) {
  return room.objects[static_cast<std::size_t>(object)].name;
}
const std::string& receptacle_name(const Room& room, int receptacle) {
  return room.receptacles[static_cast<std::size_t>(receptacle)].name;
}

std::optional<RoomCommand> with_operands(const Room& room, const VerbForm& form, std::string_view rest) {
  if (form.operands == Operands::None) return rest.empty() ? std::optional(RoomCommand{form.verb}) : std::nullopt;
  std::string_view second;
  if (!form.second.empty()) {
    const auto at = rest.find(form.second);
    if (at == std::string_view::npos) return std::nullopt;
    second = rest.substr(at + form.second.size());
    rest = rest.substr(0, at);
  }
  const NamedEntity* entity = room.find(rest);
  if (entity == nullptr) return std::nullopt;
  const auto object = static_cast<std::int16_t>(entity->object);
  const auto receptacle = static_cast<std::int16_t>(entity->receptacle);
  switch (form.operands) {
    case Operands::None: break;
    case Operands::Either: return RoomCommand{form.verb, object, receptacle};
    case Operands::Object:
      if (object != kNowhere) return RoomCommand{form.verb, object};
      break;
    case Operands::Receptacle:
      if (receptacle != kNowhere) return RoomCommand{form.verb, kNowhere, receptacle};
      break;
    case Operands::Both:
    case Operands::ObjectAndKnife: {
      const NamedEntity* other = room.find(second);
      if (other == nullptr || object == kNowhere) break;
      if (form.operands == Operands::Both && other->receptacle != kNowhere)
        return RoomCommand{form.verb, object, static_cast<std::int16_t>(other->receptacle)};
      if (form.operands == Operands::ObjectAndKnife && other->object != kNowhere)
        return RoomCommand{form.verb, object, kNowhere, static_cast<std::int16_t>(other->object)};
      break;
    }
  }
  return std::nullopt;
}

}  // namespace

void append_command(std::string& text, const Room& room, const RoomCommand& command) {
  const VerbForm& form = kVerbForms[static_cast<std::size_t>(command.verb)];
  text += form.first;
  if (command.object != kNowhere) text += object_name(room, command.object);
  text += form.second;
  if (command.receptacle != kNowhere) text += receptacle_name(room, command.receptacle);
  if (command.knife != kNowhere) text += object_name(room, command.knife);
}

std::string command_text(const Room& room, const RoomCommand& command) {
  std::string text;
  append_command(text, room, command);
  return text;
}

std::optional<RoomCommand> parse_command(const Room& room, std::string_view text) {
  for (const VerbForm& form : kVerbForms)
    if (text.starts_with(form.first)) return with_operands(room, form, text.substr(form.first.size()));
  return std::nullopt;
}

}  // namespace carnot
