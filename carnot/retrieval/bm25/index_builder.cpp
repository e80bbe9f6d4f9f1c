#include "carnot/retrieval/bm25/index_builder.h"

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <fstream>
#include <optional>

#include "carnot/core/base/file.h"
#include "carnot/core/base/json.h"
#include "carnot/core/base/limits.h"
#include "carnot/core/base/log.h"
#include "carnot/core/base/strings.h"
#include "carnot/core/base/thread_pool.h"
#include "carnot/retrieval/bm25/bm25.h"
#include "carnot/retrieval/bm25/build_folder.h"
#include "carnot/retrieval/bm25/index_mapping.h"
#include "carnot/retrieval/bm25/passage_source.h"
#include "carnot/retrieval/bm25/posting_runs.h"
#include "carnot/retrieval/bm25/postings_block.h"

namespace carnot {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kBatchLines = 4096;         // read, then split into words together
constexpr std::size_t kBatchBytes = 64 << 20;     // or fewer lines, where they are long
constexpr std::size_t kMostIndexed = 2147483000;  // positions are ints

/// How far a build has come; what is not in it is done again.
struct BuildState {
  std::uint64_t source_byte = 0;
  std::uint64_t source_line = 0;
  std::uint64_t passages = 0;
  std::uint64_t words = 0;
  std::uint64_t texts_bytes = 0;
  std::uint64_t texts_checksum = 0;
  std::uint64_t runs = 0;
};

/// A line of the source, and what is made of it on some thread.
struct ReadPassage {
  std::string line{};
  std::uint64_t number = 0;  // of the line, from 1 on
  std::string problem{};
  PassageRow row{};
  std::vector<CountedWord> words{};
  std::uint64_t num_words = 0;
};

class IndexBuild {
 public:
  IndexBuild(PassageSource source, fs::path index, const IndexBuildOptions& options, const OnIndexProgress& on_progress)
      : source_(std::move(source)),
        index_(std::move(index)),
        options_(options),
        on_progress_(on_progress),
        analyzer_(analyzer_of(options.words)),
        pool_(options.threads) {}

  Status run() {
    CARNOT_ASSIGN_OR_RETURN(auto folder, BuildFolder::open(index_));
    folder_ = folder.path();
    state_ = load_state();
    CARNOT_RETURN_IF_ERROR(open_files());
    CARNOT_RETURN_IF_ERROR(read_passages());
    if (state_.passages == 0) return Error{source_.name() + ": no passages"};
    if (on_progress_) (void)on_progress_(progress(true));
    CARNOT_RETURN_IF_ERROR(write_sections());
    folder.remove();
    return Done{};
  }

 private:
  fs::path run_path(std::uint64_t number) const { return folder_ / ("run." + std::to_string(number)); }

  /// What makes an earlier build this one.
  OrderedJson settings() const {
    return {{"version", kIndexVersion},
            {"source_bytes", source_.bytes()},
            {"source_mark", source_.mark()},
            {"words", kIndexWords[static_cast<std::size_t>(options_.words)]},
            {"k1", options_.k1},
            {"b", options_.b}};
  }

  BuildState load_state() const {
    const auto text = read_file(folder_ / "state.json");
    if (!text) return {};
    const auto json = parse_json_object<OrderedJson>(*text, "state.json");
    if (!json || json->value("settings", OrderedJson()) != settings()) return {};
    const auto number = [&](const char* key) {
      const auto found = json->find(key);
      return found != json->end() && found->is_number_unsigned() ? found->get<std::uint64_t>() : 0;
    };
    const BuildState state{.source_byte = number("source_byte"),
                           .source_line = number("source_line"),
                           .passages = number("passages"),
                           .words = number("words"),
                           .texts_bytes = number("texts_bytes"),
                           .texts_checksum = number("texts_checksum"),
                           .runs = number("runs")};
    return holds_what_it_says(state) ? state : BuildState{};
  }

