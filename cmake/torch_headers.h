// The precompiled header of the rooms above the LibTorch line. Sources still include what they use.
//
// custom_function.h is left out: its pending templates would be instantiated again in every source, two seconds each.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>
