#include "carnot/worlds/ragen/thoughts.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace carnot {
namespace {

/// The parts of a sentence, the usual one first.
constexpr std::array<std::array<std::string_view, 4>, 5> kParts = {
    {{" Now", " So", " Well", " Then"},
     {" the morning", " the wind", " the sky", " the air"},
     {" feels", " seems", " looks", " stays"},
     {" calm", " cold", " bright", " quiet"},
     {" today.", " again.", " as before.", " by now."}}};

constexpr int kMostIdleWords = 400;

}  // namespace

void ThoughtOptions::fields(FieldVisitor& visit) {
  visit.field("plan", plan, "thoughts of demonstrations end with what the player plans");
  visit.field("idle_words", idle_words, "words of each thought, at least, that have nothing to do with the game",
              between(0, kMostIdleWords));
  visit.field("variety", variety, "chance of each part of an idle sentence to be another one than usual",
              between(0, 1));
}

std::string idle_thoughts(const ThoughtOptions& options, RandomStream& random) {
  std::string text;
  while (std::count(text.begin(), text.end(), ' ') < options.idle_words)
    for (const auto& others : kParts)
      text += random.chance(options.variety) ? others[1 + random.below(others.size() - 1)] : others[0];
  return text;
}

}  // namespace carnot
