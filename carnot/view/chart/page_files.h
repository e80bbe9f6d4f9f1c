// view/chart/page_files.h -- script and style of a page, put into the library when it is configured (CMakeLists.txt).
#pragma once

#include <string_view>

namespace carnot {

extern const std::string_view kPageStyle;   ///< uPlot.min.css, page.css
extern const std::string_view kPageScript;  ///< uPlot.iife.min.js, page.js

}  // namespace carnot
