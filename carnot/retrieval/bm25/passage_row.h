// retrieval/bm25/passage_row.h -- one line of a file of passages as a retriever serves it: an id and contents.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "carnot/core/base/result.h"

namespace carnot {

/// A passage in the words of Search-R1's corpora: `contents` is the title in quotes, a line break and the text.
struct PassageRow {
  std::string id{};
  std::string contents{};
};

/// Reads a JSON object with `contents` (or `text`, `content`, `passage`, with a `title` or without) and maybe an `id`,
/// a text or an integer; without one, `number` is the id. Contents are served as they are; a title next to another
/// key is put before the text, in quotes and on its own line. The error begins with `where`.
Result<PassageRow> parse_passage_row(std::string_view line, std::uint64_t number, const std::string& where);

}  // namespace carnot
