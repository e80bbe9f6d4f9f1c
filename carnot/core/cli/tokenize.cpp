#include "carnot/core/cli/command.h"
#include "carnot/core/text/tokenize_lines.h"

namespace carnot {
namespace {

class TokenizeCommand final : public Command {
 public:
  void declare(OptionParser& take) override {
    take.operand("DIR", folder_, "folder with a tokenizer, or a tokenizer.json", Presence::Required);
    take.flag("--decode", decode_, "token ids to JSON strings");
  }

  Exit run(const Console& console) override {
    const auto tokenizer = Tokenizer::load(folder_);
    if (!tokenizer) return report(console, tokenizer.error());
    const auto convert = decode_ ? decode_lines : encode_lines;
    return ended(convert(*tokenizer, console.in, console.out), console);
  }

 private:
  std::filesystem::path folder_;
  bool decode_ = false;
};

}  // namespace

CommandEntry tokenize_entry() {
  return {.name = "tokenize",
          .arguments = "DIR",
          .summary = "JSON strings to token ids, line by line, and back",
          .example = "runs/quickstart/checkpoints/global_step_130",
          .make = make_command<TokenizeCommand>};
}

}  // namespace carnot
