#include "carnot/cuda/driver.h"

#include <stdexcept>

#include "carnot/cuda/shared_library.h"

namespace carnot::cuda {

// As cuda.h declares them: results are an enum whose 0 is success, handles are pointers, devices int.
struct CudaDriver::Functions {
  SharedLibrary library;
  int (*start)(unsigned flags);
  int (*error_text)(int, const char**);
  int (*device_count)(int*);
  int (*device)(int* device, int ordinal);
  int (*attribute)(int* value, int attribute, int device);
  int (*retain_primary)(void** context, int device);
  int (*set_current)(void* context);
  int (*load)(void** module, const void* code);
  int (*function)(void** function, void* module, const char* name);
  int (*launch)(void* function, unsigned blocks_x, unsigned blocks_y, unsigned blocks_z, unsigned threads_x,
                unsigned threads_y, unsigned threads_z, unsigned shared_bytes, void* stream, void** parameters,
                void** extra);

  std::string words(int result) const {
    const char* text = nullptr;
    if (error_text(result, &text) != 0 || text == nullptr) return "error " + std::to_string(result);
    return text;
  }
};

namespace {

constexpr int kCapabilityMajor = 75, kCapabilityMinor = 76;  // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_*

}  // namespace

Result<CudaDriver> CudaDriver::open(const std::string& library) {
  auto opened = SharedLibrary::open_first({&library, 1});
  if (!opened) return Error{"CUDA's driver does not open: " + opened.error().message};
  auto f = std::make_shared<Functions>();
  f->library = std::move(opened).value();
  const SharedLibrary& from = f->library;
  std::string missing;
  from.find("cuInit", f->start, missing);
  from.find("cuGetErrorString", f->error_text, missing);
  from.find("cuDeviceGetCount", f->device_count, missing);
  from.find("cuDeviceGet", f->device, missing);
  from.find("cuDeviceGetAttribute", f->attribute, missing);
  from.find("cuDevicePrimaryCtxRetain", f->retain_primary, missing);
  from.find("cuCtxSetCurrent", f->set_current, missing);
  from.find("cuModuleLoadData", f->load, missing);
  from.find("cuModuleGetFunction", f->function, missing);
  from.find("cuLaunchKernel", f->launch, missing);
  if (!missing.empty()) return Error{library + " is no CUDA driver: it lacks" + missing};
  if (const int result = f->start(0); result != 0) return Error{"CUDA's driver does not start: " + f->words(result)};
  int devices = 0;
  if (f->device_count(&devices) != 0 || devices == 0) return Error{"CUDA's driver sees no GPU"};
  return CudaDriver(std::move(f));
}

Result<int> CudaDriver::architecture(int device) const {
  int handle = 0, major = 0, minor = 0;
  int result = functions_->device(&handle, device);
  if (result == 0) result = functions_->attribute(&major, kCapabilityMajor, handle);
  if (result == 0) result = functions_->attribute(&minor, kCapabilityMinor, handle);
  if (result != 0) return Error{"GPU " + std::to_string(device) + ": " + functions_->words(result)};
  return 10 * major + minor;
}

Result<std::vector<LoadedKernel>> CudaDriver::load(int device, const std::string& code,
                                                   const std::vector<std::string>& names) const {
  int handle = 0;
  void *context = nullptr, *module = nullptr;
  int result = functions_->device(&handle, device);
  if (result == 0) result = functions_->retain_primary(&context, handle);
  if (result == 0) result = functions_->set_current(context);
  if (result == 0) result = functions_->load(&module, code.c_str());
  if (result != 0)
    return Error{"GPU " + std::to_string(device) + " does not load device code: " + functions_->words(result)};
  std::vector<LoadedKernel> kernels;
  for (const std::string& name : names) {
    void* function = nullptr;
    result = functions_->function(&function, module, name.c_str());
    if (result != 0) return Error{"device code has no kernel " + name + ": " + functions_->words(result)};
    kernels.push_back({.function = function, .context = context});
  }
  return kernels;
}

void CudaDriver::launch(const LoadedKernel& kernel, unsigned blocks, unsigned threads, void* stream,
                        const void* parameter) const {
  void* parameters[] = {const_cast<void*>(parameter)};
  int result = functions_->set_current(kernel.context);
  if (result == 0)
    result = functions_->launch(kernel.function, blocks, 1, 1, threads, 1, 1, 0, stream, parameters, nullptr);
  if (result != 0) throw std::runtime_error("the GPU refuses a kernel: " + functions_->words(result));
}

}  // namespace carnot::cuda
