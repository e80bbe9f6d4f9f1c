#include "carnot/tools/toolbox/tool_kind.h"
#include "carnot/tools/web/web_tools.h"

namespace carnot {
namespace {

class WebKind final : public ToolKind {
 public:
  void fields(FieldVisitor& visit) override {
    section(visit, "web", options_, "what the tools `search web` and `browse` ask (docs/web_search.md)");
  }

  /// Both tools share a cache.
  void open(std::span<const ToolEntry> entries, const ToolTimes&, OpenedTools& opened) const override {
    const auto web = Web::open(options_);
    if (!web) return opened.problems.push_back(web.error().message);
    for (const ToolEntry& entry : entries)
      opened.add(entry, entry.text == "browse" ? make_browse(*web) : make_web_search(*web));
  }

 private:
  WebOptions options_;
};

}  // namespace

std::unique_ptr<ToolKind> make_web_kind() { return std::make_unique<WebKind>(); }

}  // namespace carnot
