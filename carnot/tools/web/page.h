// tools/web/page.h -- gets a web page, as a reader without a browser would, and its text.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "carnot/core/base/result.h"
#include "carnot/core/env/tool.h"
#include "carnot/http/client.h"

namespace carnot {

/// Bytes of a page that are looked at; the rest is left out.
inline constexpr std::size_t kMostPageBytes = std::size_t{1} << 20;

/// Elements within each other beyond which the rest of a page is left out: the time to parse grows with their square.
inline constexpr int kMostOpenElements = 4096;

/// The texts of the page's elements, its title first, stripped and with a blank between each two; scripts, styles and
/// templates left out: BeautifulSoup's get_text(separator=" ", strip=True). Any bytes; UTF-8.
std::string html_text(std::string_view html);

/// The text of an answer's body, as its type and character set (of the header, or of the page's own declaration) say;
/// not UTF-8 or unknown: by replacement characters. The error says that the type has no text.
Result<std::string> page_text(const HttpAnswer& answer);

/// The part of `page` around the sentence that has most words in common with `snippet` (F1 above 0.2), up to `length`
/// characters before and behind it; where there is no such sentence the first 2 * `length` characters.
std::string excerpt_around(std::string_view page, std::string_view snippet, int length);

struct PageFetch {
  std::chrono::milliseconds time{20'000};  ///< for the page with its redirects
  bool private_addresses = false;          ///< whether hosts in loopback, private and link-local ranges may be asked
};

/// The text of the page at `url`, at most five redirects further. The error says in a sentence
/// why it has no text: a status, no answer in time, a type without text, an address that is not public. A name is
/// looked up before it is asked; one that changes its address in between is beyond this check.
Result<std::string> fetch_page(const std::string& url, const PageFetch& how, Tool::Deadline deadline);

/// Whether an address in numbers is one of the public internet.
bool is_public_address(const std::string& address);

}  // namespace carnot
