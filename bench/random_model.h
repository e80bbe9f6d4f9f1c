// bench/random_model.h -- a model of a given shape with random weights, in a process that is set up as the program is.
#pragma once

#include <ATen/Context.h>

#include <string>

#include "carnot/core/base/aligned_memory.h"
#include "carnot/core/base/file.h"
#include "carnot/core/base/result.h"
#include "carnot/core/base/thread_pool.h"
#include "carnot/core/hf/model_config_file.h"
#include "carnot/core/nn/cpu_memory.h"
#include "carnot/core/nn/model.h"

namespace carnot {

inline at::ScalarType number_type_named(const std::string& dtype) {
  return dtype == "bfloat16" ? at::kBFloat16 : at::kFloat;
}

/// `config_file` is a config.json (bench/shapes). Carnot's kernels get `threads` threads, LibTorch keeps its own.
inline Result<Model> random_model(const std::string& config_file, const std::string& dtype, int threads) {
  const auto text = read_file(config_file);
  if (!text) return text.error();
  const auto config = parse_model_config(*text, config_file);
  if (!config) return config.error();
  keep_freed_memory();
  take_aligned_tensor_memory();
  keep_few_compiled_products();
  set_num_threads(threads);
  return Model(*config, 1, at::TensorOptions().dtype(number_type_named(dtype)), 0.02);
}

}  // namespace carnot
