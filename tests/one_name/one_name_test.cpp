// No two types of namespace carnot share a name: a program with both is undefined, and a compiler that sees one source
// at a time cannot notice.
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <regex>
#include <set>

#include "carnot/core/base/file.h"
#include "testing/paths.h"

namespace carnot {
namespace {

namespace fs = std::filesystem;

/// Names of the types that a file defines in a named namespace: at the beginning of a line, as our formatting requires.
std::set<std::string> types_of(std::string_view text) {
  static const std::regex kType(
      R"((?:template <.*> )?(?:struct|class|union|enum|enum class) (\w+)(?: final)?(?: :.*)? ?\{.*)");
  static const std::regex kNamespace(R"(namespace ([\w:]+) \{)");
  std::set<std::string> types;
  std::string space;
  bool hidden = false;
  for (const std::string_view view : split_lines(text)) {
    const std::string line(view);
    std::smatch match;
    if (std::regex_match(line, match, kNamespace)) space = match[1];
    if (line == "namespace {") hidden = true;
    if (line == "}  // namespace") hidden = false;
    if (!hidden && std::regex_match(line, match, kType)) types.insert(space + "::" + match[1].str());
  }
  return types;
}

using Places = std::map<std::string, std::vector<std::string>>;

void add(Places& places, const std::string& file, std::string_view text) {
  for (const std::string& type : types_of(text)) places[type].push_back(file);
}

/// Each name that several files define, with the files.
std::vector<std::string> clashes(const Places& places) {
  std::vector<std::string> found;
  for (const auto& [type, files] : places) {
    if (files.size() < 2) continue;
    std::string text = type + ":";
    for (const std::string& file : files) text += " " + file;
    found.push_back(text);
  }
  return found;
}

TEST(OneName, BelongsToOneType) {
  Places places;
  int files = 0;
  for (const char* folder : {"carnot", "reference", "testing"})
    for (const auto& entry : fs::recursive_directory_iterator(source_path(folder))) {
      const fs::path& path = entry.path();
      // A test's own types are seen by its program alone.
      if ((path.extension() != ".h" && path.extension() != ".cpp") || path.stem().string().ends_with("_test")) continue;
      add(places, fs::relative(path, source_path("")).string(), read_file(path).value());
      ++files;
    }
  EXPECT_GT(files, 400);
  EXPECT_GT(places.size(), 300u);
  EXPECT_EQ(clashes(places), std::vector<std::string>());
}

TEST(OneName, IsFoundForEveryKindOfType) {
  Places places;
  add(places, "a.h", "namespace carnot {\n\nstruct ClipState {\n  double slope = 0;\n};\n\n}  // namespace carnot\n");
  add(places, "b.h", "namespace carnot {\n\nenum class ClipState { None, Low };\n\n}  // namespace carnot\n");
  add(places, "c.h", "namespace carnot {\n\nclass Reader final : public Visitor {\n};\n}  // namespace carnot\n");
  add(places, "d.cpp", "namespace carnot {\nclass Reader {\n public:\n};\n}  // namespace carnot\n");
  EXPECT_EQ(clashes(places), (std::vector<std::string>{"carnot::ClipState: a.h b.h", "carnot::Reader: c.h d.cpp"}));
}

TEST(OneName, MayBeReusedInAnAnonymousOrDifferentNamespace) {
  Places places;
  add(places, "a.cpp", "namespace carnot {\nnamespace {\nstruct Rows {\n};\n}  // namespace\n}  // namespace carnot\n");
  add(places, "b.cpp", "namespace carnot {\nstruct Rows {\n};\n}  // namespace carnot\n");
  add(places, "c.h", "namespace carnot::kernel {\nstruct Rows {\n};\n}  // namespace carnot::kernel\n");
  add(places, "d.h", "namespace carnot {\nstruct Rows;\n}  // namespace carnot\n");
  EXPECT_EQ(clashes(places), std::vector<std::string>());
}

/// What `nm` prints of the symbols that other objects see, for the library of every room that there is.
std::string symbols_of_libraries() {
  std::string command = "nm -C -A -g --defined-only";
  for (const auto& entry : fs::recursive_directory_iterator(build_path("objects")))
    if (entry.path().extension() == ".a" && entry.path().filename().string().starts_with("libcarnot_"))
      command += " '" + entry.path().string() + "'";
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen((command + " 2>/dev/null").c_str(), "r"), ::pclose);
  std::string text;
  char block[4096];
  while (const std::size_t size = std::fread(block, 1, sizeof block, pipe.get())) text.append(block, size);
  return text;
}

/// "archive:object:address KIND symbol", where the kind is that of a definition that may occur once.
void add_symbol(Places& places, const std::string& line) {
  for (const char kind : {'T', 'D', 'B', 'R'}) {
    const std::size_t at = line.find(std::string(" ") + kind + " carnot::");
    if (at == std::string::npos) continue;
    const std::string object = fs::path(line.substr(0, line.rfind(':', at))).filename();
    std::vector<std::string>& objects = places[line.substr(at + 3)];
    // An object may have a constructor twice: for objects of the class, and for those of derived classes.
    if (objects.empty() || objects.back() != object) objects.push_back(object);
  }
}

// A linker takes the first of two definitions in libraries and says nothing.
TEST(OneName, BelongsToOneFunctionOrVariable) {
  Places places;
  const std::string symbols = symbols_of_libraries();
  for (const std::string_view line : split_lines(symbols)) add_symbol(places, std::string(line));
  EXPECT_GT(places.size(), 500u) << "the libraries were read";
  EXPECT_EQ(clashes(places), std::vector<std::string>{});
}

}  // namespace
}  // namespace carnot
