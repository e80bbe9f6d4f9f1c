#include "carnot/http/headers.h"

#include <algorithm>

#include "carnot/core/base/strings.h"

namespace carnot {
namespace {

bool is_token_character(char c) {
  const bool alphanumeric = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  return alphanumeric || std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

bool is_value_character(char c) { return c == '\t' || (static_cast<unsigned char>(c) >= 0x20 && c != 0x7f); }

}  // namespace

const std::string* find_header(const HttpHeaders& headers, std::string_view name) {
  const auto found = std::find_if(headers.begin(), headers.end(), [&](const HttpHeader& header) {
    return lower_case(header.name) == lower_case(name);
  });
  return found == headers.end() ? nullptr : &found->value;
}

bool is_valid_header(const HttpHeader& header) {
  return !header.name.empty() && std::all_of(header.name.begin(), header.name.end(), is_token_character) &&
         std::all_of(header.value.begin(), header.value.end(), is_value_character);
}

}  // namespace carnot
