// The text of a page, whatever its bytes: valid UTF-8, no longer than its source allows, the same every time.
#include <cstddef>
#include <cstdint>

#include "carnot/core/base/check.h"
#include "carnot/core/base/utf8.h"
#include "carnot/tools/web/page.h"
#include "tests/fuzz/target.h"

CARNOT_FUZZ_TARGET(web_pages) {
  if (size == 0) return 0;
  const std::string bytes(reinterpret_cast<const char*>(data + 1), size - 1);
  const char* type = data[0] % 3 == 0 ? "text/html" : data[0] % 3 == 1 ? "text/html; charset=utf-16" : "text/plain";
  const auto text = carnot::page_text({.status = 200, .headers = {{"Content-Type", type}}, .body = bytes});
  CARNOT_CHECK_EQ(carnot::valid_prefix(text.value()), text->size());
  const std::string part = carnot::excerpt_around(*text, bytes, data[0]);
  CARNOT_CHECK_EQ(carnot::valid_prefix(part), part.size());
  CARNOT_CHECK(text->find(part) != std::string::npos, "an excerpt is a part of the page");
  return 0;
}
