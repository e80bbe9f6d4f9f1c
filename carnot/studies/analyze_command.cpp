#include <filesystem>
#include <ostream>

#include "carnot/core/base/json.h"
#include "carnot/core/cli/command.h"
#include "carnot/core/cli/list.h"
#include "carnot/core/cli/terminal_text.h"
#include "carnot/core/commands/run_console.h"
#include "carnot/studies/analyze.h"

namespace carnot {
namespace {

/// A row for each analysis: name, paper, what it reads, and its sentence.
std::vector<std::vector<std::string>> analysis_rows() {
  std::vector<std::vector<std::string>> rows;
  for (const AnalysisEntry& entry : analyses())
    rows.push_back({std::string(entry.name), entry.paper.empty() ? "-" : "arXiv:" + std::string(entry.paper),
                    "reads " + std::string(name_of(entry.needs)), std::string(entry.summary)});
  return rows;
}

std::vector<std::vector<std::string>> finding_rows(const AnalysisReport& report) {
  std::vector<std::vector<std::string>> rows{{"", "paper", "here"}};
  for (const Finding& finding : report.findings) rows.push_back({finding.what, finding.paper, finding.ours});
  return rows;
}

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
                << (*entry)->summary << citation(**entry) << ". Reads: " << name_of((*entry)->needs)
                << ".\n\nOptions of " << (*entry)->name << ":\n"
                << help_text(analysis_options(**entry));
    return Exit::Success;
  }

 private:
  AnalysisRequest request_;
  std::vector<std::string> arguments_;  ///< paths and `key=value`
};

}  // namespace

Result<std::string> list_analyses(const ListRequest& request) {
  if (!request.json) return text_table(analysis_rows());
  OrderedJson list = OrderedJson::array();
  for (const AnalysisEntry& entry : analyses())
    list.push_back(
        {{"name", entry.name}, {"paper", entry.paper}, {"needs", name_of(entry.needs)}, {"summary", entry.summary}});
  return list.dump(2) + "\n";
}

CommandEntry analyze_entry() {
  return {.name = "analyze",
          .arguments = "NAME [PATH ...] [key=value ...]",
          .summary = "an analysis of a paper: numbers, a page, and the paper's figures",
          .example = "aem-theorem",
          .settings = Settings::OfItsOwn,
          .make = make_command<AnalyzeCommand>};
}

}  // namespace carnot
