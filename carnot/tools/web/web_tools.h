// tools/web/web_tools.h -- the tools `search` and `browse` over the web: ARPO's and AEPO's search (Dong et al. 2025,
// arXiv:2507.19849, arXiv:2510.14545), and pages by their address.
#pragma once

#include <memory>

#include "carnot/core/env/tool.h"
#include "carnot/tools/web/web.h"

namespace carnot {

/// `search(query)`. By options.pages: "Page 1: snippet", a line each; "**Web Page 1:**" and a JSON object with title,
/// address, date, snippet and the page's part around it (`context`), for each; or what the second model writes about
/// these. Nothing found: "No search results found.", status "empty".
std::shared_ptr<Tool> make_web_search(std::shared_ptr<Web> web);

/// `browse(url)`: the page's text, or what the second model writes about it. A page that cannot be read is a result of
/// status "error".
std::shared_ptr<Tool> make_browse(std::shared_ptr<Web> web);

}  // namespace carnot
