// view/page_files.h -- script and style of the page, put into the library when it is configured (CMakeLists.txt).
#pragma once

#include <string_view>

namespace carnot {

extern const std::string_view kViewStyle;   ///< page.css
extern const std::string_view kViewScript;  ///< trajectories.js, page.js

}  // namespace carnot
