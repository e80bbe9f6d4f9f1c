// What a call of Python code in the sandbox costs.
//
//   sandbox_bench [CALLS]
//
// Runs `print(6 * 7)` CALLS (200) times at each level that this machine grants, with interpreters started ahead (after
// each call the next one is waited for) and without any, and back to back; prints the median and the 95th percentile of
// a call in milliseconds, and processor milliseconds of everything together for each call.
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "carnot/tools/sandbox/python_sandbox.h"

namespace carnot {
namespace {

double cpu_milliseconds() {
  double sum = 0;
  for (const int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage usage{};
    ::getrusage(who, &usage);
    for (const timeval& time : {usage.ru_utime, usage.ru_stime})
      sum += 1e3 * static_cast<double>(time.tv_sec) + 1e-3 * static_cast<double>(time.tv_usec);
  }
  return sum;
}

void measure(const char* name, const SandboxTrial& trial, int warm, std::chrono::milliseconds pause, int calls) {
  SandboxOptions options;
  options.least = SandboxLevel::Limited;
  options.warm = warm;
  options.interpreter = "/usr/bin/python3";
  const auto opened = PythonSandbox::open(options, trial);
  if (!opened) {
    std::fprintf(stderr, "%s\n", opened.error().message.c_str());
    std::exit(1);
  }
  const double cpu_before = cpu_milliseconds();
  std::vector<double> times;
  for (int i = 0; i < calls; ++i) {
    std::this_thread::sleep_for(pause);
    const auto start = std::chrono::steady_clock::now();
    if ((*opened)->run({.code = "print(6 * 7)"}).standard_output != "42\n") std::exit(1);
    times.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
  }
  std::sort(times.begin(), times.end());
  std::printf("%-10s %-58s %8.1f %8.1f %8.1f\n", name, (*opened)->description().c_str(), times[times.size() / 2],
              times[times.size() * 95 / 100], (cpu_milliseconds() - cpu_before) / calls);
}

}  // namespace
}  // namespace carnot

int main(int count, char** arguments) {
  using namespace carnot;
  const int calls = count > 1 ? std::max(1, std::atoi(arguments[1])) : 200;
  std::printf("%-10s %-58s %8s %8s %8s\n", "", "", "median", "95 %", "cpu");
  for (const SandboxTrial& trial : {SandboxTrial{}, SandboxTrial{.namespaces = false},
                                    SandboxTrial{.namespaces = false, .landlock = false, .system_calls = false}}) {
    measure("warm", trial, 4, std::chrono::milliseconds(60), calls);
    measure("cold", trial, 0, {}, calls);
    measure("at once", trial, 4, {}, calls);
  }
}
