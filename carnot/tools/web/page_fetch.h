// tools/web/page_fetch.h -- gets a web page, as a reader without a browser would.
#pragma once

#include <chrono>
#include <string>

#include "carnot/core/base/result.h"
#include "carnot/core/env/tool.h"

namespace carnot {

struct PageFetch {
  std::chrono::milliseconds time{20'000};  ///< for the page with its redirects
  bool private_addresses = false;          ///< whether hosts in loopback, private and link-local ranges may be asked
};

/// The text of the page at `url` (tools/web/page_text.h), at most five redirects further. The error says in a sentence
/// why there is none: a status, no answer in time, a type without text, an address that is not public. A name is looked
/// up before it is asked; one that changes its address in between is beyond this check.
Result<std::string> fetch_page(const std::string& url, const PageFetch& how, Tool::Deadline deadline);

/// Whether an address in numbers is one of the public internet.
bool is_public_address(const std::string& address);

}  // namespace carnot
