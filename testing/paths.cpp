#include "testing/paths.h"

namespace carnot {

std::string source_path(std::string_view relative) { return std::string(CARNOT_SOURCE_DIR "/").append(relative); }

std::string data_path(std::string_view relative) { return std::string(CARNOT_DATA_DIR "/").append(relative); }

std::string build_path(std::string_view relative) { return std::string(CARNOT_BINARY_DIR "/").append(relative); }

}  // namespace carnot
