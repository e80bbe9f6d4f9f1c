// serving/serve.h -- the command `carnot serve`: a model that answers OpenAI's API over HTTP until it is told to stop.
#pragma once

#include <string>

#include "carnot/core/base/result.h"
#include "carnot/serving/jobs.h"
#include "carnot/serving/loaded_model.h"
#include "carnot/serving/text_service.h"

namespace carnot {

struct ServeRequest {
  ModelRequest model{};
  std::string name{};  ///< of the model in requests; empty: `model.path` as it is given
  std::string host = "127.0.0.1";
  int port = 8000;             ///< 0: any that is free
  std::string key_variable{};  ///< environment variable with the key that requests need; empty: they need none
  int connections = 256;
  TextServiceOptions texts{};
};

/// Loads the model, listens, and writes a line with the address. Once `control.stop_requested` is true it takes no more
/// requests, answers those in work and returns. The error says what is wrong with the request, among others: an address
/// that other machines reach, without a key. Throws what the engine threw.
Status run_serve(const ServeRequest& request, const JobControl& control);

}  // namespace carnot
