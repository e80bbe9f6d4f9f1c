#include "carnot/cuda/nvrtc.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "carnot/cuda/shared_library.h"

namespace carnot::cuda {

// As nvrtc.h of CUDA 12 and 13 declares them: results are an enum whose 0 is success, programs a pointer.
struct Nvrtc::Functions {
  using Program = void*;

  SharedLibrary library;
  const char* (*error_string)(int);
  int (*version)(int* major, int* minor);
  int (*num_architectures)(int* count);
  int (*architectures)(int* all);
  int (*create)(Program*, const char* text, const char* name, int headers, const char* const* header_texts,
                const char* const* header_names);
  int (*destroy)(Program*);
  int (*compile)(Program, int options, const char* const* all);
  int (*log_size)(Program, std::size_t*);
  int (*log)(Program, char*);
  int (*binary_size)(Program, std::size_t*);
  int (*binary)(Program, char*);
  int (*assembly_size)(Program, std::size_t*);
  int (*assembly)(Program, char*);
};

namespace {

std::vector<std::string> candidates(std::span<const std::string> site_packages) {
  if (const char* named = std::getenv("CARNOT_NVRTC"); named != nullptr && *named != '\0') return {named};
  std::vector<std::string> names;
  for (const std::string& folder : site_packages)
    for (const char* below : {"/nvidia/cu13/lib/libnvrtc.so.13", "/nvidia/cuda_nvrtc/lib/libnvrtc.so.12"})
      names.push_back(folder + below);
  for (const char* name : {"libnvrtc.so.13", "libnvrtc.so.12", "/usr/local/cuda/lib64/libnvrtc.so"})
    names.emplace_back(name);
  return names;
}

/// NVRTC asks for its library of built-in functions by name, which need not lead to the one next to it.
void open_builtins_beside(const std::string& library) {
  const std::filesystem::path folder = std::filesystem::path(library).parent_path();
  if (folder.empty()) return;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    const std::string path = entry.path().string();
    if (entry.path().filename().string().starts_with("libnvrtc-builtins.so"))
      static_cast<void>(SharedLibrary::open_first({&path, 1}));
  }
}

/// What a pair of functions, one for the size and one for the bytes, give.
template <class Size, class Bytes>
std::string text_of(void* program, Size size, Bytes bytes) {
  std::size_t count = 0;
  if (size(program, &count) != 0 || count == 0) return "";
  std::string text(count, '\0');
  return bytes(program, text.data()) == 0 ? text : "";
}

}  // namespace

Result<Nvrtc> Nvrtc::open(std::span<const std::string> site_packages) {
  auto library = SharedLibrary::open_first(candidates(site_packages));
  if (!library) return Error{"NVRTC does not open: " + library.error().message};
  auto f = std::make_shared<Functions>();
  f->library = std::move(library).value();
  open_builtins_beside(f->library.name());
  const SharedLibrary& from = f->library;
  std::string missing;
  from.find("nvrtcGetErrorString", f->error_string, missing);
  from.find("nvrtcVersion", f->version, missing);
  from.find("nvrtcGetNumSupportedArchs", f->num_architectures, missing);
  from.find("nvrtcGetSupportedArchs", f->architectures, missing);
  from.find("nvrtcCreateProgram", f->create, missing);
  from.find("nvrtcDestroyProgram", f->destroy, missing);
  from.find("nvrtcCompileProgram", f->compile, missing);
  from.find("nvrtcGetProgramLogSize", f->log_size, missing);
  from.find("nvrtcGetProgramLog", f->log, missing);
  from.find("nvrtcGetCUBINSize", f->binary_size, missing);
  from.find("nvrtcGetCUBIN", f->binary, missing);
  from.find("nvrtcGetPTXSize", f->assembly_size, missing);
  from.find("nvrtcGetPTX", f->assembly, missing);
  if (!missing.empty()) return Error{from.name() + " is no NVRTC of CUDA 12 or 13: it lacks" + missing};
  return Nvrtc(std::move(f));
}

const std::string& Nvrtc::library() const { return functions_->library.name(); }

std::string Nvrtc::version() const {
  int major = 0, minor = 0;
  functions_->version(&major, &minor);
  return std::to_string(major) + "." + std::to_string(minor);
}

std::vector<int> Nvrtc::architectures() const {
  int count = 0;
  if (functions_->num_architectures(&count) != 0 || count <= 0) return {};
  std::vector<int> all(static_cast<std::size_t>(count));
  if (functions_->architectures(all.data()) != 0) return {};
  std::sort(all.begin(), all.end());
  return all;
}

Result<std::string> Nvrtc::compile(const DeviceProgram& program, int architecture) const {
  const std::vector<int> known = architectures();
  const bool newer = !known.empty() && architecture > known.back();
  std::vector<std::string> options{newer ? "--gpu-architecture=compute_" + std::to_string(known.back())
                                         : "--gpu-architecture=sm_" + std::to_string(architecture),
                                   "--std=c++17"};
  for (const std::string& definition : program.definitions) options.push_back("--define-macro=" + definition);
  std::vector<const char*> option_pointers, header_names, header_texts;
  for (const std::string& option : options) option_pointers.push_back(option.c_str());
  std::vector<std::string> texts;  // that end with a zero
  for (const auto& [name, text] : device_headers()) texts.emplace_back(text);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    header_names.push_back(device_headers()[i].first.c_str());
    header_texts.push_back(texts[i].c_str());
  }
  const std::string text(program.text), file = program.name + ".cu";
  Functions::Program made = nullptr;
  int result = functions_->create(&made, text.c_str(), file.c_str(), static_cast<int>(texts.size()),
                                  header_texts.data(), header_names.data());
  std::string code, messages;
  if (result == 0) {
    const std::shared_ptr<void> owner(made, [&](void*) { functions_->destroy(&made); });
    result = functions_->compile(made, static_cast<int>(options.size()), option_pointers.data());
    messages = text_of(made, functions_->log_size, functions_->log);
    if (result == 0)
      code = newer ? text_of(made, functions_->assembly_size, functions_->assembly)
                   : text_of(made, functions_->binary_size, functions_->binary);
  }
  if (!code.empty()) return code;
  return Error{program.name + ": NVRTC " + version() + " does not compile it for sm_" + std::to_string(architecture) +
               ": " + functions_->error_string(result) + "\n" + messages.c_str()};
}

}  // namespace carnot::cuda
