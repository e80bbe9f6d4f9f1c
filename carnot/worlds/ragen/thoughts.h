// worlds/ragen/thoughts.h -- how much a demonstration's thoughts say that decides nothing, and how varied that is: for
// studies of where the learning signal of a response belongs.
#pragma once

#include <string>

#include "carnot/core/base/fields.h"
#include "carnot/core/base/random.h"

namespace carnot {

struct ThoughtOptions {
  bool plan = true;      ///< a thought ends with what the player plans
  int idle_words = 0;    ///< at least so many words that have nothing to do with the game, in whole sentences
  double variety = 0.3;  ///< chance that a part of an idle sentence is another one than usual

  void fields(FieldVisitor& visit);
};

/// Sentences of five parts, each drawn on its own: the usual one, or with chance `variety` one of three others. Nats of
/// a sentence: five times h(variety) + variety log 3, with h the entropy of two outcomes. Empty without idle words, and
/// nothing is drawn; else it begins with a blank.
std::string idle_thoughts(const ThoughtOptions& options, RandomStream& random);

}  // namespace carnot
