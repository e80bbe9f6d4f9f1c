#include "carnot/cli/play_environment.h"

#include "carnot/config/document.h"
#include "carnot/config/reader.h"
#include "carnot/env/environment.h"
#include "carnot/env/play.h"

namespace carnot {

Status play_environment(const PlayRequest& request, const Console& console) {
  auto factory = make_environment_factory(request.name);
  if (!factory) return factory.error();
  const auto document = Document::parse("", "command line", {.overrides = request.overrides, .aliases = {}});
  if (!document) return document.error();
  ConfigReader reader(*document);
  reader.read("", **factory);
  if (const Status status = reader.finish(); !status) return status;
  if (const Status status = (*factory)->prepare(request.run_seed); !status) return status;
  const PlayOptions options{.name = request.name, .seed = request.seed, .json = request.json, .prompt = request.prompt};
  return play(**factory, options, console.in, console.out);
}

}  // namespace carnot
