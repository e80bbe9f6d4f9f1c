#include "carnot/retrieval/bm25/posting_runs.h"

#include <algorithm>
#include <fstream>

#include "carnot/core/base/check.h"
#include "carnot/core/base/file.h"

namespace carnot {
namespace {

constexpr std::size_t kBytesPerWord = 160;  // of an entry of the table, next to the word and its postings
constexpr std::size_t kRunBuffer = std::size_t{1} << 20;

void append_varint(std::string& bytes, std::uint32_t value) {
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  bytes += static_cast<char>(value);
}

bool take_varint(std::string_view& bytes, std::uint32_t& value) {
  std::uint64_t all = 0;
  for (int shift = 0; shift < 35 && !bytes.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(bytes.front());
    bytes.remove_prefix(1);
    all |= std::uint64_t{byte & 0x7FU} << shift;
    if (byte >= 0x80) continue;
    value = static_cast<std::uint32_t>(all);
    return all <= UINT32_MAX;
  }
  return false;
}

struct RunEntry {
  std::uint32_t word_length = 0;
  std::uint32_t documents = 0;
  std::uint64_t postings_length = 0;
};

/// Reads a run word by word.
class RunReader {
 public:
  explicit RunReader(std::filesystem::path path) : path_(std::move(path)), buffer_(kRunBuffer) {
    in_.rdbuf()->pubsetbuf(buffer_.data(), static_cast<std::streamsize>(buffer_.size()));
    in_.open(path_, std::ios::binary);
    std::error_code ignored;
    left_ = std::filesystem::file_size(path_, ignored);
  }

  /// Goes to the next word; false at the end.
  Result<bool> next() {
    if (left_ == 0 && in_) return false;
    RunEntry entry;
    if (!take(&entry, sizeof entry) || entry.word_length > left_) return unreadable();
    word_.resize(entry.word_length);
    if (!take(word_.data(), word_.size()) || entry.postings_length > left_) return unreadable();
    bytes_.resize(entry.postings_length);
    if (!take(bytes_.data(), bytes_.size())) return unreadable();
    documents_ = entry.documents;
    return true;
  }

  const std::string& word() const { return word_; }

  Status append_postings(std::vector<WordPosting>& postings) const {
    std::string_view bytes = bytes_;
    std::uint32_t document = 0;
    for (std::uint32_t i = 0; i < documents_; ++i) {
      WordPosting posting;
      if (!take_varint(bytes, posting.document) || !take_varint(bytes, posting.count)) return unreadable();
      posting.document = document += posting.document;
      if (posting.count == 0 || (!postings.empty() && posting.document <= postings.back().document))
        return unreadable();
      postings.push_back(posting);
    }
    return Done{};
  }

 private:
  bool take(void* to, std::size_t size) {
    if (size > left_) return false;
    in_.read(static_cast<char*>(to), static_cast<std::streamsize>(size));
    left_ -= size;
    return static_cast<bool>(in_);
  }

  Error unreadable() const { return Error{path_.string() + ": cannot be read, or is damaged"}; }

  std::filesystem::path path_;
  std::vector<char> buffer_;
  std::ifstream in_{};
  std::uint64_t left_ = 0;
  std::string word_{};
  std::string bytes_{};
  std::uint32_t documents_ = 0;
};

}  // namespace

std::vector<CountedWord> count_words(std::vector<std::string> words) {
  std::ranges::sort(words);
  std::vector<CountedWord> counted;
  for (std::string& word : words) {
    if (!counted.empty() && counted.back().word == word)
      ++counted.back().count;
    else
      counted.push_back({.word = std::move(word), .count = 1});
  }
  return counted;
}

void PostingCollector::add(std::uint32_t document, const std::vector<CountedWord>& words) {
  for (const auto& [word, count] : words) {
    const auto [at, added] = words_.try_emplace(word);
    List& list = at->second;
    CARNOT_CHECK(added || document > list.last, "documents in order");
    const std::size_t before = added ? 0 : list.bytes.capacity();
    append_varint(list.bytes, document - list.last);
    append_varint(list.bytes, count);
    list.last = document;
    ++list.documents;
    bytes_ += list.bytes.capacity() - before + (added ? kBytesPerWord + word.size() : 0);
  }
}

Status PostingCollector::write_run(const std::filesystem::path& file) {
  std::vector<const std::pair<const std::string, List>*> sorted;
  for (const auto& entry : words_) sorted.push_back(&entry);
  std::ranges::sort(sorted, {}, [](const auto* entry) -> const std::string& { return entry->first; });
  std::ofstream out(file, std::ios::binary | std::ios::trunc);
  for (const auto* entry : sorted) {
    const auto& [word, list] = *entry;
    const RunEntry head{.word_length = static_cast<std::uint32_t>(word.size()),
                        .documents = list.documents,
                        .postings_length = list.bytes.size()};
    out.write(reinterpret_cast<const char*>(&head), sizeof head);
    out << word << list.bytes;
  }
  out.close();
  if (!out) return system_error(file, "cannot write");
  words_ = {};
  bytes_ = 0;
  return sync_path(file);
}

Status merge_runs(const std::vector<std::filesystem::path>& runs, const OnWord& on_word) {
  std::vector<std::unique_ptr<RunReader>> readers;
  for (const auto& run : runs) {
    auto reader = std::make_unique<RunReader>(run);
    CARNOT_ASSIGN_OR_RETURN(const auto more, reader->next());
    if (more) readers.push_back(std::move(reader));
  }
  std::vector<WordPosting> postings;
  std::string word;
  while (!readers.empty()) {
    word = (*std::ranges::min_element(readers, {}, [](const auto& reader) -> const std::string& {
             return reader->word();
           }))->word();
    postings.clear();
    for (auto& reader : readers) {
      if (reader->word() != word) continue;
      CARNOT_RETURN_IF_ERROR(reader->append_postings(postings));
      CARNOT_ASSIGN_OR_RETURN(const auto more, reader->next());
      if (!more) reader.reset();
    }
    std::erase(readers, nullptr);
    CARNOT_RETURN_IF_ERROR(on_word(word, postings));
  }
  return Done{};
}

}  // namespace carnot
