#include "carnot/core/method/preset.h"

namespace carnot {

std::string_view name_of(Preset preset) {
  switch (preset) {
    case Preset::Carnot: return "carnot";
    case Preset::Paper: return "paper";
    case Preset::Code: return "code";
    case Preset::Readme: return "readme";
  }
  return "";
}

}  // namespace carnot
