#include <filesystem>
#include <ostream>

#include "carnot/core/cli/command.h"
#include "carnot/core/cli/terminal_text.h"
#include "carnot/core/commands/run_console.h"
#include "carnot/studies/analyze.h"

namespace carnot {
namespace {

/// A table of findings; numbers and page go to the output folder.
class AnalyzeCommand final : public Command {
 public:
  void declare(OptionParser& take) override {
    take.operand("NAME", request_.name, "`carnot list analyses` prints them", Presence::Required);
    take.operand("ARGUMENTS", arguments_,
                 "paths that it reads, and key=value: its options and, for a checkpoint, keys of its recipe");
    take.text("--output", "DIR", request_.output, "folder of NAME.json and NAME.html; default: analyses");
  }

  Exit run(const Console& console) override {
    for (const std::string& argument : arguments_) {
      // `carnot compare` names folders by settings: a path may hold an equals sign.
      if (argument.find('=') == std::string::npos || std::filesystem::exists(argument)) {
        request_.paths.emplace_back(argument);
      } else {
        request_.overrides.push_back(argument);
      }
    }
    const auto findings = analyze(request_, prepare_run(console, StopLeaves::Nothing));
    if (!findings) return report(console, findings.error());
    console.out << text_table(finding_rows(*findings)) << "\n";
    for (const std::string& note : findings->notes) console.out << note << "\n";
    console.out << "\nNumbers and page: " << (request_.output / request_.name).string() << ".json, .html\n"
                << std::flush;
    return Exit::Success;
  }

  Exit print_keys(const Console& console) override {
    if (request_.name.empty()) {
      console.out << "\n" << text_table(analysis_rows());
      return Exit::Success;
    }
    const auto entry = find_analysis(request_.name);
    if (!entry) return report(console, entry.error());
    console.out << "\n"
                << (*entry)->summary << " (arXiv:" << (*entry)->paper << "). Reads: " << name_of((*entry)->needs)
                << ".\n\nOptions of " << (*entry)->name << ":\n"
                << help_text(analysis_options(**entry));
    return Exit::Success;
  }

 private:
  AnalysisRequest request_;
  std::vector<std::string> arguments_;  ///< paths and `key=value`
};

}  // namespace

CommandEntry analyze_entry() {
  return {.name = "analyze",
          .arguments = "NAME [PATH ...] [key=value ...]",
          .summary = "an analysis of a paper: numbers, a page, and the paper's figures",
          .example = "aem-theorem",
          .settings = Settings::OfItsOwn,
          .make = make_command<AnalyzeCommand>};
}

}  // namespace carnot
