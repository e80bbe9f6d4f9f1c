// Any bytes are a manifest with which a checkpoint agrees or not; the message names the folder.
#include <cstddef>
#include <cstdint>

#include "carnot/core/base/check.h"
#include "carnot/core/run/checkpoint_folder.h"
#include "tests/fuzz/scratch_folder.h"
#include "tests/fuzz/target.h"

CARNOT_FUZZ_TARGET(manifest) {
  static const carnot::fuzz::ScratchFolder folder("manifest");
  static const auto weights = folder.write("model.safetensors", "weights");
  folder.write("MANIFEST.json", {reinterpret_cast<const char*>(data), size});
  const carnot::Status status = carnot::verify_checkpoint(folder.path());
  if (!status) {
    const std::string& message = status.error().message;
    CARNOT_CHECK(message.starts_with(folder.path().string()), message);
  }
  return 0;
}
