// run/import.h -- `carnot import`: a GGUF file as a folder that Carnot and transformers load.
#pragma once

#include <filesystem>
#include <string>

#include "carnot/core/base/result.h"

namespace carnot {

struct ImportOptions {
  std::filesystem::path file{};
  std::filesystem::path output{};  ///< folder to make
  std::string dtype = "bfloat16";  ///< or float32
  double shard_megabytes = 5000;   ///< a larger model is written in several files and an index
  bool overwrite = false;          ///< in place of what an import or an export wrote (run/export_output.h)
};

/// Writes a Hugging Face folder: config.json, weights, tokenizer.json, tokenizer_config.json with the chat template,
/// generation_config.json. What cannot be taken over is an error, or a warning in the log, before anything is written;
/// the output is complete or absent, as of an export (run/export.h). Returns what was written, in words.
Result<std::string> import_model(const ImportOptions& options);

}  // namespace carnot
