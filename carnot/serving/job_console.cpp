#include "carnot/serving/job_console.h"

#include "carnot/core/base/printable.h"
#include "carnot/core/cli/stop_signals.h"

namespace carnot {

void declare_model(OptionParser& take, ModelRequest& model) {
  take.text("--model", "DIR", model.path,
            "Hugging Face folder or id in the hub's cache, checkpoint, or run folder: its latest", Presence::Required);
  take.text("--chat", "NAME", model.chat, "chat family; default: the run's, or the model family's");
  take.word("--device", "D", model.device, {"cpu", "cuda"}, "where tensors live; default: cpu");
  take.word("--dtype", "T", model.dtype, {"float32", "float64", "bfloat16"}, "of the computation; default: float32");
  take.count("--threads", "N", model.threads, 0, "of the kernels; default: one per processor");
}

JobControl prepare_job(const Console& console) {
  catch_stop_signals(StopLeaves::Nothing);
  const auto shown = [safe = console.terminal](std::string_view text) {
    return safe ? printable(text) : std::string(text);
  };
  return {.out = console.out, .shown = shown, .stop_requested = stop_requested};
}

}  // namespace carnot
