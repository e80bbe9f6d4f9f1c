#include "carnot/serving/model_options.h"

namespace carnot {

void declare_model(OptionParser& take, ModelRequest& model) {
  take.text("--model", "DIR", model.path,
            "Hugging Face folder or id in the hub's cache, checkpoint, or run folder: its latest", Presence::Required);
  take.text("--chat", "NAME", model.chat, "chat family; default: the run's, or the model family's");
  take.word("--device", "D", model.device, {"cpu", "cuda"}, "where tensors live; default: cpu");
  take.word("--dtype", "T", model.dtype, {"float32", "float64", "bfloat16"}, "of the computation; default: float32");
  take.count("--threads", "N", model.threads, 0, "of the kernels; default: one per processor");
}

}  // namespace carnot
