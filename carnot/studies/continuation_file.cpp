#include "carnot/studies/continuation_file.h"

#include <utility>

#include "carnot/core/base/file.h"
#include "carnot/core/base/json.h"

namespace carnot {

Result<ContinuationFile> ContinuationFile::open(std::filesystem::path path) {
  ContinuationFile file(std::move(path));
  if (!std::filesystem::exists(file.path_)) return file;
  CARNOT_ASSIGN_OR_RETURN(file.text_, read_file(file.path_));
  int number = 0;
  for (const std::string_view line : split_lines(file.text_)) {
    const std::string where = file.path_.string() + ":" + std::to_string(++number);
    CARNOT_RETURN_IF_ERROR(file.read_line(line, where));
  }
  return file;
}

Status ContinuationFile::read_line(std::string_view line, const std::string& where) {
  CARNOT_ASSIGN_OR_RETURN(const Json row, parse_json_object(line, where));
  const Error malformed{where + ": expected {\"key\": ..., \"states\": [{\"scores\": [numbers], \"tokens\": number}]}"};
  if (!row.contains("key") || !row["key"].is_string() || !row.contains("states") || !row["states"].is_array())
    return malformed;
  std::vector<Continuations> batch;
  for (const Json& state : row["states"]) {
    if (!state.is_object() || !state.contains("scores") || !state["scores"].is_array() || !state.contains("tokens") ||
        !state["tokens"].is_number_integer())
      return malformed;
    Continuations one{.sampled_tokens = state["tokens"].get<std::int64_t>()};
    for (const Json& score : state["scores"]) {
      if (!score.is_null() && !score.is_number()) return malformed;
      one.scores.push_back(score.is_null() ? std::nullopt : std::optional(score.get<double>()));
    }
    batch.push_back(std::move(one));
  }
  batches_[row["key"].get<std::string>()] = std::move(batch);
  return Done{};
}

const std::vector<Continuations>* ContinuationFile::find(const std::string& key) const {
  const auto found = batches_.find(key);
  return found == batches_.end() ? nullptr : &found->second;
}

Status ContinuationFile::add(const std::string& key, std::vector<Continuations> batch) {
  OrderedJson row{{"key", key}, {"states", OrderedJson::array()}};
  for (const Continuations& one : batch) {
    OrderedJson scores = OrderedJson::array();
    for (const std::optional<double>& score : one.scores) scores.push_back(score ? OrderedJson(*score) : OrderedJson());
    row["states"].push_back({{"scores", std::move(scores)}, {"tokens", one.sampled_tokens}});
  }
  text_ += json_line(row) + "\n";
  batches_[key] = std::move(batch);
  CARNOT_RETURN_IF_ERROR(make_folder(path_.parent_path()));
  return write_file_atomically(path_, text_);
}

}  // namespace carnot
