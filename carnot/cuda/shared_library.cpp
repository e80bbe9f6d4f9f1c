#include "carnot/cuda/shared_library.h"

#include <dlfcn.h>

namespace carnot::cuda {

Result<SharedLibrary> SharedLibrary::open_first(std::span<const std::string> names) {
  std::string absent, reasons;
  for (const std::string& name : names) {
    if (void* handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) {
      SharedLibrary library;
      library.name_ = name;
      library.handle_ = handle;
      return library;
    }
    const char* said = dlerror();
    const std::string reason = said != nullptr ? said : name + ": does not open";
    if (reason == name + ": cannot open shared object file: No such file or directory")
      absent += (absent.empty() ? "there is no " : ", ") + name;
    else
      reasons += "; " + reason;
  }
  return Error{absent.empty() && !reasons.empty() ? reasons.substr(2) : absent + reasons};
}

void* SharedLibrary::address(const char* name) const { return dlsym(handle_, name); }

}  // namespace carnot::cuda
