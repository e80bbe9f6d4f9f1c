// The targets of links exist, and so do the files and tests that the documentation names.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cctype>
#include <filesystem>
#include <set>

#include "carnot/core/base/file.h"
#include "page.h"
#include "testing/paths.h"

namespace carnot {
namespace {

namespace fs = std::filesystem;
using testing::documentation_pages;
using ::testing::HasSubstr;
using testing::matches;
using testing::page_text;

/// The page without fenced code.
std::string prose_of(const std::string& page) {
  const std::string text = page_text(page);
  std::string prose;
  bool fenced = false;
  for (const std::string_view line : split_lines(text)) {
    if (line.starts_with("```")) fenced = !fenced;
    if (!fenced) prose += std::string(line) + "\n";
  }
  return prose;
}

/// A heading's anchor: lower case, words joined by hyphens, other signs left out.
std::string anchor_of(const std::string& heading) {
  std::string anchor;
  for (const char c : heading) {
    const auto sign = static_cast<unsigned char>(c);
    if (c == ' ' || c == '-') anchor += '-';
    if (std::isalnum(sign) != 0 || c == '_') anchor += static_cast<char>(std::tolower(sign));
  }
  return anchor;
}

std::set<std::string> anchors_of(const std::string& page) {
  std::set<std::string> anchors;
  for (const std::string& heading : matches(prose_of(page), "\n#+ ([^\n]*)")) anchors.insert(anchor_of(heading));
  return anchors;
}

TEST(Links, LeadToFilesAndHeadings) {
  int links = 0;
  for (const std::string& page : documentation_pages())
    for (const std::string& target : matches(prose_of(page), "\\]\\(([^)\\s]*)\\)")) {
      if (target.find("://") != std::string::npos) continue;
      const std::size_t hash = target.find('#');
      const std::string file = target.substr(0, hash);
      const fs::path path = file.empty() ? fs::path(page) : (fs::path(page).parent_path() / file).lexically_normal();
      EXPECT_TRUE(fs::exists(source_path(path.string()))) << page << ": " << target;
      if (hash != std::string::npos && fs::is_regular_file(source_path(path.string()))) {
        EXPECT_EQ(anchors_of(path.string()).count(target.substr(hash + 1)), 1u) << page << ": " << target;
      }
      ++links;
    }
  EXPECT_GT(links, 100);
}

/// Every "Suite.Name" of the tests.
std::set<std::string> test_names() {
  std::set<std::string> names;
  for (const char* folder : {"carnot", "tests"})
    for (const auto& entry : fs::recursive_directory_iterator(source_path(folder))) {
      if (!entry.path().string().ends_with("_test.cpp")) continue;
      const std::string text = *read_file(entry.path());
      for (const std::string& test :
           matches(text, "\n(?:TYPED_)?TEST(?:_F|_P)?\\(([A-Za-z0-9_]+,\\s*[A-Za-z0-9_]+)\\)")) {
        const std::size_t comma = test.find(',');
        names.insert(test.substr(0, comma) + "." + test.substr(test.find_first_not_of(" \n,", comma)));
      }
    }
  return names;
}

bool names_a_test(const std::set<std::string>& names, const std::string& named) {
  if (!named.ends_with("*")) return names.contains(named);
  const std::string start = named.substr(0, named.size() - 1);
  const auto found = names.lower_bound(start);
  return found != names.end() && found->starts_with(start);
}

TEST(Documentation, NamesTestsThatExist) {
  const auto names = test_names();
  int named = 0;
  for (const std::string& page : documentation_pages())
    for (const std::string& test : matches(prose_of(page), "`([A-Z][A-Za-z0-9]*\\.(?:[A-Z][A-Za-z0-9]*|\\*))`")) {
      EXPECT_TRUE(names_a_test(names, test)) << page << ": " << test;
      ++named;
    }
  EXPECT_GT(named, 50);
}

bool is_source(const std::string& path) {
  return path.ends_with(".h") || path.ends_with(".cpp") || path.ends_with(".py") || path.ends_with(".sh") ||
         path.ends_with(".yaml");
}

/// `a.{h,cpp}` are two paths.
std::vector<std::string> without_braces(const std::string& path) {
  const std::size_t open = path.find('{'), close = path.find('}');
  if (open == std::string::npos || close < open) return {path};
  std::vector<std::string> paths;
  for (const std::string& word : matches(path.substr(open + 1, close - open - 1), "([^,]+)"))
    paths.push_back(path.substr(0, open) + word + path.substr(close + 1));
  return paths;
}

/// Relative to the repository, or to carnot/ or carnot/core/ in it.
std::string path_of(const std::string& named) {
  for (const char* folder : {"", "carnot/"})
    if (const std::string path = source_path(folder + named); fs::exists(path)) return path;
  return source_path("carnot/core/" + named);
}

TEST(Documentation, NamesFilesAndRoomsThatExist) {
  int named = 0;
  for (const std::string& page : documentation_pages())
    for (const std::string& word : matches(prose_of(page), "`([a-z0-9_]+/[a-z0-9_./{},]+)`"))
      for (const std::string& path : without_braces(word)) {
        if (path.find("my_") != std::string::npos || !(is_source(path) || path.starts_with("carnot/"))) continue;
        EXPECT_TRUE(fs::exists(path_of(path))) << page << ": " << path;
        ++named;
      }
  EXPECT_GT(named, 100);
}

TEST(Documentation, NamesFilesThatContainWhatIsCited) {
  int named = 0;
  for (const std::string& page : documentation_pages())
    for (const std::string& phrase :
         matches(prose_of(page), "`([A-Za-z_][A-Za-z0-9_]*`\\s+in\\s+`[a-z0-9_/]+\\.(?:h|cpp|py))`")) {
      const std::string symbol = phrase.substr(0, phrase.find('`')), file = phrase.substr(phrase.rfind('`') + 1);
      const auto text = read_file(path_of(file));
      ASSERT_TRUE(text.ok()) << page << ": " << file;
      EXPECT_FALSE(matches(*text, ("\\b(" + symbol + ")\\b").c_str()).empty()) << page << ": " << phrase;
      ++named;
    }
  EXPECT_GT(named, 10);
}

TEST(Site, HasEveryPageInItsNavigation) {
  const std::string site = page_text("mkdocs.yml");
  for (const std::string& page : documentation_pages()) EXPECT_THAT(site, HasSubstr(": " + page + "\n"));
}

}  // namespace
}  // namespace carnot
