#include "carnot/core/subprocess/peer.h"
#include "carnot/tools/mcp/transport.h"

namespace carnot {
namespace {

constexpr std::size_t kLongestLine = std::size_t{16} << 20;

class StdioTransport final : public McpTransport {
 public:
  explicit StdioTransport(std::unique_ptr<LineProgram> program) : program_(std::move(program)) {}

  void open(McpHandlers handlers, Deadline) override {
    program_->listen({.on_line =
                          [handlers](std::string_view line, bool whole, const std::string& where) {
                            if (whole)
                              (void)handlers.on_message(line, where);
                            else
                              handlers.on_end(where + ": " + std::to_string(kLongestLine) + " bytes without an end");
                          },
                      .on_end = handlers.on_end});
  }

  void send(const std::string& message, std::string_view, std::string_view, Deadline deadline) override {
    if (!program_->write(message, deadline)) throw PeerFailure(label() + " takes no more requests");
  }

  void close() override { program_->close(); }
  void kill() override { program_->kill(); }
  std::string label() const override { return program_->label(); }
  std::string last_words() const override { return program_->last_words(); }

 private:
  std::unique_ptr<LineProgram> program_;
};

}  // namespace

std::unique_ptr<McpTransport> start_stdio_transport(const std::string& name, const ProgramCall& call) {
  auto program = LineProgram::start(name, call, kLongestLine);
  if (!program) throw PeerFailure(program.error().message);
  return std::make_unique<StdioTransport>(std::move(program).value());
}

}  // namespace carnot
