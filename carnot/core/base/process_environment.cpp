#include "carnot/core/base/process_environment.h"

#include <algorithm>
#include <cstdlib>

#include "carnot/core/base/strings.h"

namespace carnot {
namespace {

Result<std::filesystem::path> folder_of_program() {
  std::error_code problem;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", problem);
  if (problem) return Error{"/proc/self/exe: " + problem.message()};
  return program.parent_path();
}

}  // namespace

Result<std::string> key_of_variable(const std::string& name, const std::string& where) {
  if (name.empty()) return std::string();
  const char* value = std::getenv(name.c_str());
  if (value == nullptr)
    return Error{where +
                 ": no such environment variable; expected the NAME of one that holds the key, never the key itself"};
  const std::string key(trim(value));
  if (key.empty()) return Error{where + ": the environment variable is set but empty; expected one that holds the key"};
  if (std::any_of(key.begin(), key.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; }))
    return Error{where + ": the variable's value has control characters; expected a key"};
  return key;
}

Result<std::string> find_own_program(const std::string& name, const std::string& variable) {
  const std::string advice = "; set " + variable + " to the program " + name;
  std::vector<std::string> places;
  if (const char* named = std::getenv(variable.c_str()); named != nullptr) {
    places.emplace_back(named);
  } else {
    const auto folder = folder_of_program();
    if (!folder) return Error{folder.error().message + advice};
    places = {*folder / name, folder->parent_path() / "libexec" / "carnot" / name};
  }
  for (const std::string& place : places)
    if (std::filesystem::exists(place)) return place;
  return Error{"there is no " + join(places, " and no ") + advice};
}

Result<std::vector<std::filesystem::path>> own_folders(const std::string& name) {
  CARNOT_ASSIGN_OR_RETURN(const auto folder, folder_of_program());
  return std::vector{folder.parent_path() / name, folder.parent_path() / "share" / "carnot" / name};
}

}  // namespace carnot
