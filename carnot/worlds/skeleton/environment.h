// worlds/skeleton/environment.h -- an environment to copy: guess a hidden number. Small and whole; comments say where
// the choices are.
//
// To add an environment:
//   1. Copy this folder, rename, and add a room to carnot/worlds/CMakeLists.txt and its name to
//      cmake/CarnotAnnexes.cmake.
//   2. Write the bare world, a Game. If its turns should look like those of Sokoban and FrozenLake, stop there and
//      hand it to RagenFactory (worlds/ragen/factory.h), which brings prompts, parsing and budgets.
//   3. Otherwise write the conversation around it, an Environment, and the factory that makes tasks.
//   4. Add a line each to entries.h and worlds.cpp. The tests that every environment must pass (worlds_test.cpp) and
//      `carnot env NAME` then know it.
#pragma once

#include <memory>

#include "carnot/core/env/environment.h"

namespace carnot {

struct SkeletonOptions {
  int largest = 20;  ///< the hidden number is in 1..largest
  int max_turns = 6;

  void fields(FieldVisitor& visit);
};

std::unique_ptr<EnvironmentFactory> make_skeleton();

}  // namespace carnot
