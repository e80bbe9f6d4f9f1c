#include "carnot/core/base/json.h"
#include "carnot/core/base/strings.h"
#include "carnot/core/subprocess/peer.h"
#include "carnot/retrieval/retriever/retriever.h"
#include "carnot/tools/search/passages.h"
#include "carnot/tools/toolbox/toolbox.h"

namespace carnot {
namespace {

constexpr int kUsualPassages = 3;

class RetrieverSearch final : public Tool {
 public:
  explicit RetrieverSearch(std::shared_ptr<const Retriever> retriever) : retriever_(std::move(retriever)) {}

  const ToolDescription& description() const override { return description_; }

  ToolResult call(std::string_view arguments, Deadline deadline) override {
    const auto given = parse_json_object(arguments, "arguments").value();
    const std::vector<std::string> queries{given.at("query").get<std::string>()};
    const auto found = retrieve(queries, given.value<int>("limit", kUsualPassages), deadline);
    if (found.empty()) return {.text = "Nothing was found.", .status = "empty"};
    std::string text;
    for (std::size_t i = 0; i < found.size(); ++i)
      text += (i > 0 ? "\n\n[" : "[") + std::to_string(i + 1) + "] " + found[i].contents;
    return {.text = text};
  }

 private:
  RetrievedPassages retrieve(const std::vector<std::string>& queries, int count, Deadline deadline) const {
    try {
      return retriever_->retrieve(queries, count, deadline).at(0);
    } catch (const RetrieverFailure& failure) {
      throw PeerFailure(failure.what());
    }
  }

  ToolDescription description_ = search_description();
  std::shared_ptr<const Retriever> retriever_;
};

}  // namespace

std::unique_ptr<ToolKind> make_retriever_search_kind() {
  return each_entry([](const std::string& entry) -> Result<std::shared_ptr<Tool>> {
    CARNOT_ASSIGN_OR_RETURN(auto retriever, open_retriever(std::string(trim(std::string_view(entry).substr(7)))));
    return std::shared_ptr<Tool>(std::make_shared<RetrieverSearch>(std::move(retriever)));
  });
}

}  // namespace carnot
