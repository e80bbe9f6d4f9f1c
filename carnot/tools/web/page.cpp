#include "carnot/tools/web/page.h"

#include <arpa/inet.h>
#include <gumbo.h>
#include <iconv.h>
#include <netdb.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <memory_resource>
#include <optional>
#include <set>
#include <vector>

#include "carnot/core/base/strings.h"
#include "carnot/core/base/utf8.h"

namespace carnot {
namespace {

constexpr double kLeastOverlap = 0.2;
constexpr std::size_t kSearchedCharacters = 50'000;
constexpr std::size_t kSniffedBytes = 1024;

bool is_tag_name_byte(char c) { return ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z') || ('0' <= c && c <= '9'); }

/// Elements that never hold others of their kind: they have no end, or the next one ends them.
bool closes_itself(std::string_view name) {
  static constexpr std::array<std::string_view, 21> kNames = {
      "area", "base", "br",     "col", "dd",    "dt",     "embed", "hr", "img", "input", "li",
      "link", "meta", "option", "p",   "param", "source", "td",    "th", "tr",  "wbr"};
  return std::ranges::find(kNames, name) != kNames.end();
}

/// `html` up to where too many elements are open. Comments and attributes count like elements: a bound, no parser.
std::string_view bounded_html(std::string_view html) {
  html = html.substr(0, kMostPageBytes);
  int open = 0;
  for (std::size_t at = html.find('<'); at != std::string_view::npos; at = html.find('<', at + 1)) {
    std::string_view rest = html.substr(at + 1);
    const bool ends = rest.starts_with('/');
    if (ends) rest.remove_prefix(1);
    const auto length = static_cast<std::size_t>(std::ranges::find_if_not(rest, is_tag_name_byte) - rest.begin());
    if (length == 0 || closes_itself(lower_case(rest.substr(0, std::min<std::size_t>(length, 8))))) continue;
    open = std::max(0, open + (ends ? -1 : 1));
    if (open > kMostOpenElements) return html.substr(0, at);
  }
  return html;
}

/// A page as gumbo's tree. Its nodes are in one arena, which is freed at once: gumbo frees a tree by recursion, for
/// which a deep page needs more stack than a thread has.
class ParsedPage {
 public:
  explicit ParsedPage(std::string_view html) {
    GumboOptions options = kGumboDefaultOptions;
    options.max_errors = 0;
    options.userdata = &arena_;
    options.allocator = [](void* arena, std::size_t size) {
      return static_cast<std::pmr::memory_resource*>(arena)->allocate(std::max<std::size_t>(size, 1));
    };
    options.deallocator = [](void*, void*) {};
    output_ = gumbo_parse_with_options(&options, html.data(), html.size());
  }

  const GumboNode* root() const { return output_ == nullptr ? nullptr : output_->root; }

 private:
  std::pmr::monotonic_buffer_resource arena_;
  GumboOutput* output_ = nullptr;
};

void add_stripped(std::string& text, std::string_view part) {
  part = stripped(part);
  if (part.empty()) return;
  if (!text.empty()) text += ' ';
  text += part;
}

bool is_left_out(const GumboNode& node) {
  if (node.type != GUMBO_NODE_ELEMENT) return node.type == GUMBO_NODE_TEMPLATE;
  const GumboTag tag = node.v.element.tag;
  return tag == GUMBO_TAG_SCRIPT || tag == GUMBO_TAG_STYLE || tag == GUMBO_TAG_TEMPLATE;
}

/// In the order of the page, without recursion.
std::string text_of_nodes(const GumboNode* root) {
  std::string text;
  std::vector<const GumboNode*> left{root};
  while (!left.empty()) {
    const GumboNode* node = left.back();
    left.pop_back();
    if (node->type == GUMBO_NODE_TEXT || node->type == GUMBO_NODE_CDATA) add_stripped(text, node->v.text.text);
    if (node->type != GUMBO_NODE_ELEMENT || is_left_out(*node)) continue;
    const GumboVector& children = node->v.element.children;
    for (unsigned i = children.length; i > 0; --i) left.push_back(static_cast<const GumboNode*>(children.data[i - 1]));
  }
  return text;
}

/// The value behind "charset=", in lower case; empty if it is missing.
std::string charset_in(std::string_view text) {
  const std::string lower = lower_case(text);
  const std::size_t at = lower.find("charset=");
  if (at == std::string::npos) return "";
  std::string_view value = std::string_view(lower).substr(at + 8);
  while (!value.empty() && (value.front() == '"' || value.front() == '\'')) value.remove_prefix(1);
  const auto is_name = [](char c) { return is_tag_name_byte(c) || c == '-' || c == '_'; };
  return std::string(value.begin(), std::ranges::find_if_not(value, is_name));
}

std::optional<std::string> converted(std::string_view bytes, const std::string& charset) {
  const iconv_t converter = ::iconv_open("UTF-8", charset.c_str());
  if (converter == reinterpret_cast<iconv_t>(-1)) return std::nullopt;
  std::string input(bytes), out, piece(1 << 16, '\0');
  char* from = input.data();
  std::size_t left = input.size();
  while (left > 0) {
    char* to = piece.data();
    std::size_t room = piece.size();
    const std::size_t converted = ::iconv(converter, &from, &left, &to, &room);
    out.append(piece.data(), piece.size() - room);
    if (converted != static_cast<std::size_t>(-1) || errno == E2BIG) continue;
    out += "\uFFFD";  // a byte that this set does not have
    ++from;
    --left;
  }
  ::iconv_close(converter);
  return out;
}

std::string in_utf8(std::string_view bytes, std::string_view type) {
  bytes = bytes.substr(0, kMostPageBytes);
  std::string charset = charset_in(type);
  if (charset.empty()) charset = charset_in(bytes.substr(0, kSniffedBytes));
  if (!charset.empty() && charset != "utf-8" && charset != "utf8")
    if (auto text = converted(bytes, charset)) return std::move(*text);
  return with_replacement_characters(bytes);
}

/// Sentences end behind . ! ? and a blank, and at line breaks.
std::vector<std::string_view> sentences_of(std::string_view text) {
  std::vector<std::string_view> sentences;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool mark = text[i] == '.' || text[i] == '!' || text[i] == '?';
    const bool ends = text[i] == '\n' || (mark && (i + 1 == text.size() || text[i + 1] == ' '));
    if (!ends) continue;
    sentences.push_back(trim(text.substr(begin, i + 1 - begin)));
    begin = i + 1;
  }
  if (begin < text.size()) sentences.push_back(trim(text.substr(begin)));
  return sentences;
}

std::set<std::string> plain_words(std::string_view text) {
  constexpr std::string_view kPunctuation = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~";
  std::set<std::string> words;
  std::string word;
  const auto end_word = [&] {
    if (!word.empty()) words.insert(std::move(word));
    word.clear();
  };
  for (const char c : lower_case(text)) {
    if (c == ' ' || c == '\n' || c == '\t' || c == '\r') {
      end_word();
    } else if (kPunctuation.find(c) == std::string_view::npos) {
      word += c;
    }
  }
  end_word();
  return words;
}

double overlap(const std::set<std::string>& a, const std::set<std::string>& b) {
  const auto common = std::ranges::count_if(a, [&](const std::string& word) { return b.contains(word); });
  return a.empty() || b.empty() ? 0 : 2.0 * static_cast<double>(common) / static_cast<double>(a.size() + b.size());
}

/// The place `count` characters before `from`, and behind it.
std::size_t back_by(std::string_view text, std::size_t from, int count) {
  while (count > 0 && from > 0) {
    do --from;
    while (from > 0 && continues_character(text[from]));
    --count;
  }
  return from;
}
std::size_t forward_by(std::string_view text, std::size_t from, int count) {
  for (; count > 0 && from < text.size(); --count)
    from += static_cast<std::size_t>(first_character(text.substr(from)).length);
  return from;
}

constexpr int kMostRedirects = 5;
constexpr std::size_t kMostAnswerBytes = std::size_t{8} << 20;

struct AddressRange {
  std::uint32_t first = 0;
  int bits = 0;
};

constexpr AddressRange network(std::uint32_t a, std::uint32_t b, std::uint32_t c, std::uint32_t d, int bits) {
  return {.first = a << 24 | b << 16 | c << 8 | d, .bits = bits};
}

bool is_public_v4(std::uint32_t address) {
  // RFC 6890: this network, private, shared, loopback, link-local, special use, private, tests, multicast and beyond.
  static constexpr std::array kSpecial = {
      network(0, 0, 0, 0, 8),     network(10, 0, 0, 0, 8),      network(100, 64, 0, 0, 10),
      network(127, 0, 0, 0, 8),   network(169, 254, 0, 0, 16),  network(172, 16, 0, 0, 12),
      network(192, 0, 0, 0, 24),  network(192, 0, 2, 0, 24),    network(192, 168, 0, 0, 16),
      network(198, 18, 0, 0, 15), network(198, 51, 100, 0, 24), network(203, 0, 113, 0, 24),
      network(224, 0, 0, 0, 4),   network(240, 0, 0, 0, 4)};
  return std::ranges::none_of(kSpecial, [&](const AddressRange& range) {
    return (address >> (32 - range.bits)) == (range.first >> (32 - range.bits));
  });
}

std::uint32_t v4_in(const unsigned char* bytes) {
  return std::uint32_t{bytes[0]} << 24 | std::uint32_t{bytes[1]} << 16 | std::uint32_t{bytes[2]} << 8 | bytes[3];
}

/// Global unicast is 2000::/3; addresses that carry one of IPv4 are what that is.
bool is_public_v6(const in6_addr& address) {
  const unsigned char* bytes = address.s6_addr;
  if (IN6_IS_ADDR_V4MAPPED(&address)) return is_public_v4(v4_in(bytes + 12));
  if (bytes[0] == 0x20 && bytes[1] == 0x02) return is_public_v4(v4_in(bytes + 2));
  return (bytes[0] & 0xE0) == 0x20;
}

bool is_public(const sockaddr& address) {
  if (address.sa_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, &address, sizeof v4);
    return is_public_v4(ntohl(v4.sin_addr.s_addr));
  }
  if (address.sa_family != AF_INET6) return false;
  sockaddr_in6 v6{};
  std::memcpy(&v6, &address, sizeof v6);
  return is_public_v6(v6.sin6_addr);
}

Status check_public(const Url& url) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(url.host.c_str(), nullptr, &hints, &found) != 0) return Error{"the host is not known"};
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, ::freeaddrinfo);
  for (const addrinfo* at = found; at != nullptr; at = at->ai_next)
    if (!is_public(*at->ai_addr)) return Error{"the address is not one of the public internet"};
  return Done{};
}

