// Any bytes are a run's metrics, which a resumed run truncates to its checkpoint and a study draws, or a message that
// names the file. Truncating twice changes nothing.
#include <cstddef>
#include <cstdint>

#include "carnot/core/base/check.h"
#include "carnot/core/base/file.h"
#include "carnot/core/run/metrics_writer.h"
#include "carnot/studies/metric_curves.h"
#include "tests/fuzz/scratch_folder.h"
#include "tests/fuzz/target.h"

CARNOT_FUZZ_TARGET(metrics) {
  static const carnot::fuzz::ScratchFolder folder("metrics");
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  carnot::parse_metric_curves(text);
  const auto file = folder.write("metrics.jsonl", text);
  const carnot::MetricsWriter::Options options{.jsonl = file, .resume_step = 3};
  const auto first = carnot::MetricsWriter::open(options);
  if (!first.ok()) {
    CARNOT_CHECK(first.error().message.starts_with(file.string()), first.error().message);
    return 0;
  }
  const std::string kept = carnot::read_file(file).value();
  for (const auto& [name, curve] : carnot::parse_metric_curves(kept))
    CARNOT_CHECK(curve.rbegin()->first <= 3, "later steps come again");
  CARNOT_CHECK(carnot::MetricsWriter::open(options).ok(), "what is kept is read again");
  CARNOT_CHECK(carnot::read_file(file).value() == kept, "what is kept once is kept again");
  return 0;
}
