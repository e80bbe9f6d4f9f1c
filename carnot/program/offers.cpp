#include "carnot/program/offers.h"

#include "carnot/built.h"

namespace carnot {

void offer_cuda_statistics();
void offer_process_groups();
void offer_remote_rollouts();
void offer_sentence_encoders();
void offer_tools();
void offer_worlds();

void make_offers() {
  using Offer = void (*)();
  const Offer offers[] = {offer_worlds,
                          offer_tools,
                          CARNOT_BUILT(cuda_statistics, offer_cuda_statistics),
                          CARNOT_BUILT(ranks, offer_process_groups),
                          CARNOT_BUILT(remote_rollouts, offer_remote_rollouts),
                          CARNOT_BUILT(sentence_encoders, offer_sentence_encoders)};
  for (const Offer offer : offers)
    if (offer != nullptr) offer();
}

}  // namespace carnot
