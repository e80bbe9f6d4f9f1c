// hf/hub_cache.h -- models by their id on the Hugging Face hub, out of the cache on this machine.
#pragma once

#include <filesystem>
#include <string>

#include "carnot/core/base/result.h"

namespace carnot {

/// The folder that `path_or_id` means: itself, where it is a folder; else, for an id like Qwen/Qwen2.5-0.5B-Instruct
/// (@ and a branch or commit may follow), the snapshot in the hub's cache: HF_HUB_CACHE, HF_HOME/hub,
/// XDG_CACHE_HOME/huggingface/hub or ~/.cache/huggingface/hub. Nothing is downloaded: the error has the command that
/// does it.
Result<std::filesystem::path> pretrained_folder(const std::string& path_or_id);

}  // namespace carnot
