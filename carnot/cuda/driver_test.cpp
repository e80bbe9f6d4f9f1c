// Compiling, loading and launching, with a driver that has no GPU (testing/cuda_driver).
#include "carnot/cuda/driver.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "carnot/cuda/statistics_kernels.h"
#include "testing/emulated_statistics.h"
#include "testing/paths.h"
#include "testing/site_packages.h"

namespace carnot::cuda {
namespace {

using ::testing::HasSubstr;

const std::string kFakeDriver = build_path("libcarnot_fake_cuda_driver.so");

/// A function that only the fake driver has.
template <class Function>
Function* of_fake_driver(const char* name) {
  void* handle = dlopen(kFakeDriver.c_str(), RTLD_NOW);
  return reinterpret_cast<Function*>(dlsym(handle, name));
}

struct EnvironmentVariable {
  EnvironmentVariable(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~EnvironmentVariable() { unsetenv(name_); }
  const char* name_;
};

TEST(CudaDriverOnHost, SaysWhatIsMissing) {
  EXPECT_THAT(CudaDriver::open("libcuda_of_nobody.so").error().message,
              HasSubstr("CUDA's driver does not open: there is no libcuda_of_nobody.so"));
  EXPECT_THAT(CudaDriver::open("libm.so.6").error().message, HasSubstr("libm.so.6 is no CUDA driver: it lacks cuInit"));
  {
    const EnvironmentVariable none("FAKE_CUDA_DEVICES", "0");
    EXPECT_EQ(CudaDriver::open(kFakeDriver).error().message, "CUDA's driver sees no GPU");
  }
  const EnvironmentVariable broken("FAKE_CUDA_BROKEN", "1");
  EXPECT_EQ(CudaDriver::open(kFakeDriver).error().message, "CUDA's driver does not start: some other error");
}

TEST(CudaDriverOnHost, LoadsCodeAndFindsItsKernels) {
  const auto driver = CudaDriver::open(kFakeDriver);
  ASSERT_TRUE(driver.ok()) << driver.error().message;
  EXPECT_EQ(*driver->architecture(0), 90);
  EXPECT_FALSE(driver->architecture(1).ok());
  EXPECT_EQ(driver->load(0, "code", {"statistics_forward"})->size(), 1u);
  EXPECT_EQ(driver->load(0, "bad", {"statistics_forward"}).error().message,
            "GPU 0 does not load device code: device kernel image is invalid");
  EXPECT_EQ(driver->load(0, "code", {"other"}).error().message,
            "device code has no kernel other: named symbol not found");
}

/// What a launch was asked for.
struct SeenLaunch {
  std::string kernel{};
  unsigned blocks = 0, threads = 0;
  void* stream = nullptr;
};
SeenLaunch seen;

/// Runs the kernel of float that a GPU would.
void emulate(const char* kernel, unsigned blocks, unsigned threads, void* stream, const void* parameter) {
  seen = {.kernel = kernel, .blocks = blocks, .threads = threads, .stream = stream};
  const auto emulated = testing::emulated_statistics(testing::ThreadOrder::Ascending);
  if (seen.kernel == "statistics_forward")
    emulated->forward(*static_cast<const StatisticsForward<float>*>(parameter));
  else
    emulated->backward(*static_cast<const StatisticsBackward<float, float>*>(parameter));
}

struct TwoRows {
  StatisticsForward<float> forward() {
    return {.logits = logits.data(),
            .rows = 2,
            .vocabulary = 3,
            .targets = targets.data(),
            .logprob = logprob.data(),
            .entropy = entropy.data(),
            .logsumexp = logsumexp.data()};
  }

  std::vector<float> logits{1, 2, 3, 4, 0, 0}, logprob{0, 0}, entropy{0, 0}, logsumexp{0, 0};
  std::vector<Index> targets{2, 0};
};

TEST(CudaDriverOnHost, LaunchesWithTheStreamAndTheParametersAsTheyAre) {
  const auto driver = CudaDriver::open(kFakeDriver);
  ASSERT_TRUE(driver.ok()) << driver.error().message;
  of_fake_driver<void(void (*)(const char*, unsigned, unsigned, void*, const void*))>("fake_on_launch")(&emulate);
  const auto kernels = driver->load(0, "code", {"statistics_forward", "statistics_backward"});
  of_fake_driver<void()>("fake_forget_context")();  // as on another thread
  TwoRows rows;
  const StatisticsForward<float> p = rows.forward();
  int stream = 0;
  driver->launch((*kernels)[0], 2, kBlockThreads, &stream, &p);
  EXPECT_EQ(seen.kernel, "statistics_forward");
  EXPECT_EQ(seen.blocks, 2u);
  EXPECT_EQ(seen.threads, kBlockThreads);
  EXPECT_EQ(seen.stream, &stream);
  EXPECT_NEAR(rows.logsumexp[0], 3.407606, 1e-5);
  EXPECT_NEAR(rows.logprob[1], 4 - 4.0359764, 1e-6);
  EXPECT_THROW(driver->launch((*kernels)[0], 0, kBlockThreads, nullptr, &p), std::runtime_error);
}

TEST(StatisticsOnGpu, AreCompiledForItAndQueuedOnItsStream) {
  const auto nvrtc = Nvrtc::open(testing::site_packages());
  ASSERT_TRUE(nvrtc.ok()) << nvrtc.error().message << "; tools/install_nvrtc.sh installs it";
  const auto driver = CudaDriver::open(kFakeDriver);
  ASSERT_TRUE(driver.ok()) << driver.error().message;
  of_fake_driver<void(void (*)(const char*, unsigned, unsigned, void*, const void*))>("fake_on_launch")(&emulate);
  int stream = 0;
  auto kernels = statistics_on_gpu(0, *nvrtc, *driver, [&](int device) { return device == 0 ? &stream : nullptr; });
  ASSERT_TRUE(kernels.ok()) << kernels.error().message;
  TwoRows rows;
  StatisticsForward<float> p = rows.forward();
  (*kernels)->forward(p);
  EXPECT_EQ(seen.stream, &stream);
  EXPECT_EQ(seen.blocks, 2u);
  EXPECT_NEAR(rows.logsumexp[0], 3.407606, 1e-5);
  seen = {};
  p.rows = 0;
  (*kernels)->forward(p);
  EXPECT_EQ(seen.blocks, 0u) << "nothing to do is no launch";
}

}  // namespace
}  // namespace carnot::cuda
