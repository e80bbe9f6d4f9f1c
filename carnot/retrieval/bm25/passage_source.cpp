#include "carnot/retrieval/bm25/passage_source.h"

#include <lzma.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "carnot/core/base/file.h"
#include "carnot/core/base/json.h"

namespace carnot {
namespace {

const std::string* passage_text(const Json& row, const char* key) {
  const auto found = row.find(key);
  return found == row.end() ? nullptr : found->get_ptr<const std::string*>();
}

constexpr std::size_t kMarkBytes = 1 << 16;  // of the source's beginning and of its end

}  // namespace

Result<PassageRow> parse_passage_row(std::string_view line, std::uint64_t number, const std::string& where) {
  CARNOT_ASSIGN_OR_RETURN(const auto row, parse_json_object(line, where));
  PassageRow passage{.id = std::to_string(number)};
  if (const auto id = row.find("id"); id != row.end() && !id->is_null()) {
    if (!id->is_string() && !id->is_number_integer())
      return Error{where + ": id: expected a string or an integer, found " + shown(*id)};
    passage.id = id->is_string() ? id->get<std::string>() : id->dump();
  }
  if (const std::string* contents = passage_text(row, "contents")) {
    passage.contents = *contents;
    return passage;
  }
  for (const char* key : {"text", "content", "passage"}) {
    const std::string* text = passage_text(row, key);
    if (text == nullptr) continue;
    const std::string* title = passage_text(row, "title");
    passage.contents = title == nullptr ? *text : "\"" + *title + "\"\n" + *text;
    return passage;
  }
  return Error{where + ": expected a string under contents, text, content or passage"};
}

std::uint64_t checksum_of(std::string_view bytes, std::uint64_t so_far) {
  return ::lzma_crc64(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size(), so_far);
}

Result<PassageSource> PassageSource::open(const std::filesystem::path& path) {
  PassageSource source;
  source.name_ = path.string();
  if (path.extension() == ".xz") {
    CARNOT_ASSIGN_OR_RETURN(auto text, read_maybe_compressed(path));
    source.bytes_ = text.size();
    source.in_ = std::make_unique<std::istringstream>(std::move(text));
  } else {
    CARNOT_RETURN_IF_ERROR(open_regular_file(path));
    auto file = std::make_unique<std::ifstream>(path, std::ios::binary);
    std::error_code reason;
    source.bytes_ = std::filesystem::file_size(path, reason);
    if (reason || !*file) return Error{path.string() + ": cannot open" + (reason ? ": " + reason.message() : "")};
    source.in_ = std::move(file);
  }
  const std::uint64_t piece = std::min<std::uint64_t>(kMarkBytes, source.bytes_);
  source.mark_ = source.checksum_at(source.bytes_ - piece, piece, source.checksum_at(0, piece, 0));
  source.seek(0);
  return source;
}

void PassageSource::seek(std::uint64_t byte) {
  in_->clear();
  in_->seekg(static_cast<std::streamoff>(byte));
  at_ = byte;
}

Result<bool> PassageSource::next(std::string& line) {
  auto more = read_line(*in_, line);
  if (more && *more) at_ = std::min(bytes_, at_ + line.size() + 1);
  return more;
}

std::uint64_t PassageSource::checksum_at(std::uint64_t byte, std::uint64_t size, std::uint64_t so_far) {
  seek(byte);
  std::string bytes(size, '\0');
  in_->read(bytes.data(), static_cast<std::streamsize>(size));
  return checksum_of(bytes, so_far);
}

}  // namespace carnot