  bool holds_what_it_says(const BuildState& state) const {
    const auto has = [&](const fs::path& file, std::uint64_t bytes) {
      std::error_code reason;
      const std::uint64_t found = fs::file_size(file, reason);
      return !reason && found >= bytes;
    };
    for (std::uint64_t i = 0; i < state.runs; ++i)
      if (!has(run_path(i), 1)) return false;
    return has(folder_ / "index", sizeof(IndexHead) + state.texts_bytes) &&
           has(folder_ / "passages", state.passages * sizeof(std::uint64_t)) &&
           has(folder_ / "lengths", state.passages) && state.source_byte <= source_.bytes();
  }

  /// Everything up to here is on the disk; then it is written down.
  Status save_state() {
    for (GrowingFile* file : {&*file_, &*passages_, &*lengths_}) CARNOT_RETURN_IF_ERROR(file->sync());
    if (!collector_.empty()) {
      CARNOT_RETURN_IF_ERROR(collector_.write_run(run_path(state_.runs)));
      ++state_.runs;
    }
    state_.source_byte = source_.at();
    const OrderedJson json = {{"settings", settings()},
                              {"source_byte", state_.source_byte},
                              {"source_line", state_.source_line},
                              {"passages", state_.passages},
                              {"words", state_.words},
                              {"texts_bytes", state_.texts_bytes},
                              {"texts_checksum", state_.texts_checksum},
                              {"runs", state_.runs}};
    return write_file_atomically(folder_ / "state.json", json.dump(2) + "\n");
  }

  Status open_files() {
    if (state_.passages > 0)
      log_info(index_.string() + ": continues after " + std::to_string(state_.passages) + " passages");
    source_.seek(state_.source_byte);
    const auto open = [&](std::optional<GrowingFile>& file, const char* name, std::uint64_t size) -> Status {
      CARNOT_ASSIGN_OR_RETURN(auto opened, GrowingFile::open(folder_ / name, size));
      file.emplace(std::move(opened));
      return Done{};
    };
    CARNOT_RETURN_IF_ERROR(open(file_, "index", sizeof(IndexHead) + state_.texts_bytes));
    CARNOT_RETURN_IF_ERROR(open(passages_, "passages", state_.passages * sizeof(std::uint64_t)));
    return open(lengths_, "lengths", state_.passages);
  }

  Status read_passages() {
    while (source_.at() < source_.bytes()) {
      std::vector<ReadPassage> batch;
      CARNOT_RETURN_IF_ERROR(read_batch(batch));
      pool_.run(static_cast<std::int64_t>(batch.size()),
                [&](std::int64_t i) { split(batch[static_cast<std::size_t>(i)]); });
      CARNOT_RETURN_IF_ERROR(take_batch(batch));
      if (collector_.bytes() >= options_.memory) CARNOT_RETURN_IF_ERROR(save_state());
      if (on_progress_ && !on_progress_(progress(false))) {
        CARNOT_RETURN_IF_ERROR(save_state());
        return Error{index_.string() + ": stopped after " + std::to_string(state_.passages) +
                     " passages; the same call continues from there"};
      }
    }
    return save_state();
  }

  IndexProgress progress(bool merging) const {
    return {.bytes = source_.at(), .all_bytes = source_.bytes(), .passages = state_.passages, .merging = merging};
  }

  Status read_batch(std::vector<ReadPassage>& batch) {
    std::size_t bytes = 0;
    while (batch.size() < kBatchLines && bytes < kBatchBytes && source_.at() < source_.bytes()) {
      ReadPassage next;
      const auto more = source_.next(next.line);
      if (!more) return Error{source_.name() + ": " + more.error().message};
      if (!*more) return Error{source_.name() + ": became shorter while it was read"};
      next.number = ++state_.source_line;
      bytes += next.line.size();
      if (!trim(next.line).empty()) batch.push_back(std::move(next));
    }
    return Done{};
  }

  void split(ReadPassage& passage) const {
    auto row =
        parse_passage_row(passage.line, passage.number - 1, source_.name() + ":" + std::to_string(passage.number));
    if (!row) {
      passage.problem = row.error().message;
      return;
    }
    passage.row = std::move(row).value();
    auto words = analyzer_(passage.row.contents);
    passage.num_words = words.size();
    passage.words = count_words(std::move(words));
  }

