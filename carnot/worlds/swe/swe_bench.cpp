#include "carnot/worlds/swe/swe_bench.h"

#include <algorithm>

#include "carnot/core/base/file.h"
#include "carnot/core/base/json.h"
#include "carnot/core/base/strings.h"
#include "carnot/core/rows/row_file.h"

namespace carnot {
namespace {

constexpr std::size_t kMostRepositoryFiles = 4000;  // the sandbox's folder has 4096 entries
constexpr std::uintmax_t kMostRepositoryBytes = 48u << 20;

class SweBenchRowReader {
 public:
  SweBenchRowReader(const OrderedJson& row, const std::string& where, std::vector<std::string>& problems)
      : row_(row), where_(where), problems_(problems) {}

  SweBenchRow read() {
    SweBenchRow row{.instance_id = text("instance_id"),
                    .repo = text("repo"),
                    .base_commit = text("base_commit"),
                    .problem_statement = text("problem_statement")};
    if (!row.instance_id.empty() && !is_path_beneath(row.instance_id))
      problem("instance_id", "'" + row.instance_id + "' cannot be the name of a folder");
    row.patch = diff("patch");
    row.test_patch = diff("test_patch");
    row.fail_to_pass = tests("FAIL_TO_PASS");
    row.pass_to_pass = tests("PASS_TO_PASS");
    return row;
  }

 private:
  void problem(const std::string& key, const std::string& what) { problems_.push_back(where_ + key + ": " + what); }

  const OrderedJson* member(const std::string& key) {
    const auto found = row_.find(key);
    if (found != row_.end()) return &*found;
    problem(key, "this key is missing");
    return nullptr;
  }

  std::string text(const std::string& key) {
    const OrderedJson* value = member(key);
    if (value == nullptr) return "";
    if (value->is_string() && !trim(value->get_ref<const std::string&>()).empty()) return value->get<std::string>();
    problem(key, "expected a non-empty string, found " + shown(*value));
    return "";
  }

  std::vector<FileDiff> diff(const std::string& key) {
    const std::string patch = text(key);
    if (patch.empty()) return {};
    auto files = parse_unified_diff(patch, where_ + key);
    if (files && !files->empty()) return std::move(files).value();
    if (files)
      problem(key, "expected a patch");
    else
      problems_.push_back(files.error().message);
    return {};
  }

  std::vector<std::string> tests(const std::string& key) {
    const OrderedJson* value = member(key);
    if (value == nullptr) return {};
    if (!value->is_string()) return names(key, *value);
    const auto list = parse_json<OrderedJson>(value->get_ref<const std::string&>(), where_ + key);
    if (list) return names(key, *list);
    problems_.push_back(list.error().message);
    return {};
  }

  std::vector<std::string> names(const std::string& key, const OrderedJson& list) {
    std::vector<std::string> found;
    const bool is_list =
        list.is_array() && std::all_of(list.begin(), list.end(), [](const auto& one) { return one.is_string(); });
    if (!is_list)
      problem(key, "expected a list of strings, found " + shown(list));
    else
      for (const auto& one : list) found.push_back(one.get<std::string>());
    return found;
  }

  const OrderedJson& row_;
  const std::string& where_;
  std::vector<std::string>& problems_;
};

bool is_left_out(const std::filesystem::path& name) {
  return name == ".git" || name == "__pycache__" || name.extension() == ".pyc";
}

}  // namespace

Result<std::vector<SweBenchRow>> parse_swe_bench_rows(std::string_view text, const std::string& name) {
  std::vector<SweBenchRow> rows;
  CARNOT_RETURN_IF_ERROR(
      read_rows(text, name, [&](const OrderedJson& row, const std::string& where, std::vector<std::string>& problems) {
        rows.push_back(SweBenchRowReader(row, where, problems).read());
      }));
  return rows;
}

Result<SweFiles> read_repository(const std::filesystem::path& folder) {
  SweFiles files;
  std::uintmax_t bytes = 0;
  std::error_code problem;
  std::filesystem::recursive_directory_iterator entry(folder, problem), end;
  for (; !problem && entry != end; entry.increment(problem)) {
    if (is_left_out(entry->path().filename())) {
      entry.disable_recursion_pending();
      continue;
    }
    if (entry->is_symlink(problem) || !entry->is_regular_file(problem)) continue;
    bytes += entry->file_size(problem);
    if (problem) break;
    if (files.size() >= kMostRepositoryFiles || bytes > kMostRepositoryBytes)
      return Error{folder.string() + ": has more than " + std::to_string(kMostRepositoryFiles) + " files or " +
                   std::to_string(kMostRepositoryBytes >> 20) + " MB"};
    CARNOT_ASSIGN_OR_RETURN(auto content, read_file(entry->path()));
    const auto mode = entry->status(problem).permissions();
    files[entry->path().lexically_relative(folder).generic_string()] = {
        .content = std::move(content),
        .executable = (mode & std::filesystem::perms::owner_exec) != std::filesystem::perms::none};
  }
  if (problem) return Error{folder.string() + ": " + problem.message()};
  return files;
}

Result<SweTask> swe_bench_task(const SweBenchRow& row, SweFiles repository) {
  SweTask task{.id = row.instance_id, .issue = row.problem_statement};
  SweFiles with_repair = repository, with_tests = repository;
  CARNOT_RETURN_IF_ERROR(apply_diff(row.patch, with_repair, row.instance_id + ", patch"));
  CARNOT_RETURN_IF_ERROR(apply_diff(row.test_patch, with_tests, row.instance_id + ", test_patch"));
  for (const FileDiff& diff : row.test_patch) {
    if (diff.new_path.empty()) continue;
    task.tests[diff.new_path] = with_tests.at(diff.new_path);
    if (diff.new_path.ends_with(".py")) task.test_files.push_back(diff.new_path);
  }
  if (task.test_files.empty()) return Error{row.instance_id + ": the test patch has no Python file"};
  task.repository = std::move(repository);
  task.passing = row.fail_to_pass;
  task.passing.insert(task.passing.end(), row.pass_to_pass.begin(), row.pass_to_pass.end());
  return task;
}

}  // namespace carnot
