#include "carnot/retrieval/bm25/passage_source.h"

#include <lzma.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "carnot/core/base/file.h"

namespace carnot {
namespace {

constexpr std::size_t kMarkBytes = 1 << 16;  // of the source's beginning and of its end

}  // namespace

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