  Status take_batch(const std::vector<ReadPassage>& batch) {
    std::vector<std::string> problems;
    for (const ReadPassage& passage : batch)
      if (!passage.problem.empty() && problems.size() < kMaxProblems) problems.push_back(passage.problem);
    if (!problems.empty()) return join_errors(problems);
    if (state_.passages + batch.size() > kMostIndexed)
      return Error{source_.name() + ": more than " + std::to_string(kMostIndexed) + " passages"};
    for (const ReadPassage& passage : batch) {
      passages_->write_value(state_.texts_bytes);
      const auto id_length = static_cast<std::uint32_t>(passage.row.id.size());
      write_text({reinterpret_cast<const char*>(&id_length), sizeof id_length});
      write_text(passage.row.id);
      write_text(passage.row.contents);
      constexpr std::uint64_t kLongest = INT32_MAX;
      lengths_->write_value(lucene_length_code(static_cast<int>(std::min(passage.num_words, kLongest))));
      collector_.add(static_cast<std::uint32_t>(state_.passages), passage.words);
      state_.words += passage.num_words;
      ++state_.passages;
    }
    return Done{};
  }

  void write_text(std::string_view bytes) {
    file_->write(bytes);
    state_.texts_bytes += bytes.size();
    state_.texts_checksum = checksum_of(bytes, state_.texts_checksum);
  }

  // The second half: sections after the texts.

  Status write_sections() {
    head_ = {.words = static_cast<std::uint32_t>(options_.words),
             .k1 = static_cast<float>(options_.k1),
             .b = static_cast<float>(options_.b),
             .num_passages = state_.passages,
             .num_words = state_.words,
             .source_bytes = source_.bytes(),
             .source_mark = source_.mark()};
    head_.sections[kTexts] = {
        .begin = sizeof(IndexHead), .bytes = state_.texts_bytes, .checksum = state_.texts_checksum};
    passages_->write_value(state_.texts_bytes);
    CARNOT_RETURN_IF_ERROR(append_section(kPassages, *passages_));
    CARNOT_RETURN_IF_ERROR(append_section(kLengths, *lengths_));
    CARNOT_RETURN_IF_ERROR(write_postings());
    return finish();
  }

  void begin_section(IndexSection which) {
    file_->write_zeros_to(kIndexAlignment);
    head_.sections[which].begin = file_->size();
  }

  void write_section(IndexSection which, std::string_view bytes) {
    file_->write(bytes);
    head_.sections[which].bytes += bytes.size();
    head_.sections[which].checksum = checksum_of(bytes, head_.sections[which].checksum);
  }

  /// Copies what was collected in its own file.
  Status append_section(IndexSection which, GrowingFile& from) {
    CARNOT_RETURN_IF_ERROR(from.sync());
    begin_section(which);
    std::ifstream in(from.path(), std::ios::binary);
    std::string piece(std::size_t{1} << 20, '\0');
    while (in) {
      in.read(piece.data(), static_cast<std::streamsize>(piece.size()));
      write_section(which, std::string_view(piece).substr(0, static_cast<std::size_t>(in.gcount())));
    }
    if (head_.sections[which].bytes != from.size()) return Error{from.path().string() + ": cannot be read"};
    return Done{};
  }

