// worlds/entries.h -- a line for each world: the function that makes its factory. worlds.cpp lists them.
#pragma once

#include <memory>

#include "carnot/core/env/environment.h"

namespace carnot {

std::unique_ptr<EnvironmentFactory> make_agent();
std::unique_ptr<EnvironmentFactory> make_alfworld();
std::unique_ptr<EnvironmentFactory> make_dataset();
std::unique_ptr<EnvironmentFactory> make_frozen_lake();
std::unique_ptr<EnvironmentFactory> make_gsm8k();
std::unique_ptr<EnvironmentFactory> make_open_qa();
std::unique_ptr<EnvironmentFactory> make_process();
std::unique_ptr<EnvironmentFactory> make_search_qa();
std::unique_ptr<EnvironmentFactory> make_skeleton();
std::unique_ptr<EnvironmentFactory> make_sokoban();
std::unique_ptr<EnvironmentFactory> make_sudoku();
std::unique_ptr<EnvironmentFactory> make_swe();
std::unique_ptr<EnvironmentFactory> make_webshop();
std::unique_ptr<EnvironmentFactory> make_word_problems();

}  // namespace carnot
