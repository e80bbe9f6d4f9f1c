// worlds/search_qa/demonstrator.h -- plays search_qa by script, with mistakes for reinforcement learning to correct.
//
// It follows the question's relations one by one: search for the next fact, read the passages, retry with the other
// keyword where they miss it. Each imperfection is a probability; with all of them at 0 it is nearly always right.
#pragma once

#include <memory>

#include "carnot/core/base/fields.h"
#include "carnot/core/base/random.h"
#include "carnot/core/env/environment.h"

namespace carnot {

class SearchQa;

struct SearchDemonstrationOptions {
  double bad_query = 0.3;          ///< a search that lacks the name, the keyword or half the name
  double wrong_pick = 0.1;         ///< after a hit: believes another passage
  double give_up = 0.45;           ///< after a miss: guesses an entity of the asked kind
  double settle = 0.45;            ///< after a miss, not given up: believes what the passages name
  double early_stop = 0.5;         ///< after a fact before the last one: answers there
  double guess_when_early = 0.25;  ///< share of early stops that guess an entity of the asked kind instead
  double redundant_search = 0.12;  ///< after a fact before the last one: searches for it again
  double tag_error = 0.04;         ///< a response without one of its think tags; an answer without its box
  double recall = 0.35;            ///< for a last fact of fixed geography: answers from memory (no mistake)
  /// Share of right answers whose thought is only "Then answer .". Guesses of the asked kind always have it and wrong
  /// answers of other kinds never, so that information gain can use the text before the answer.
  double answer_prefix = 0.25;

  double one_hop_until = 0.2;      ///< up to this progress: one-hop tasks without mistakes but bad queries
  double one_hop_bad_query = 0.2;  ///< their share
  double clean_until = 0.6;        ///< up to this progress: all tasks without mistakes; then with all of them

  void fields(FieldVisitor& visit);

  /// The same without mistakes.
  SearchDemonstrationOptions clean() const;
  /// What holds at this point of the curriculum, `progress` in [0, 1].
  SearchDemonstrationOptions at(double progress) const;
};

/// What an answer's text begins with in the demonstrations, up to the name: for the likelihood of answers that were not
/// sampled.
inline constexpr std::string_view kSearchAnswerPrefix = "<think> Then answer . </think> <answer> \\boxed{";

/// Watches `environment`, which must outlive it, to know question, world and the passages it was shown.
std::unique_ptr<ScriptedAgent> make_search_demonstrator(const SearchQa& environment,
                                                        const SearchDemonstrationOptions& options, RandomStream random);

}  // namespace carnot
