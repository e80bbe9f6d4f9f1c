// worlds/swe/texts.h -- files of this folder that are part of the library: the tools, the prompts and the thirty tasks.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

namespace carnot {

extern const std::string_view kSweTools;         ///< the folder tools, as one program
extern const std::string_view kSweSystemPrompt;  ///< of R2E-Gym's agent, as rLLM has it
extern const std::string_view kSweUserPrompt;    ///< with {problem_statement}

/// Name and text of each file of the folder tasks.
extern const std::vector<std::pair<std::string_view, std::string_view>> kSweTaskTexts;

}  // namespace carnot
