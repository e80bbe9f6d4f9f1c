// retrieval/retriever/server.h -- answers Search-R1's API over a retriever.
#pragma once

#include <memory>

#include "carnot/http/server.h"
#include "carnot/retrieval/retriever/retriever.h"

namespace carnot {

/// POST /retrieve (messages.h), and GET /health, which answers {"status": "ok"}. A request that cannot be read is
/// answered with status 422, a failure of the retriever with 500; either says why under `detail`, as FastAPI does.
/// `usual_topk`: passages for a request that does not say how many.
HttpHandler retriever_handler(std::shared_ptr<const Retriever> retriever, int usual_topk);

/// The body of an error, for HttpServerOptions::error_body too.
std::string retriever_error(const std::string& message);

}  // namespace carnot
