#include "testing/paths.h"

#include <cstdlib>

#include "carnot/core/base/check.h"

namespace carnot {

std::string source_path(std::string_view relative) { return std::string(CARNOT_SOURCE_DIR "/").append(relative); }

std::string recorded_path(std::string_view relative) { return source_path("tests/recorded/").append(relative); }

std::string build_path(std::string_view relative) { return std::string(CARNOT_BINARY_DIR "/").append(relative); }

const std::string& published_data() {
  static const std::string folder = [] {
    const char* named = std::getenv("CARNOT_DATA");
    return std::string(named != nullptr ? named : CARNOT_DATA_DIR);
  }();
  return folder;
}

std::string published_path(std::string_view relative) {
  CARNOT_CHECK(!published_data().empty(), "no folder of published data is named: CARNOT_DATA");
  return (published_data() + "/").append(relative);
}

}  // namespace carnot
