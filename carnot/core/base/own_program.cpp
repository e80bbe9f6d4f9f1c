#include "carnot/core/base/own_program.h"

#include <cstdlib>
#include <filesystem>
#include <vector>

#include "carnot/core/base/strings.h"

namespace carnot {

Result<std::string> find_own_program(const std::string& name, const std::string& variable) {
  const std::string advice = "; set " + variable + " to the program " + name;
  std::vector<std::string> places;
  if (const char* named = std::getenv(variable.c_str()); named != nullptr) {
    places.emplace_back(named);
  } else {
    std::error_code problem;
    const auto program = std::filesystem::read_symlink("/proc/self/exe", problem);
    if (problem) return Error{"/proc/self/exe: " + problem.message() + advice};
    const auto folder = program.parent_path();
    places = {folder / name, folder.parent_path() / "libexec" / "carnot" / name};
  }
  for (const std::string& place : places)
    if (std::filesystem::exists(place)) return place;
  return Error{"there is no " + join(places, " and no ") + advice};
}

}  // namespace carnot
