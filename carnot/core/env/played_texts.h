// env/played_texts.h -- what is said in an episode that a scripted agent plays, to train a tokenizer from.
#pragma once

#include <string>
#include <vector>

#include "carnot/core/env/environment.h"

namespace carnot {

/// Plays `environment`, which is open, to its end: the agent's responses and what each was answered with, in turn.
std::vector<std::string> played_texts(Environment& environment, ScriptedAgent& agent);

/// What is said in the first episodes of training, played by the factory's scripted agent.
std::vector<std::string> training_texts(const EnvironmentFactory& factory);

}  // namespace carnot
