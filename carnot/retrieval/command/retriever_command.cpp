#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iomanip>
#include <ostream>
#include <thread>

#include "carnot/core/base/log.h"
#include "carnot/core/base/thread_pool.h"
#include "carnot/core/cli/command.h"
#include "carnot/core/cli/stop_signals.h"
#include "carnot/http/server.h"
#include "carnot/retrieval/dense/dense_retriever.h"
#include "carnot/retrieval/retriever/messages.h"

namespace carnot {
namespace {

namespace fs = std::filesystem;

/// Search-R1's retrieval server over a file of passages.
class RetrieverCommand final : public Command {
 public:
  void declare(OptionParser& take) override {
    take.operand("FILE", file_,
                 "passages, JSON lines with `contents`, or with `title` and `text`; or an index (.bm25) of them",
                 Presence::Required);
    take.count("--port", "N", port_, 0, "to listen on; 0: any that is free; default: 8000");
    take.text("--host", "ADDRESS", host_,
              "to listen on; default: 127.0.0.1. Anyone who reaches another address can search");
    take.count("--topk", "N", topk_, 1, "passages for a request that does not say how many; default: 3");
    take.count("--threads", "N", build_.threads, 1,
               "that build the index, and share the queries of a request; default: 1");
    take.word("--words", "W", words_, kIndexWords,
              "english: stemmed, without stop words, as Lucene's analyzer has it; default: english");
    take.number("--k1", "X", build_.k1, at_least(0), "how slowly repeated words saturate; default: 0.9");
    take.number("--b", "X", build_.b, between(0, 1), "how much long passages are discounted; default: 0.4");
    take.count("--memory", "MB", memory_mb_, 1, "for words that are collected while the index is built; default: 1024");
    take.text("--dense", "MODEL", dense_,
              "search by the vectors of a sentence encoder (BERT): a folder of sentence-transformers, or its id on the "
              "hub");
    take.flag("--approximate", dense_options_.approximate,
              "with --dense: search a graph of neighbours instead of all vectors");
    take.text("--query-prefix", "TEXT", dense_options_.query_prefix, "with --dense: before each query; E5: 'query: '");
    take.text("--passage-prefix", "TEXT", dense_options_.passage_prefix,
              "with --dense: before each passage; E5: 'passage: '");
    take.flag("--build", only_build_,
              "build FILE.bm25, whatever the size of FILE, and what else the search needs, and end");
    take.flag("--verify", verify_, "compare the checksums of what was built before it is used");
  }

  Exit run(const Console& console) override {
    build_.words = words_ == kIndexWords[0] ? IndexWords::English : IndexWords::Alphanumeric;
    if (build_.threads > kMaxThreads)
      return report(console, Error{"--threads: expected a number from 1 to " + std::to_string(kMaxThreads)},
                    Exit::Usage);
    if (dense_.empty() &&
        (dense_options_.approximate || !dense_options_.query_prefix.empty() || !dense_options_.passage_prefix.empty()))
      return report(console, Error{"--approximate, --query-prefix and --passage-prefix: expected --dense too"},
                    Exit::Usage);
    build_.memory = static_cast<std::size_t>(memory_mb_) << 20;
    catch_stop_signals(StopLeaves::Nothing);
    log_to_console(LogLevel::Info);
    return ended(only_build_ || verify_ || !dense_.empty() ? build(console) : serve(console), console);
  }

 private:
  /// True at most every few seconds.
  bool is_time_to_report() {
    constexpr std::chrono::seconds kBetween{5};
    const auto time = std::chrono::steady_clock::now();
    if (time - reported_ < kBetween) return false;
    reported_ = time;
    return true;
  }

  /// Reports how far a build is, every few seconds; a signal ends it, and it can continue from there.
  OnIndexProgress progress_on(const Console& console) {
    return [this, &console](const IndexProgress& now) {
      if (now.merging) {
        console.err << "carnot: " << now.passages << " passages read; the runs are merged" << std::endl;
      } else if (is_time_to_report()) {
        const double share =
            static_cast<double>(now.bytes) / static_cast<double>(std::max<std::uint64_t>(1, now.all_bytes));
        console.err << "carnot: " << now.passages << " passages, " << std::fixed << std::setprecision(1) << 100 * share
                    << " %" << std::endl;
      }
      return !stop_requested();
    };
  }

