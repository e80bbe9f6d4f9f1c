// Every table of the documentation that repeats the code agrees with it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "carnot/core/base/file.h"
#include "carnot/core/base/strings.h"
#include "page.h"
#include "testing/paths.h"

namespace carnot {
namespace {

using nlohmann::json;
using testing::expect_block;
using ::testing::HasSubstr;
using testing::matches;
using testing::page_text;
using testing::program_says;
using testing::table_heading;
using testing::table_row;

std::string code(const std::string& text) { return "`" + text + "`"; }

std::string link(const std::string& text, const std::string& target) { return "[" + text + "](" + target + ")"; }

/// Names of the files of a folder of docs/ without their ending, README.md apart.
std::set<std::string> page_names(const std::string& folder) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(source_path("docs/" + folder)))
    if (entry.path().extension() == ".md" && entry.path().stem() != "README") names.insert(entry.path().stem());
  return names;
}

TEST(Readme, HasUnder200Lines) { EXPECT_LT(split_lines(page_text("README.md")).size(), 200u); }

TEST(Readme, ShowsAFileUnchanged) {
  const auto shown = matches(page_text("README.md"), "<!-- generated: file ([^ ]*) -->");
  EXPECT_EQ(shown.size(), 1u);
  for (const std::string& file : shown)
    expect_block("README.md", "file " + file, "```cpp\n" + page_text(file) + "```\n");
}

TEST(Methods, MatchTheReadmesTable) {
  std::string table = table_heading({"name", "kind", "paper", "in one line"});
  std::set<std::string> names;
  for (const json& method : json::parse(program_says({"list", "methods", "--json"}))) {
    const auto name = method.at("name").get<std::string>(), paper = method.at("paper").get<std::string>();
    const bool is_base = method.at("base"), is_add_on = method.at("add_on");
    names.insert(name);
    table += table_row({link(code(name), "docs/methods/" + name + ".md"),
                        is_base && is_add_on ? "base or add-on"
                        : is_base            ? "base"
                                             : "add-on",
                        link(paper, "https://arxiv.org/abs/" + paper), method.at("summary").get<std::string>()});
  }
  expect_block("README.md", "methods", table);
  EXPECT_EQ(page_names("methods"), names);
}

TEST(Environments, MatchThePagesTable) {
  std::string table = table_heading({"name", "what it is"});
  for (const json& environment : json::parse(program_says({"list", "environments", "--json"})))
    table += table_row({code(environment.at("name").get<std::string>()), environment.at("summary").get<std::string>()});
  expect_block("docs/environments.md", "environments", table);
}

/// A line of `carnot --help`: "  carnot NAME ARGUMENTS   summary".
struct CommandLine {
  std::string name{}, arguments{}, summary{};
};

std::vector<CommandLine> commands() {
  std::vector<CommandLine> all;
  const std::string help = program_says({"--help"});
  for (const std::string_view view : split_lines(help)) {
    const std::string line(view);
    if (!line.starts_with("  carnot ")) continue;
    const std::size_t begin = std::string_view("  carnot ").size(), gap = line.find("  ", begin);
    if (gap == std::string::npos) continue;
    const std::string use = line.substr(begin, gap - begin);
    const std::size_t space = use.find(' ');
    all.push_back({.name = use.substr(0, space),
                   .arguments = space == std::string::npos ? "" : use.substr(space + 1),
                   .summary = line.substr(line.find_first_not_of(' ', gap))});
  }
  return all;
}

TEST(Commands, MatchThePagesTable) {
  std::string table = table_heading({"command", "arguments", "what it does"});
  std::set<std::string> names;
  for (const CommandLine& command : commands()) {
    names.insert(command.name);
    table += table_row({link(code(command.name), command.name + ".md"),
                        command.arguments.empty() ? "" : code(command.arguments), command.summary});
  }
  EXPECT_GT(names.size(), 10u);
  expect_block("docs/commands/README.md", "commands", table);
  EXPECT_EQ(page_names("commands"), names);
}

/// What a command takes, up to the example: a list may follow. For `help`, the overview.
std::string usage_of(const std::string& command) {
  const std::string help = program_says({command, "--help"});
  return help.substr(0, help.find('\n', help.find("\nExample: ") + 1) + 1);
}

TEST(Commands, ShowTheirUsage) {
  for (const CommandLine& command : commands()) {
    const std::string page = "docs/commands/" + command.name + ".md";
    expect_block(page, "usage " + command.name, "```text\n" + usage_of(command.name) + "```\n");
    for (const char* heading : {"\n## Usage\n", "\n## Example\n", "\n## Errors\n"})
      EXPECT_THAT(page_text(page), HasSubstr(heading)) << page;
  }
}

/// A line of build/rooms/floor_plan, which cmake/CarnotRoom.cmake writes.
struct Room {
  std::string path{}, name{}, uses{}, torch{}, about{};
};

std::vector<Room> rooms() {
  std::vector<Room> all;
  const std::string plan = read_file(build_path("rooms/floor_plan")).value();
  for (const std::string_view line : split_lines(plan)) {
    std::istringstream cells{std::string(line)};
    Room room;
    for (std::string* cell : {&room.path, &room.name, &room.uses, &room.torch, &room.about})
      std::getline(cells, *cell, '|');
    all.push_back(std::move(room));
  }
  return all;
}

/// Core rooms alone, or those of the annexes.
std::string room_table(bool core) {
  std::string table = table_heading({"room", "folder", "uses", "LibTorch", "what it holds"});
  for (const Room& room : rooms())
    if (room.path.starts_with("carnot/core/") == core)
      table += table_row({code(room.name), code(room.path), room.uses, room.torch, room.about});
  return table;
}

TEST(Rooms, MatchTheFloorPlan) {
  EXPECT_GT(rooms().size(), 40u);
  expect_block("ARCHITECTURE.md", "core rooms", room_table(true));
  expect_block("ARCHITECTURE.md", "annex rooms", room_table(false));
}

TEST(Rooms, OfTheCoreUseNoAnnex) {
  std::set<std::string> core;
  for (const Room& room : rooms()) {
    if (!room.path.starts_with("carnot/core/")) continue;
    core.insert(room.name);
    std::istringstream uses(room.uses);
    for (std::string used; uses >> used;) EXPECT_EQ(core.count(used), 1u) << room.name << " uses " << used;
  }
}

TEST(RunFolder, HasEveryPathOfItsHeader) {
  const std::string page = page_text("docs/run_folder.md");
  const auto paths = matches(page_text("carnot/core/run/run_folder.h"), "\n//   ([^ ]+)  ");
  EXPECT_GT(paths.size(), 5u);
  for (const std::string& path : paths) {
    const std::size_t slash = path.find('/');
    const std::string first = slash == std::string::npos ? path : path.substr(0, slash + 1);
    EXPECT_THAT(page, HasSubstr("| `" + first + "` |")) << path;
  }
}

}  // namespace
}  // namespace carnot
