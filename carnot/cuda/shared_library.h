// cuda/shared_library.h -- a library that is opened at run time, so that nothing needs it in order to start. It stays
// open for good.
#pragma once

#include <span>
#include <string>

#include "carnot/core/base/result.h"

namespace carnot::cuda {

class SharedLibrary {
 public:
  /// The first of `names` (file names, or paths) that opens. The error names those that are not
  /// there and has the loader's words about the others.
  static Result<SharedLibrary> open_first(std::span<const std::string> names);

  const std::string& name() const { return name_; }

  /// Sets `function` to the library's function of that name; if there is none, adds it to `missing`.
  template <class Function>
  void find(const char* name, Function*& function, std::string& missing) const {
    function = reinterpret_cast<Function*>(address(name));
    if (function == nullptr) missing += std::string(" ") + name;
  }

 private:
  void* address(const char* name) const;

  std::string name_;
  void* handle_ = nullptr;
};

}  // namespace carnot::cuda