  Status write_postings() {
    CARNOT_ASSIGN_OR_RETURN(const auto lengths, read_file(lengths_->path()));
    const auto inverse_norm = lucene_inverse_norms(head_.k1, head_.b, head_.mean_length());
    auto words = GrowingFile::open(folder_ / "words", 0), terms = GrowingFile::open(folder_ / "terms", 0),
         blocks = GrowingFile::open(folder_ / "blocks", 0);
    for (const auto* file : {&words, &terms, &blocks})
      if (!file->ok()) return file->error();

    begin_section(kPostings);
    IndexTerm term;
    const auto write_word = [&](std::string_view word, const std::vector<WordPosting>& postings) -> Status {
      if (postings.empty() || postings.back().document >= head_.num_passages)
        return Error{folder_.string() + ": damaged: a run; remove the folder, and the build starts over"};
      term.num_documents = postings.size();
      terms->write_value(term);
      words->write(word);
      ++head_.num_terms;
      std::string bytes;
      PostingsBlock block;
      std::int64_t before = -1;
      for (std::size_t begin = 0; begin < postings.size(); begin += kBlockPostings) {
        IndexBlock place{.offset = static_cast<std::uint32_t>(bytes.size())};
        block.size = std::min(kBlockPostings, postings.size() - begin);
        for (std::size_t i = 0; i < block.size; ++i) {
          const auto& [document, count] = postings[begin + i];
          block.documents[i] = document;
          block.counts[i] = count;
          const float norm = inverse_norm[static_cast<unsigned char>(lengths[document])];
          place.most = std::max(place.most, static_cast<float>(count) * norm);
        }
        pack_postings(block, before, bytes);
        before = place.last_document = block.documents[block.size - 1];
        blocks->write_value(place);
        ++term.first_block;
      }
      if (bytes.size() > UINT32_MAX)
        return Error{index_.string() + ": the postings of \"" + std::string(word) + "\" take more than 4 GiB"};
      write_section(kPostings, bytes);
      term.word_begin += word.size();
      term.postings_begin += bytes.size();
      return Done{};
    };
    std::vector<fs::path> runs;
    for (std::uint64_t i = 0; i < state_.runs; ++i) runs.push_back(run_path(i));
    CARNOT_RETURN_IF_ERROR(merge_runs(runs, write_word));
    write_section(kPostings, std::string(kBlockPadding, '\0'));
    term.num_documents = 0;
    terms->write_value(term);
    CARNOT_RETURN_IF_ERROR(append_section(kWords, *words));
    CARNOT_RETURN_IF_ERROR(append_section(kTerms, *terms));
    return append_section(kBlocks, *blocks);
  }

  Status finish() {
    head_.file_bytes = file_->size();
    head_.checksum = checksum_of({reinterpret_cast<const char*>(&head_), offsetof(IndexHead, checksum)});
    CARNOT_RETURN_IF_ERROR(file_->sync());
    std::fstream file(file_->path(), std::ios::binary | std::ios::in | std::ios::out);
    file.write(reinterpret_cast<const char*>(&head_), sizeof head_);
    file.close();
    if (!file) return system_error(file_->path(), "cannot write");
    CARNOT_RETURN_IF_ERROR(sync_path(file_->path()));
    if (::rename(file_->path().c_str(), index_.c_str()) != 0) return system_error(index_, "cannot write");
    return sync_path(index_.has_parent_path() ? index_.parent_path() : fs::path("."));
  }

  PassageSource source_;
  fs::path index_;
  fs::path folder_{};  // of the build
  IndexBuildOptions options_;
  const OnIndexProgress& on_progress_;
  Analyzer analyzer_;
  ThreadPool pool_;
  BuildState state_{};
  PostingCollector collector_{};
  std::optional<GrowingFile> file_{};      // becomes the index: head and texts
  std::optional<GrowingFile> passages_{};  // the section, without its last number
  std::optional<GrowingFile> lengths_{};
  IndexHead head_{};
};

}  // namespace

fs::path index_path_of(const fs::path& file) {
  return file.extension() == ".bm25" ? file : fs::path(file.string() + ".bm25");
}

Status build_index_file(const fs::path& source, const fs::path& index, const IndexBuildOptions& options,
                        const OnIndexProgress& on_progress) {
  CARNOT_ASSIGN_OR_RETURN(auto opened, PassageSource::open(source));
  return IndexBuild(std::move(opened), index, options, on_progress).run();
}

Result<std::shared_ptr<const Bm25File>> open_or_build_index(const fs::path& file, const IndexBuildOptions& options,
                                                            const OnIndexProgress& on_progress) {
  if (file.extension() == ".bm25") return Bm25File::open(file);
  CARNOT_ASSIGN_OR_RETURN(auto source, PassageSource::open(file));
  const fs::path index = index_path_of(file);
  if (fs::exists(index)) {
    auto opened = Bm25File::open(index);
    if (!opened) return Error{opened.error().message + "; remove it, and it is rebuilt"};
    if ((*opened)->is_from(source.bytes(), source.mark()) &&
        (*opened)->has_settings(options.words, options.k1, options.b))
      return opened;
    log_info(index.string() + ": was built from another version of " + file.string() + " or otherwise; rebuilding");
  }
  CARNOT_RETURN_IF_ERROR(IndexBuild(std::move(source), index, options, on_progress).run());
  return Bm25File::open(index);
}

}  // namespace carnot
