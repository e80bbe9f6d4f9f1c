// run/export.h -- `carnot export`: a run's policy as folders that other programs load.
#pragma once

#include <filesystem>
#include <string>

#include "carnot/core/base/result.h"

namespace carnot {

struct ExportOptions {
  std::filesystem::path path{};    ///< a run folder (its latest checkpoint), a checkpoint, or a Hugging Face folder
  std::filesystem::path output{};  ///< folder to make; with gguf, file
  bool merge_lora = false;         ///< one model, adapters merged into its weights
  std::string dtype{};  ///< float32, bfloat16 or float16; empty: as stored; merged adapters take their base's type
  std::string gguf{};   ///< f32, f16, bf16 or q8_0: one GGUF file of this type; not with dtype. Empty: a folder
  double shard_megabytes = 5000;  ///< a larger model is written in several files and an index
  bool overwrite = false;         ///< in place of what an earlier export wrote (run/export_output.h)
};

/// Writes a Hugging Face folder: config.json, weights, and those files of tokenizer and generation that the source has.
/// A policy with adapters becomes OUTPUT/base, such a folder, and OUTPUT/adapter, a PEFT folder; with merge_lora one
/// folder as the others, and with gguf as well one file, of which adapters are no part. The output is complete or
/// absent, with a list of its files in carnot_export.json; an export that is killed leaves a folder .carnot-RANDOM.tmp
/// next to it. Returns what was written, in words.
Result<std::string> export_model(const ExportOptions& options);

}  // namespace carnot