bool is_redirect(int status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

Result<Url> redirected(const Url& from, const std::string& location) {
  const std::string to(trim(location));
  if (to.starts_with("http://") || to.starts_with("https://")) return parse_url(to);
  if (to.starts_with("//")) return parse_url((from.secure ? "https:" : "http:") + to);
  Url base = from;
  base.query.clear();
  if (to.starts_with('/')) {
    base.path = "/";
  } else {
    base.path = base.path.substr(0, base.path.rfind('/') + 1);
  }
  return parse_url(base.shown() + (to.starts_with('/') ? to.substr(1) : to));
}

}  // namespace

std::string html_text(std::string_view html) {
  const std::string valid = with_replacement_characters(bounded_html(html));
  const ParsedPage page(valid);
  if (page.root() == nullptr) return "";
  // Gumbo writes no UTF-8 for a character whose number overflows.
  return with_replacement_characters(text_of_nodes(page.root()));
}

Result<std::string> page_text(const HttpAnswer& answer) {
  const std::string* header = find_header(answer.headers, "Content-Type");
  const std::string type = lower_case(header == nullptr ? "text/html" : trim(*header));
  const std::string text = in_utf8(answer.body, type);
  if (type.starts_with("text/html") || type.starts_with("application/xhtml")) return html_text(text);
  if (type.starts_with("text/") || type.starts_with("application/json") || type.starts_with("application/xml"))
    return std::string(stripped(text));
  return Error{"a page of type " + type.substr(0, type.find(';')) + ", of which no text is read"};
}

