#include "carnot/core/run/import.h"

#include <ostream>

#include "carnot/core/cli/command.h"

namespace carnot {
namespace {

class ImportCommand final : public Command {
 public:
  void declare(OptionParser& take) override {
    take.operand("FILE", options_.file, "model as a GGUF file, as llama.cpp has them", Presence::Required);
    take.text("--output", "DIR", options_.output, "folder to make", Presence::Required);
    take.word("--dtype", "TYPE", options_.dtype, {"bfloat16", "float32"}, "of the weights; default: bfloat16");
    take.number("--shard-megabytes", "N", options_.shard_megabytes, between(0.001, 1e9),
                "a larger model is written in several files; default: 5000");
    take.flag("--overwrite", options_.overwrite, "replace what an earlier import or export wrote");
  }

  Exit run(const Console& console) override { return print(import_model(options_), console); }

 private:
  ImportOptions options_;
};

}  // namespace

CommandEntry import_entry() {
  return {.name = "import",
          .arguments = "FILE --output DIR",
          .summary = "a GGUF file as a Hugging Face folder",
          .example = "SmolLM2-135M-Instruct.Q4_1.gguf --output smollm2",
          .make = make_command<ImportCommand>};
}

}  // namespace carnot
