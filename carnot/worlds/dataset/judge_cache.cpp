#include "carnot/worlds/dataset/judge_cache.h"

#include "carnot/core/base/file.h"
#include "carnot/core/base/json.h"
#include "carnot/core/base/temporary_name.h"

namespace carnot {

Result<JudgeCache> JudgeCache::open(const std::filesystem::path& folder) {
  CARNOT_RETURN_IF_ERROR(make_folder(folder));
  CARNOT_ASSIGN_OR_RETURN(const auto probe, make_temporary_file(folder));
  std::error_code ignored;
  std::filesystem::remove(probe.path, ignored);
  return JudgeCache(folder);
}

std::filesystem::path JudgeCache::file_of(const std::string& request) const {
  const std::string key = sha256_hex(request);
  return folder_ / key.substr(0, 2) / (key.substr(2) + ".json");
}

std::optional<std::string> JudgeCache::find(const std::string& request) const {
  const std::filesystem::path path = file_of(request);
  std::error_code problem;
  if (!std::filesystem::is_regular_file(path, problem)) return std::nullopt;
  const auto text = read_file(path);
  if (!text) return std::nullopt;
  const auto parsed = parse_json_object(*text, path.string());
  if (!parsed) return std::nullopt;
  const auto answer = parsed->find("answer");
  if (answer == parsed->end() || !answer->is_string()) return std::nullopt;
  return answer->get<std::string>();
}

Status JudgeCache::store(const std::string& request, const std::string& answer) const {
  const std::filesystem::path path = file_of(request);
  CARNOT_RETURN_IF_ERROR(make_folder(path.parent_path()));
  return write_file_atomically(path, Json{{"answer", answer}}.dump() + "\n");
}

}  // namespace carnot