  Status build(const Console& console) {
    TextEncoder encoder;
    if (!dense_.empty()) {  // first: an index may take long
      set_num_threads(build_.threads);
      auto opened = open_text_encoder(dense_);
      if (!opened) return Error{"--dense: " + opened.error().message};
      encoder = std::move(opened).value();
    }
    CARNOT_ASSIGN_OR_RETURN(const auto index, open_or_build_index(file_, build_, progress_on(console)));
    if (verify_) CARNOT_RETURN_IF_ERROR(index->verify());
    std::shared_ptr<const Retriever> retriever;
    if (dense_.empty()) {
      retriever = make_index_retriever(index, build_.threads);
    } else {
      CARNOT_ASSIGN_OR_RETURN(auto opened, open_dense(index, std::move(encoder), console));
      retriever = std::move(opened);
    }
    if (!only_build_) return serve_over(std::move(retriever), console);
    console.out << index->num_passages() << " passages, " << index->num_terms() << " words, " << index->bytes()
                << " bytes" << std::endl;
    if (!dense_.empty()) console.out << "vectors: " << fs::file_size(vectors_path_of(index_file())) << " bytes\n";
    if (dense_options_.approximate)
      console.out << "graph: " << fs::file_size(graph_path_of(index_file())) << " bytes\n";
    return Done{};
  }

  fs::path index_file() const { return index_path_of(file_); }

  Result<std::shared_ptr<const Retriever>> open_dense(std::shared_ptr<const Bm25File> index, TextEncoder encoder,
                                                      const Console& console) {
    dense_options_.verify = verify_;
    dense_options_.threads = build_.threads;
    reported_ = {};  // the first passages tell how long all of them will take
    return open_dense_retriever(
        std::move(index), index_file(), std::move(encoder), dense_options_, [this, &console](const DenseProgress& now) {
          if (is_time_to_report())
            console.err << "carnot: " << now.passages << " of " << now.all_passages
                        << (now.graph ? " passages in the graph" : " passages encoded") << std::endl;
          return !stop_requested();
        });
  }

  Status serve(const Console& console) {
    CARNOT_ASSIGN_OR_RETURN(auto retriever, open_retriever(file_.string(), build_, progress_on(console)));
    return serve_over(std::move(retriever), console);
  }

  Status serve_over(std::shared_ptr<const Retriever> retriever, const Console& console) const {
    if (port_ > 65535) return Error{"--port: expected a number from 0 to 65535, found " + std::to_string(port_)};
    auto server =
        HttpServer::start({.host = host_,
                           .port = port_,
                           .error_body = [](int, const std::string& message) { return retriever_error(message); }},
                          retriever_handler(std::move(retriever), topk_));
    if (!server) return server.error();
    console.out << "http://" << (host_.find(':') == std::string::npos ? host_ : "[" + host_ + "]") << ":"
                << (*server)->port() << "/retrieve" << std::endl;
    while (!stop_requested()) std::this_thread::sleep_for(std::chrono::milliseconds(50));
    (*server)->stop();
    return Done{};
  }

  fs::path file_;
  std::string host_ = "127.0.0.1";
  int port_ = 8000;
  int topk_ = 3;
  int memory_mb_ = 1024;
  std::string words_ = kIndexWords[0];
  IndexBuildOptions build_;
  std::string dense_;
  DenseOptions dense_options_;
  bool only_build_ = false;
  bool verify_ = false;
  std::chrono::steady_clock::time_point reported_{};
};

}  // namespace

CommandEntry retriever_entry() {
  return {.name = "retriever",
          .arguments = "FILE",
          .summary = "answer Search-R1's retrieval API over a file of passages",
          .example = "passages.jsonl --port 8000",
          .make = make_command<RetrieverCommand>};
}

}  // namespace carnot
