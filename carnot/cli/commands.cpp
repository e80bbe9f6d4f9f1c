#include "carnot/cli/commands.h"

#include <cstdlib>
#include <ostream>

#include "carnot/base/file.h"
#include "carnot/cli/list.h"
#include "carnot/config/printer.h"
#include "carnot/env/environment.h"
#include "carnot/method/method.h"
#include "carnot/text/tokenize_lines.h"

namespace carnot {
namespace {

Result<std::string> environment_keys(const std::string& name) {
  auto factory = make_environment_factory(name);
  if (!factory) return factory.error();
  FieldTable table;
  table.add("", **factory);
  return "Keys of " + name + ":\n" + help_text(table);
}

Result<std::string> method_keys(const std::string& composition) {
  auto recipe = parse_method(composition);
  if (!recipe) return recipe.error();
  FieldTable table;
  table.add("", *recipe);
  return "Keys of " + composition + ":\n" + help_text(table);
}

Exit print(const Result<std::string>& text, const Console& console) {
  if (!text) return report(console, text.error());
  console.out << *text << std::flush;
  return Exit::Success;
}

}  // namespace

Exit execute(const HelpRequest& request, const Console& console) {
  console.out << request.text << std::flush;
  if (!request.environment.empty()) return print(environment_keys(request.environment), console);
  if (!request.method.empty()) return print(method_keys(request.method), console);
  return Exit::Success;
}

Exit execute(const VersionRequest&, const Console& console) {
  return print(std::string("carnot " CARNOT_VERSION "\n"), console);
}

Exit execute(const ManualRequest&, const Console& console) {
  return print(manual_page(command_usages(), CARNOT_VERSION), console);
}

Exit execute(const InspectRequest& request, const Console& console) {
  InspectRequest shown = request;
  shown.colour = request.colour && console.terminal && std::getenv("NO_COLOR") == nullptr;
  return print(inspect(shown), console);
}

Exit execute(const CreditRequest& request, const Console& console) {
  const auto rows = credit_rows(request);
  if (!rows) return report(console, rows.error());
  warn(console, rows->method.warnings);
  return write_output(written_rows(*rows), request.output, console);
}

Exit execute(const ListRequest& request, const Console& console) {
  if (request.topic == "methods") return print(list_methods(request.json), console);
  if (request.topic == "environments") return print(list_environments(request.json), console);
  if (request.topic == "chats") return print(list_chats(request.json), console);
  return print(list_everything(request.json), console);
}

Exit execute(const PlayRequest& request, const Console& console) {
  return ended(play_environment(request, console), console);
}

Exit execute(const TokenizeRequest& request, const Console& console) {
  const auto tokenizer = Tokenizer::load(request.tokenizer);
  if (!tokenizer) return report(console, tokenizer.error());
  const auto convert = request.decode ? decode_lines : encode_lines;
  return ended(convert(*tokenizer, console.in, console.out), console);
}

}  // namespace carnot
