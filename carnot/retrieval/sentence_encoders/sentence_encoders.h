// retrieval/sentence_encoders/sentence_encoders.h -- sentence encoders (hf/) for the rooms that search by their vectors
// and cannot compute them.
#pragma once

namespace carnot {

/// From now on open_text_encoder() (retrieval/dense/dense_retriever.h) opens folders of sentence-transformers, and ids
/// on the hub. Loads nothing by itself.
void offer_sentence_encoders();

}  // namespace carnot