std::string excerpt_around(std::string_view page, std::string_view snippet, int length) {
  page = page.substr(0, forward_by(page, 0, static_cast<int>(kSearchedCharacters)));
  const auto wanted = plain_words(snippet);
  std::string_view best;
  double best_overlap = kLeastOverlap;
  for (const std::string_view sentence : sentences_of(page)) {
    const double now = overlap(wanted, plain_words(sentence));
    if (now <= best_overlap) continue;
    best_overlap = now;
    best = sentence;
  }
  if (best.empty()) return std::string(page.substr(0, forward_by(page, 0, 2 * length)));
  const auto begin = static_cast<std::size_t>(best.data() - page.data());
  const std::size_t from = back_by(page, begin, length), to = forward_by(page, begin + best.size(), length);
  return std::string(page.substr(from, to - from));
}

bool is_public_address(const std::string& address) {
  in_addr v4{};
  if (::inet_pton(AF_INET, address.c_str(), &v4) == 1) return is_public_v4(ntohl(v4.s_addr));
  in6_addr v6{};
  return ::inet_pton(AF_INET6, address.c_str(), &v6) == 1 && is_public_v6(v6);
}

Result<std::string> fetch_page(const std::string& text, const PageFetch& how, Tool::Deadline deadline) {
  auto url = parse_url(text);
  if (!url) return url.error();
  const auto until = std::min(deadline, std::chrono::steady_clock::now() + how.time);
  for (int redirects = 0;; ++redirects) {
    if (!how.private_addresses) CARNOT_RETURN_IF_ERROR(check_public(*url));
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    if (left.count() <= 0) return Error{"no answer in time"};
    CARNOT_ASSIGN_OR_RETURN(const auto answer,
                            http_exchange({.url = *url,
                                           .headers = {{"Accept", "text/html,application/xhtml+xml,text/plain;q=0.9"},
                                                       {"Accept-Language", "en;q=0.9,*;q=0.5"},
                                                       {"User-Agent", "Mozilla/5.0 (compatible; Carnot)"}}},
                                          {.time = left, .answer_bytes = kMostAnswerBytes}));
    const std::string* location = find_header(answer.headers, "Location");
    if (is_redirect(answer.status) && location != nullptr) {
      if (redirects == kMostRedirects) return Error{"more than five redirects"};
      url = redirected(*url, *location);
      if (!url) return url.error();
      continue;
    }
    if (!answer.is_success()) return Error{"status " + std::to_string(answer.status)};
    return page_text(answer);
  }
}

}  // namespace carnot
