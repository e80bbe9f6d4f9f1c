#include "carnot/retrieval/dense/vector_file.h"

#include <fcntl.h>
#include <lzma.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <limits>

#include "carnot/core/base/check.h"
#include "carnot/core/base/file.h"
#include "carnot/core/kernel/dispatch.h"
#include "carnot/retrieval/bm25/index_file.h"

namespace carnot {
namespace {

struct VectorHead {
  std::array<char, 8> magic = {'c', 'a', 'r', 'n', 'o', 't', 'v', 'c'};
  std::uint32_t version = 1;
  std::uint32_t byte_order = 0x01020304;
  std::uint64_t rows = 0;
  std::uint64_t source_mark = 0;
  std::uint32_t dimensions = 0;
  std::uint32_t unused = 0;
  std::uint64_t rows_checksum = 0;  // CRC-64 of ECMA-182, as .xz has it
  std::uint64_t reserved = 0;
  std::uint64_t checksum = 0;  // of what is before it
};
static_assert(sizeof(VectorHead) == 64);

constexpr std::uint32_t kMostDimensions = 1 << 16;
constexpr std::uint64_t kMostVectors = std::numeric_limits<std::int32_t>::max();
constexpr std::size_t kWaitingBytes = std::size_t{1} << 18;
constexpr std::int64_t kTileRows = 4096;

std::uint64_t vector_checksum(const void* bytes, std::size_t size, std::uint64_t so_far = 0) {
  return ::lzma_crc64(static_cast<const std::uint8_t*>(bytes), size, so_far);
}

std::uint64_t head_checksum(const VectorHead& head) { return vector_checksum(&head, offsetof(VectorHead, checksum)); }

std::uint64_t file_bytes(std::uint64_t rows, std::uint64_t dimensions) {
  return sizeof(VectorHead) + rows * dimensions * sizeof(float);
}

bool write_whole(int file, const char* bytes, std::size_t size, std::uint64_t at) {
  while (size > 0) {
    const ssize_t written = ::pwrite(file, bytes, size, static_cast<off_t>(at));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes += written;
    at += static_cast<std::uint64_t>(written);
    size -= static_cast<std::size_t>(written);
  }
  return true;
}

/// `best` is a heap whose first hit is the worst.
void keep_if_among_best(std::vector<SearchHit>& best, std::size_t k, const SearchHit& hit) {
  if (best.size() < k) {
    best.push_back(hit);
  } else {
    if (k == 0 || !is_nearer(hit, best.front())) return;
    std::pop_heap(best.begin(), best.end(), is_nearer);
    best.back() = hit;
  }
  std::push_heap(best.begin(), best.end(), is_nearer);
}

}  // namespace

float inner_product(std::span<const float> a, std::span<const float> b) {
  CARNOT_CHECK_EQ(a.size(), b.size());
  const float sum = kernel::kernel_table<float>().dot(std::ssize(a), a.data(), b.data());
  return std::isnan(sum) ? std::numeric_limits<float>::lowest() : sum;
}

bool is_nearer(const SearchHit& a, const SearchHit& b) {
  return a.score != b.score ? a.score > b.score : a.document < b.document;
}

Result<std::shared_ptr<const VectorFile>> VectorFile::open(const std::filesystem::path& path) {
  std::shared_ptr<VectorFile> file(new VectorFile(path));
  CARNOT_RETURN_IF_ERROR(file->map());
  return std::shared_ptr<const VectorFile>(std::move(file));
}

VectorFile::~VectorFile() {
  if (start_ != nullptr) ::munmap(const_cast<char*>(start_), bytes_);
}

Status VectorFile::map() {
  CARNOT_ASSIGN_OR_RETURN(file_, open_regular_file(path_));
  struct stat info{};
  if (::fstat(file_.get(), &info) != 0) return system_error(path_, "cannot read");
  const std::string name = path_.string();
  bytes_ = static_cast<std::uint64_t>(info.st_size);
  if (bytes_ < sizeof(VectorHead)) return Error{name + ": is not a file of vectors"};
  void* start = ::mmap(nullptr, bytes_, PROT_READ, MAP_SHARED, file_.get(), 0);
  if (start == MAP_FAILED) return system_error(path_, "cannot map into memory");
  start_ = static_cast<const char*>(start);
  const auto& head = *reinterpret_cast<const VectorHead*>(start_);
  const VectorHead expected;
  if (head.magic != expected.magic) return Error{name + ": is not a file of vectors"};
  if (head.byte_order != expected.byte_order) return Error{name + ": was made on a machine with another byte order"};
  if (head.version != expected.version)
    return Error{name + ": has version " + std::to_string(head.version) + ", expected " +
                 std::to_string(expected.version)};
  if (head.checksum != head_checksum(head)) return Error{name + ": damaged: the head"};
  if (head.dimensions == 0 || head.dimensions > kMostDimensions || head.rows > kMostVectors)
    return Error{name + ": damaged: its sizes"};
  if (const std::uint64_t needed = file_bytes(head.rows, head.dimensions); bytes_ != needed)
    return Error{name + ": holds " + std::to_string(bytes_) + " of " + std::to_string(needed) +
                 " bytes: it was cut short or written into"};
  rows_ = reinterpret_cast<const float*>(start_ + sizeof(VectorHead));
  num_rows_ = static_cast<std::int64_t>(head.rows);
  dimensions_ = static_cast<int>(head.dimensions);
  source_mark_ = head.source_mark;
  rows_checksum_ = head.rows_checksum;
  return Done{};
}

void VectorFile::check_size() const {
  struct stat info{};
  if (::fstat(file_.get(), &info) == 0 && static_cast<std::uint64_t>(info.st_size) >= bytes_) return;
  throw DamagedIndex(path_.string() + ": was cut short while it was open");
}

std::span<const float> VectorFile::row(std::int64_t number) const {
  CARNOT_CHECK(number >= 0 && number < num_rows_, std::to_string(number));
  check_size();
  return {rows_ + number * dimensions_, static_cast<std::size_t>(dimensions_)};
}

std::vector<std::vector<SearchHit>> VectorFile::search(std::span<const std::vector<float>> queries, int k,
                                                       ThreadPool& threads) const {
  CARNOT_CHECK_GE(k, 0);
  check_size();
  const std::int64_t tiles = (num_rows_ + kTileRows - 1) / kTileRows;
  const auto count = static_cast<std::size_t>(k);
  std::vector<std::vector<std::vector<SearchHit>>> found(static_cast<std::size_t>(tiles));  // by tile and query
  threads.run(tiles, [&](std::int64_t tile) {
    auto& best = found[static_cast<std::size_t>(tile)];
    best.resize(queries.size());
    const std::int64_t end = std::min(num_rows_, (tile + 1) * kTileRows);
    for (std::int64_t i = tile * kTileRows; i < end; ++i) {
      const std::span<const float> row(rows_ + i * dimensions_, static_cast<std::size_t>(dimensions_));
      for (std::size_t q = 0; q < queries.size(); ++q)
        keep_if_among_best(best[q], count, {.document = static_cast<int>(i), .score = inner_product(queries[q], row)});
    }
  });
  std::vector<std::vector<SearchHit>> best(queries.size());
  for (const auto& of_tile : found)
    for (std::size_t q = 0; q < queries.size(); ++q)
      for (const SearchHit& hit : of_tile[q]) keep_if_among_best(best[q], count, hit);
  for (auto& hits : best) std::ranges::sort(hits, is_nearer);
  return best;
}

Status VectorFile::verify() const {
  check_size();
  if (vector_checksum(rows_, bytes_ - sizeof(VectorHead)) == rows_checksum_) return Done{};
  return Error{path_.string() + ": damaged: the vectors"};
}

Result<VectorFileWriter> VectorFileWriter::open(const std::filesystem::path& file, int dimensions,
                                                std::uint64_t source_mark) {
  CARNOT_CHECK(dimensions > 0 && dimensions <= static_cast<int>(kMostDimensions), std::to_string(dimensions));
  CARNOT_ASSIGN_OR_RETURN(auto folder, BuildFolder::open(file));
  VectorFileWriter writer(std::move(folder));
  writer.file_ = file;
  writer.dimensions_ = dimensions;
  writer.source_mark_ = source_mark;
  const auto path = writer.rows_path();
  writer.descriptor_ = Descriptor(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (!writer.descriptor_.is_open()) return system_error(path, "cannot write");
  struct stat info{};
  if (::fstat(writer.descriptor_.get(), &info) != 0) return system_error(path, "cannot read");
  const auto held = static_cast<std::uint64_t>(info.st_size);
  const VectorHead expected;
  VectorHead head;
  const bool is_whole = ::pread(writer.descriptor_.get(), &head, sizeof head, 0) == ssize_t{sizeof head} &&
                        head.magic == expected.magic && head.version == expected.version &&
                        head.byte_order == expected.byte_order && head.checksum == head_checksum(head) &&
                        head.rows <= kMostVectors && head.dimensions <= kMostDimensions &&
                        held >= file_bytes(head.rows, head.dimensions);
  if (is_whole && head.rows > 0) {
    if (head.source_mark != source_mark || head.dimensions != static_cast<std::uint32_t>(dimensions))
      return Error{writer.folder_.path().string() + ": holds " + std::to_string(head.rows) +
                   " vectors of other passages or of another encoder; remove it, and they are made again"};
    writer.num_rows_ = static_cast<std::int64_t>(head.rows);
    writer.rows_checksum_ = head.rows_checksum;
  }
  const auto kept = file_bytes(static_cast<std::uint64_t>(writer.num_rows_), static_cast<std::uint64_t>(dimensions));
  if (::ftruncate(writer.descriptor_.get(), static_cast<off_t>(kept)) != 0) return system_error(path, "cannot write");
  return writer;
}

Status VectorFileWriter::add(std::span<const float> row) {
  CARNOT_CHECK_EQ(row.size(), static_cast<std::size_t>(dimensions_));
  waiting_.insert(waiting_.end(), row.begin(), row.end());
  return waiting_.size() * sizeof(float) < kWaitingBytes ? Status(Done{}) : sync();
}

Status VectorFileWriter::sync() {
  const std::size_t bytes = waiting_.size() * sizeof(float);
  const auto at = file_bytes(static_cast<std::uint64_t>(num_rows_), static_cast<std::uint64_t>(dimensions_));
  const auto write = [&](const void* what, std::size_t size, std::uint64_t place) -> Status {
    if (write_whole(descriptor_.get(), static_cast<const char*>(what), size, place) &&
        ::fdatasync(descriptor_.get()) == 0)
      return Done{};
    return system_error(rows_path(), "cannot write");
  };
  CARNOT_RETURN_IF_ERROR(write(waiting_.data(), bytes, at));
  rows_checksum_ = vector_checksum(waiting_.data(), bytes, rows_checksum_);
  num_rows_ += std::ssize(waiting_) / dimensions_;
  waiting_.clear();
  VectorHead head{.rows = static_cast<std::uint64_t>(num_rows_),
                  .source_mark = source_mark_,
                  .dimensions = static_cast<std::uint32_t>(dimensions_),
                  .rows_checksum = rows_checksum_};
  head.checksum = head_checksum(head);
  return write(&head, sizeof head, 0);
}

Status VectorFileWriter::finish() {
  CARNOT_RETURN_IF_ERROR(sync());
  if (::rename(rows_path().c_str(), file_.c_str()) != 0) return system_error(file_, "cannot write");
  CARNOT_RETURN_IF_ERROR(sync_path(file_.has_parent_path() ? file_.parent_path() : std::filesystem::path(".")));
  folder_.remove();
  return Done{};
}

}  // namespace carnot
