// retrieval/bm25/lucene_norm.h -- lengths of documents in one byte, as Lucene stores them (SmallFloat.intToByte4).
#pragma once

#include <array>
#include <cstdint>

namespace carnot {

/// The length that each byte stands for; they grow with the byte.
const std::array<int, 256>& lucene_lengths();

/// The byte of the longest length that is not above `length`. REQUIRES: length >= 0.
std::uint8_t lucene_length_code(int length);

}  // namespace carnot
