#include "carnot/core/run/export.h"

#include <ostream>

#include "carnot/core/cli/command.h"

namespace carnot {
namespace {

class ExportCommand final : public Command {
 public:
  void declare(OptionParser& take) override {
    take.operand("PATH", options_.path, "run folder (its latest checkpoint), checkpoint, or Hugging Face folder",
                 Presence::Required);
    take.text("--output", "DIR", options_.output, "folder to make; with --gguf, file", Presence::Required);
    take.flag("--merge-lora", options_.merge_lora,
              "one model with the adapters merged in; without it DIR/base and DIR/adapter (PEFT)");
    take.word("--dtype", "TYPE", options_.dtype, {"float32", "bfloat16", "float16"},
              "of the weights; default: as stored");
    take.word("--gguf", "TYPE", options_.gguf, {"f32", "f16", "bf16", "q8_0"},
              "one GGUF file for llama.cpp, with weights of this type; norms and biases stay in f32");
    take.number("--shard-megabytes", "N", options_.shard_megabytes, between(0.001, 1e9),
                "a larger model is written in several files; default: 5000");
    take.flag("--overwrite", options_.overwrite, "replace what an earlier export wrote");
  }

  Exit run(const Console& console) override { return print(export_model(options_), console); }

 private:
  ExportOptions options_;
};

}  // namespace

CommandEntry export_entry() {
  return {.name = "export",
          .arguments = "PATH --output DIR",
          .summary = "a run's policy as a Hugging Face folder, its adapters as PEFT's; or as a GGUF file",
          .example = "runs/quickstart --output exported --dtype bfloat16",
          .make = make_command<ExportCommand>};
}

}  // namespace carnot
