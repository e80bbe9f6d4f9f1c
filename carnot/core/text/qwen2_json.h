// text/qwen2_json.h -- the frame of a tokenizer.json of the Qwen2 family, without vocabulary, merges and added tokens.
//
// Included by sources only: it brings nlohmann/json.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

namespace carnot {

/// `AnyJson`: nlohmann::json, or nlohmann::ordered_json where the order of the keys shall be kept.
template <class AnyJson>
AnyJson qwen2_tokenizer_json(std::string_view pattern, AnyJson added_tokens, AnyJson vocab, AnyJson merges,
                             bool ignore_merges) {
  const AnyJson split = {
      {"type", "Split"}, {"pattern", {{"Regex", pattern}}}, {"behavior", "Isolated"}, {"invert", false}};
  const AnyJson byte_level = {
      {"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", false}, {"use_regex", false}};
  AnyJson model = {{"type", "BPE"},
                   {"dropout", nullptr},
                   {"unk_token", nullptr},
                   {"continuing_subword_prefix", nullptr},
                   {"end_of_word_suffix", nullptr},
                   {"fuse_unk", false},
                   {"byte_fallback", false},
                   {"ignore_merges", ignore_merges}};
  model["vocab"] = std::move(vocab);
  model["merges"] = std::move(merges);
  AnyJson file = {{"version", "1.0"},
                  {"truncation", nullptr},
                  {"padding", nullptr},
                  {"added_tokens", AnyJson::array()},
                  {"normalizer", {{"type", "NFC"}}},
                  {"pre_tokenizer", {{"type", "Sequence"}, {"pretokenizers", {split, byte_level}}}},
                  {"post_processor", nullptr},
                  {"decoder", byte_level}};
  file["added_tokens"] = std::move(added_tokens);
  file["model"] = std::move(model);
  return file;
}

}  // namespace carnot
