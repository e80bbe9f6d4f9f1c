// cuda/device_texts.h -- the sources of device code, as text in the library. Internal to the room.
#pragma once

#include <string_view>

namespace carnot::cuda {

extern const std::string_view kStatisticsText, kStatisticsParameters;

}  // namespace carnot::cuda
