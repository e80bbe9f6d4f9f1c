// serving/tinker/tinker_api.h -- the routes below /api/v1 that the package `tinker` uses, over one service.
#pragma once

#include "carnot/http/server.h"
#include "carnot/serving/tinker/tinker_service.h"

namespace carnot {

class TinkerApi {
 public:
  /// `samples`: requests for texts that a client may have open at a time.
  TinkerApi(TinkerService& service, int samples) : service_(service), samples_(samples) {}

  /// Any thread.
  HttpReply answer(const HttpCall& call);

 private:
  HttpReply post(const std::string& route, const HttpCall& call);
  HttpReply sessions(const std::string& route, const std::string& body);
  HttpReply work(const std::string& route, const HttpCall& call);
  HttpReply retrieve(const std::string& body);
  HttpReply get(const std::string& route);
  HttpReply info(const std::string& body);
  HttpReply weights_info(const std::string& body);
  HttpReply checkpoints(const std::string& method, const std::string& model_id, const std::string& checkpoint_id);

  TinkerService& service_;
  int samples_;
};

/// The body of an error.
std::string tinker_error(const std::string& message);

}  // namespace carnot
