// env/play.h -- plays an environment by hand or by program, over text streams: the logic of `carnot env NAME`.
//
// Bare (the game alone): writes the observation, then for each line of input, taken as one action, the observation,
// `reward: ...` and `done: ...  success: ...  effective: ...  valid: ...`.
// With `prompt` (what a policy sees): writes the messages; each line of input is one response, `\n` standing for a line
// break and `\\` for a backslash; a missing assistant prefix is put before it. Where tools are offered, a line
// {"name": ..., "arguments": {...}} calls one. Budgets and penalties apply.
// With `json`, one object a line instead: first {env, config, seed, board, observation}, then {action, observation,
// reward, done, success, effective, valid}, each with what the game adds (Game::members); with `prompt` {env, config,
// seed, system, user, assistant_prefix}, then {response, text, reward, penalty, valid_action, done, outcome, success}.
// Rewards are as Python's repr writes them.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>

#include "carnot/core/base/result.h"
#include "carnot/core/env/environment.h"

namespace carnot {

struct PlayOptions {
  std::string name{};  ///< of the environment, for the first line of `json`
  std::uint64_t seed = 0;
  bool json = false;
  bool prompt = false;
};

/// Plays instance `seed` until it is done or the input ends; flushes after every step. An error where the factory has
/// no bare game, or none of this seed. REQUIRES: factory.prepare() has been called.
Status play(EnvironmentFactory& factory, const PlayOptions& options, std::istream& in, std::ostream& out);

}  // namespace carnot
