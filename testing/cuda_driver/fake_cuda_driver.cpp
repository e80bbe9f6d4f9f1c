// testing/cuda_driver/fake_cuda_driver.cpp -- a libcuda.so without a GPU, for tests of code that opens one.
//
// It checks the order of calls and passes launches to a function of the test. Code that begins with "bad" does not
// load. Its functions are declared according to NVIDIA's documentation of the driver API.
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

using Launched = void (*)(const char* kernel, unsigned blocks, unsigned threads, void* stream, const void* parameter);

constexpr int kSuccess = 0, kInvalidValue = 1, kNotInitialised = 3, kInvalidImage = 200, kInvalidContext = 201,
              kNotFound = 500;

struct FakeState {
  bool started = false;
  bool retained = false;
  void* current = nullptr;
  Launched launched = nullptr;
};

FakeState state;
int context_of_device = 0;

}  // namespace

extern "C" {

void fake_on_launch(Launched launched) { state.launched = launched; }
void fake_forget_context() { state.current = nullptr; }

int cuInit(unsigned flags) {
  if (flags != 0) return kInvalidValue;
  if (std::getenv("FAKE_CUDA_BROKEN") != nullptr) return 999;
  state.started = true;
  return kSuccess;
}

int cuGetErrorString(int error, const char** text) {
  *text = error == kInvalidImage ? "device kernel image is invalid"
          : error == kNotFound   ? "named symbol not found"
                                 : "some other error";
  return kSuccess;
}

int cuDeviceGetCount(int* count) {
  const char* asked = std::getenv("FAKE_CUDA_DEVICES");
  *count = asked != nullptr ? std::atoi(asked) : 1;
  return state.started ? kSuccess : kNotInitialised;
}

int cuDeviceGet(int* device, int ordinal) {
  if (ordinal != 0) return kInvalidValue;
  *device = 40;  // not the ordinal
  return kSuccess;
}

int cuDeviceGetAttribute(int* value, int attribute, int device) {
  if (device != 40) return kInvalidValue;
  if (attribute != 75 && attribute != 76) return kInvalidValue;
  *value = attribute == 75 ? 9 : 0;
  return kSuccess;
}

int cuDevicePrimaryCtxRetain(void** context, int device) {
  if (device != 40) return kInvalidValue;
  *context = &context_of_device;
  state.retained = true;
  return kSuccess;
}

int cuCtxSetCurrent(void* context) {
  if (!state.retained || context != &context_of_device) return kInvalidContext;
  state.current = context;
  return kSuccess;
}

int cuModuleLoadData(void** module, const void* code) {
  if (state.current == nullptr) return kInvalidContext;
  if (std::strncmp(static_cast<const char*>(code), "bad", 3) == 0) return kInvalidImage;
  *module = &state;
  return kSuccess;
}

int cuModuleGetFunction(void** function, void* module, const char* name) {
  if (module != &state) return kInvalidValue;
  if (std::string(name).find("statistics") != 0) return kNotFound;
  static std::string forward = "statistics_forward", backward = "statistics_backward";
  *function = name == forward ? &forward : &backward;
  return kSuccess;
}

int cuLaunchKernel(void* function, unsigned blocks_x, unsigned blocks_y, unsigned blocks_z, unsigned threads_x,
                   unsigned threads_y, unsigned threads_z, unsigned shared_bytes, void* stream, void** parameters,
                   void** extra) {
  if (state.current == nullptr) return kInvalidContext;
  if (blocks_x == 0 || blocks_y != 1 || blocks_z != 1 || threads_y != 1 || threads_z != 1 || threads_x > 1024 ||
      shared_bytes != 0 || extra != nullptr)
    return kInvalidValue;
  if (state.launched != nullptr)
    state.launched(static_cast<std::string*>(function)->c_str(), blocks_x, threads_x, stream, parameters[0]);
  return kSuccess;
}

}  // extern "C"
