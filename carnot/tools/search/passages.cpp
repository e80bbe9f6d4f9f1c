#include "carnot/tools/search/passages.h"

#include "carnot/core/base/file.h"
#include "carnot/core/base/json.h"
#include "carnot/core/base/limits.h"
#include "carnot/core/base/strings.h"
#include "carnot/retrieval/bm25/bm25.h"
#include "carnot/tools/toolbox/toolbox.h"

namespace carnot {
namespace {

constexpr int kUsualHits = 3;

Result<SearchPassage> passage_of(const Json& row, const std::string& where) {
  SearchPassage passage;
  const auto text_at = [&](const char* key, std::string& value) {
    const auto found = row.find(key);
    if (found == row.end() || !found->is_string()) return false;
    value = found->get<std::string>();
    return true;
  };
  text_at("title", passage.title);
  for (const char* key : {"text", "contents", "content", "passage"})
    if (text_at(key, passage.text)) return passage;
  return Error{where + ": expected a string under text, contents, content or passage"};
}

class Search final : public Tool {
 public:
  explicit Search(std::vector<SearchPassage> passages) : passages_(std::move(passages)), index_(texts(passages_), {}) {}

  const ToolDescription& description() const override { return description_; }

  ToolResult call(std::string_view arguments, Deadline) override {
    const auto given = parse_json_object(arguments, "arguments").value();
    const auto hits = index_.search(given.at("query").get<std::string>(), given.value<int>("limit", kUsualHits));
    if (hits.empty()) return {.text = "Nothing was found.", .status = "empty"};
    std::string text;
    for (std::size_t i = 0; i < hits.size(); ++i) {
      const SearchPassage& passage = passages_[static_cast<std::size_t>(hits[i].document)];
      text += (i > 0 ? "\n\n[" : "[") + std::to_string(i + 1) + "] " +
              (passage.title.empty() ? "" : passage.title + "\n") + passage.text;
    }
    return {.text = text};
  }

 private:
  static std::vector<std::string> texts(const std::vector<SearchPassage>& passages) {
    std::vector<std::string> all;
    for (const SearchPassage& passage : passages) all.push_back(passage.title + "\n" + passage.text);
    return all;
  }

  ToolDescription description_ = search_description();
  std::vector<SearchPassage> passages_;
  Bm25Index index_;
};

}  // namespace

Result<std::vector<SearchPassage>> parse_passages(std::string_view text, const std::string& name) {
  std::vector<SearchPassage> passages;
  std::vector<std::string> problems;
  const bool is_plain = name.ends_with(".txt") || name.ends_with(".txt.xz");
  const auto lines = split_lines(text);
  if (lines.size() > kMaxLines) return Error{name + ": more than " + std::to_string(kMaxLines) + " lines"};
  for (std::size_t i = 0; i < lines.size() && problems.size() < kMaxProblems; ++i) {
    const std::string_view line = trim(lines[i]);
    if (line.empty()) continue;
    if (is_plain) {
      passages.push_back({.text = std::string(line)});
      continue;
    }
    const std::string where = name + ":" + std::to_string(i + 1);
    const auto row = parse_json_object(line, where);
    auto passage = row ? passage_of(*row, where) : Result<SearchPassage>(row.error());
    if (passage)
      passages.push_back(std::move(passage).value());
    else
      problems.push_back(passage.error().message);
  }
  if (!problems.empty()) return join_errors(problems);
  if (passages.empty()) return Error{name + ": no passages"};
  return passages;
}

ToolDescription search_description() {
  return {.name = "search",
          .description = "Finds the passages that fit a query best.",
          .parameters =
              R"({"type": "object", "properties": {"query": {"type": "string", "description": "words to look )"
              R"(for"}, "limit": {"type": "integer", "minimum": 1, "maximum": 10, "description": "passages, 3 )"
              R"(by default"}}, "required": ["query"]})"};
}

Result<std::shared_ptr<Tool>> make_search(const std::filesystem::path& file) {
  CARNOT_ASSIGN_OR_RETURN(const auto text, read_maybe_compressed(file));
  CARNOT_ASSIGN_OR_RETURN(auto passages, parse_passages(text, file.string()));
  return std::shared_ptr<Tool>(std::make_shared<Search>(std::move(passages)));
}

std::unique_ptr<ToolKind> make_passage_search_kind() {
  return each_entry([](const std::string& entry) { return make_search(trim(std::string_view(entry).substr(7))); });
}

}  // namespace carnot
