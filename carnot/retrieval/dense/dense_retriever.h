// retrieval/dense/dense_retriever.h -- finds passages by the vectors of a sentence encoder, exactly or approximately.
//
// The texts are those of a BM25 index; their vectors lie next to it, as INDEX.vectors, and for an approximate search a
// graph over them as INDEX.graph. Both are made once.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "carnot/core/base/result.h"
#include "carnot/retrieval/bm25/index_file.h"
#include "carnot/retrieval/retriever/retriever.h"

namespace carnot {

/// What turns texts into vectors, as the rooms below LibTorch see it. Sentence encoders are computed in rooms above
/// this one (hf/sentence_encoder_folder.h): a program that links them says so once, when it starts; from then on
/// whoever searches by vectors opens them by name.
struct TextEncoder {
  /// A vector for each text. Called by one thread at a time.
  std::function<std::vector<std::vector<float>>(std::span<const std::string>)> encode{};
  int dimensions = 0;
  std::string mark{};  ///< tells what it computes from what others compute
};

/// Opens an encoder by the name of its folder, or by its id on the hub.
using TextEncoderOpener = std::function<Result<TextEncoder>(const std::string& model)>;

/// Replaces the opener and returns the one before. Called while no one opens encoders.
TextEncoderOpener set_text_encoder_opener(TextEncoderOpener opener);

/// The error says what is wrong with the folder, or that this program has no opener.
Result<TextEncoder> open_text_encoder(const std::string& model);

struct DenseOptions {
  std::string query_prefix{};  ///< before every query; E5 has "query: "
  std::string passage_prefix{};
  bool approximate = false;
  bool verify = false;  ///< compare the checksum of the vectors; that of a graph is compared whenever it is opened
  int threads = 1;      ///< of a search: they share the rows, or the queries of one call
};

struct DenseProgress {
  std::int64_t passages = 0;  ///< encoded, or added to the graph
  std::int64_t all_passages = 0;
  bool graph = false;  ///< all are encoded; they are added to the graph
};

/// Called now and then; false stops. What was made stays, and the next call continues from there.
using OnDenseProgress = std::function<bool(const DenseProgress&)>;

std::filesystem::path vectors_path_of(const std::filesystem::path& index_file);
std::filesystem::path graph_path_of(const std::filesystem::path& index_file);

/// Over the passages of `index`, whose file is `index_file`. The error names the file that is damaged, that cannot be
/// written, or whose vectors are of other passages or another encoder; or it says that the call was stopped.
Result<std::shared_ptr<const Retriever>> open_dense_retriever(std::shared_ptr<const Bm25File> index,
                                                              const std::filesystem::path& index_file,
                                                              TextEncoder encoder, const DenseOptions& options,
                                                              const OnDenseProgress& on_progress = {});

}  // namespace carnot
