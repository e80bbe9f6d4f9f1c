#include "carnot/core/commands/recipe_keys.h"

#include <nlohmann/json.hpp>
#include <ostream>
#include <set>

#include "carnot/core/base/process_environment.h"
#include "carnot/core/base/strings.h"
#include "carnot/core/config/printer.h"
#include "carnot/core/run/find_run.h"
#include "carnot/core/run/run_folder.h"

namespace carnot {

namespace {

namespace fs = std::filesystem;

Result<Recipe> read_run(const fs::path& folder, const std::vector<std::string>& overrides) {
  const fs::path config = RunFolder{folder}.config();
  std::error_code ignored;
  if (!fs::exists(config, ignored))
    return Error{folder.string() + ": is a folder without a config.yaml; expected a recipe or a run folder"};
  std::vector<std::string> all{"run_folder=" + nlohmann::json(folder.string()).dump(), "resume=auto"};
  all.insert(all.end(), overrides.begin(), overrides.end());
  return load_recorded(config, all);
}

std::set<std::string> recipes_in(const fs::path& folder) {
  std::set<std::string> names;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored))
    if (entry.path().extension() == ".yaml") names.insert(entry.path().lexically_normal().string());
  return names;
}

std::set<std::string> recipes_of_program() {
  std::set<std::string> names;
  const auto folders = own_folders("recipes");
  if (!folders) return names;
  for (const fs::path& folder : *folders)
    for (const fs::path name : recipes_in(folder)) names.insert("recipes" / name.filename());
  return names;
}

}  // namespace

Status check_recipe_exists(const fs::path& path) {
  std::error_code ignored;
  if (fs::exists(path, ignored)) return Done{};
  std::set<std::string> names = fs::exists("recipes", ignored) ? recipes_in("recipes") : recipes_of_program();
  names.merge(recipes_in(path.has_parent_path() ? path.parent_path() : "."));
  std::string problem =
      path.empty() ? "RECIPE is required: a YAML file or a run's folder" : path.string() + ": does not exist";
  if (!names.empty()) problem += "; recipes here: " + join(std::vector(names.begin(), names.end()));
  return Error{problem};
}

Result<Recipe> read_recipe(const std::filesystem::path& named, const std::vector<std::string>& overrides) {
  if (named.empty()) return Recipe::parse("", "default recipe", overrides);
  const fs::path path = find_recipe(named);
  CARNOT_RETURN_IF_ERROR(check_recipe_exists(path));
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) return read_run(path, overrides);
  return is_recorded(path) ? load_recorded(path, overrides) : Recipe::load(path, overrides);
}

Exit print_recipe_keys(const std::filesystem::path& path, const std::vector<std::string>& overrides,
                       const Console& console) {
  auto recipe = read_recipe(path, overrides);
  if (!recipe) return report(console, recipe.error());
  return print(help_text(recipe->table()), console);
}

Result<std::string> list_recipe_keys(const ListRequest& request) {
  CARNOT_ASSIGN_OR_RETURN(auto recipe, read_recipe({}, {}));
  const FieldTable table = recipe.table();
  if (!request.json) return help_text(table);
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const FieldRow& row : table.rows())
    list.push_back(
        {{"key", row.key}, {"type", row.type}, {"default", row.value}, {"accepts", row.accepts}, {"help", row.help}});
  return list.dump(2) + "\n";
}

}  // namespace carnot
