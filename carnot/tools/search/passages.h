// tools/search/passages.h -- the built-in tool `search`: BM25 over the passages of a file.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "carnot/core/env/tool.h"

namespace carnot {

struct SearchPassage {
  std::string title{};
  std::string text{};
};

/// JSON lines: objects with `text` (or `contents`, `content`, `passage`) and maybe `title`. With a name that ends in
/// .txt (.txt.xz): a passage a line. Blank lines are passed over. The error names line, field and what was expected,
/// for all bad lines at once (the first twenty). No passage at all is an error.
Result<std::vector<SearchPassage>> parse_passages(std::string_view text, const std::string& name);

/// What a policy reads about every tool `search`.
ToolDescription search_description();

/// The tool over the passages of a file, plain or .xz.
Result<std::shared_ptr<Tool>> make_search(const std::filesystem::path& file);

}  // namespace carnot
