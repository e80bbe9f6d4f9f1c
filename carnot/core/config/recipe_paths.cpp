#include "carnot/core/config/recipe_paths.h"

#include <algorithm>
#include <system_error>

namespace carnot {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kKeys[] = {
    "env.attributes_file", "env.command",      "env.human_file", "env.judge.prompt_file",
    "env.products_file",   "env.repositories", "env.retriever",  "env.reward",
    "env.schema",          "env.task_source",  "env.test_file",  "env.tools",
    "env.train_file",      "model.path",       "tokenizer.path", "track.command"};
constexpr std::string_view kFunctionMark = ".py:";

bool is_there(const fs::path& path) {
  std::error_code failure;
  return fs::exists(path, failure);
}

}  // namespace

bool names_files(std::string_view key) { return std::ranges::find(kKeys, key) != std::end(kKeys); }

std::string found_from(const fs::path& folder, const std::string& text) {
  const std::size_t mark = text.rfind(kFunctionMark);
  const fs::path file = mark == std::string::npos ? text : text.substr(0, mark + kFunctionMark.size() - 1);
  if (file.empty() || file.is_absolute() || is_there(file) || !is_there(folder / file)) return text;
  return (folder / text).lexically_normal().string();
}

}  // namespace carnot
