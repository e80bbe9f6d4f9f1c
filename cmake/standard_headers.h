// The precompiled header of the rooms below the LibTorch line in instrumented builds. Sources still include what they
// use.
#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <variant>
#include <vector>
