// What a step of a process environment costs beyond the environment's own work.
//
//   process_bench [STEPS]
//
// Plays STEPS (20,000) steps of bench/trivial_environment.py with 1, 4 and 16 episodes at a time in one process, step
// by step and in batches, and prints microseconds per step of wall time and of processor time, both processes together,
// and steps per second of one core.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "carnot/worlds/entries.h"
#include "processor_time.h"

namespace carnot {
namespace {

/// Sets the command.
class Settings final : public FieldVisitor {
 public:
  explicit Settings(bool batches) : batches_(batches) {}
  void field(std::string_view, bool&, std::string_view) override {}
  void field(std::string_view, std::int64_t&, std::string_view, const Limits&) override {}
  void field(std::string_view, double&, std::string_view, const Limits&) override {}
  void field(std::string_view, std::string&, std::string_view, const Limits&) override {}
  void field(std::string_view, std::vector<double>&, std::string_view, const Limits&) override {}
  void field(std::string_view name, std::vector<std::string>& value, std::string_view, const Limits&) override {
    if (name != "command") return;
    value = {"python3", CARNOT_SOURCE_DIR "/bench/trivial_environment.py"};
    if (batches_) value.emplace_back("batches");
  }
  void begin_section(std::string_view, std::string_view) override {}
  void end_section() override {}

 private:
  bool batches_;
};

void measure(bool batches, int episodes, int steps) {
  const double cpu_before = processor_seconds();
  double seconds = 0;
  {
    const auto factory = make_process();
    Settings settings(batches);
    factory->fields(settings);
    if (const Status status = factory->prepare(0); !status) {
      std::fprintf(stderr, "%s\n", status.error().message.c_str());
      std::exit(1);
    }
    const auto start = std::chrono::steady_clock::now();
    std::vector<std::thread> threads;
    for (int e = 0; e < episodes; ++e)
      threads.emplace_back([&, e] {
        for (int done = e; done < steps;) {
          const auto environment = factory->make(Split::Train, done);
          environment->open();
          for (bool over = false; !over && done < steps; done += episodes) over = environment->step("?").done;
        }
      });
    for (std::thread& thread : threads) thread.join();
    seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  const double cpu = processor_seconds() - cpu_before;
  std::printf("%-8s %8d %12.1f %12.1f %14.0f\n", batches ? "batches" : "", episodes, 1e6 * seconds / steps,
              1e6 * cpu / steps, steps / cpu);
}

}  // namespace
}  // namespace carnot

int main(int argc, char** argv) {
  const int steps = argc > 1 ? std::atoi(argv[1]) : 20000;
  std::printf("%-8s %8s %12s %12s %14s\n", "", "episodes", "wall, us", "cpu, us", "steps/s, core");
  for (const bool batches : {false, true})
    for (const int episodes : {1, 4, 16}) carnot::measure(batches, episodes, steps);
}
