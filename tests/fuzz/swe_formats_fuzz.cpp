// Any bytes are a response, pytest's log, a patch, SWE-bench's rows, a task file or a tool's answer, or a message that
// says what is wrong. The first byte chooses.
#include <cstddef>
#include <cstdint>
#include <string>

#include "carnot/core/base/check.h"
#include "carnot/worlds/swe/scaffold.h"
#include "carnot/worlds/swe/swe_bench.h"
#include "carnot/worlds/swe/test_log.h"
#include "carnot/worlds/swe/workshop.h"
#include "tests/fuzz/target.h"

namespace {

using carnot::SweFiles;

void check_call(std::string_view text) {
  const carnot::SweCall call = carnot::read_swe_call(text);
  for (const auto& [key, value] : call.parameters)
    CARNOT_CHECK(text.find(key) != std::string_view::npos && text.find(value) != std::string_view::npos, "of the text");
  (void)carnot::swe_observation(call, std::string(text), "0");
}

void check_log(std::string_view text) {
  const carnot::TestStatuses statuses = carnot::parse_pytest_log(text);
  std::vector<std::string> names;
  for (const auto& [name, status] : statuses)
    if (status == carnot::TestStatus::Passed) names.push_back(name);
  CARNOT_CHECK_EQ(carnot::all_passed(statuses, names, true), names.size() == statuses.size());
}

void check_patch(std::string_view text) {
  const auto patch = carnot::parse_unified_diff(text, "patch");
  if (!patch) {
    CARNOT_CHECK(patch.error().message.starts_with("patch"), patch.error().message);
    return;
  }
  SweFiles files{{"a", {.content = "1\n2\n3\n"}}, {"b", {.content = "1\n2"}}};
  const SweFiles before = files;
  const bool is_applied = carnot::apply_diff(*patch, files, "patch").ok();
  CARNOT_CHECK(is_applied || files == before, "nothing has changed");
}

void check_task(std::string_view text) { (void)carnot::parse_swe_task(text, "task"); }

void check_answer(std::string_view text) {
  carnot::SweFolder folder = carnot::folder_with({{"a", {.content = "1"}}});
  const carnot::SweFolder before = folder;
  const bool is_taken = carnot::take_tool_answer(text, folder).ok();
  CARNOT_CHECK(is_taken || folder == before, "nothing is taken over");
  for (const auto& [path, file] : folder.files) CARNOT_CHECK(carnot::is_path_beneath(path), path);
}

}  // namespace

CARNOT_FUZZ_TARGET(swe_formats) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 6) {
    case 0: check_call(text); break;
    case 1: check_log(text); break;
    case 2: check_patch(text); break;
    case 3: (void)carnot::parse_swe_bench_rows(text, "rows"); break;
    case 4: check_task(text); break;
    default: check_answer(text); break;
  }
  return 0;
}
