#include "carnot/core/subprocess/python_folder.h"

#include <cstdlib>

#include "carnot/core/base/process_environment.h"
#include "carnot/core/base/strings.h"

namespace carnot {

Result<std::filesystem::path> python_folder() {
  std::vector<std::filesystem::path> folders;
  if (const char* named = std::getenv("CARNOT_PYTHON"); named != nullptr) {
    folders.emplace_back(named);
  } else {
    auto own = own_folders("python");
    if (!own) return Error{own.error().message + "; set CARNOT_PYTHON to the folder python/"};
    folders = std::move(own).value();
  }
  std::vector<std::string> tried;
  for (const auto& folder : folders) {
    if (std::filesystem::exists(folder / "carnot_environment.py")) return folder;
    tried.push_back(folder.string());
  }
  return Error{"no carnot_environment.py in " + join(tried, " or ") + "; set CARNOT_PYTHON to the folder that has it"};
}

std::string own_python(const std::filesystem::path& folder) {
  const std::filesystem::path own = folder / ".." / ".venv" / "bin" / "python3";
  std::error_code missing;
  return std::filesystem::exists(own, missing) ? own.string() : "python3";
}

std::vector<std::string> python_variables() {
  std::vector<std::string> variables{"CARNOT_PROTOCOL=1"};
  if (const auto folder = python_folder()) {
    const char* before = std::getenv("PYTHONPATH");
    const bool has_some = before != nullptr && *before != '\0';
    variables.push_back("PYTHONPATH=" + (has_some ? std::string(before) + ":" : "") +
                        std::filesystem::absolute(*folder).string());
  }
  return variables;
}

}  // namespace carnot
