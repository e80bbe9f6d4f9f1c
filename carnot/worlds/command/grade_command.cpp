#include <ostream>

#include "carnot/core/base/file.h"
#include "carnot/core/cli/command.h"
#include "carnot/core/cli/run_files.h"
#include "carnot/core/config/document.h"
#include "carnot/core/config/printer.h"
#include "carnot/core/config/reader.h"
#include "carnot/core/subprocess/peer.h"
#include "carnot/serving/openai/chat_endpoint.h"
#include "carnot/worlds/command/grade.h"

namespace carnot {
namespace {

namespace fs = std::filesystem;

class GradeCommand final : public Command {
 public:
  void declare(OptionParser& take) override {
    take.operand("PATH", path_, "rollouts (docs/trajectory_format.md), or a run folder: its latest",
                 Presence::Required);
    take.list("--reward", "FILE.py", reward_, "Python functions, as env.reward: FILE.py, FILE:FUNCTION");
    take.list("--scorers", "SCORERS", scorers_, "scorers with weights, as env.scorers: \"maths,0.1 * format\"");
    take.text("--output", "NEW", output_, "file to write", Presence::Required);
    take.text("--tokenizer", "PATH", tokenizer_, "tokenizer.json or its folder; default: the run's");
    take.operand("KEY=VALUE", settings_,
                 "further settings of the scorers, as in the section `env` of a data set's recipe: answer_in=boxed");
  }

  Exit run(const Console& console) override {
    if (reward_.empty() && scorers_.empty())
      return report(console, {"expected --reward or --scorers with it"}, Exit::Usage);
    try {
      const auto graded = grade();
      if (!graded) return report(console, graded.error());
      console.out << *graded << std::flush;
    } catch (const PeerFailure& failure) {
      return report(console, {failure.what()});
    } catch (const ChatFailure& failure) {
      return report(console, {failure.what()});
    }
    return Exit::Success;
  }

 private:
  Result<DatasetOptions> scoring() const {
    DatasetOptions options;
    CARNOT_ASSIGN_OR_RETURN(const auto document,
                            Document::parse("", "command line", {.overrides = settings_, .aliases = {}}));
    ConfigReader reader(document);
    reader.read("", options);
    CARNOT_RETURN_IF_ERROR(reader.finish());
    if (!reward_.empty()) options.reward = reward_;
    if (!scorers_.empty()) options.scorers = scorers_;
    return options;
  }

  Result<std::string> grade() const {
    CARNOT_ASSIGN_OR_RETURN(const auto options, scoring());
    CARNOT_ASSIGN_OR_RETURN(const auto all, rollouts_at(path_));
    const fs::path file = all.back().path;
    const fs::path where = tokenizer_.empty() ? tokenizer_beside(fs::absolute(file).lexically_normal()) : tokenizer_;
    if (where.empty())
      return Error{file.string() +
                   ": no tokenizer was found next to it, and responses are texts; name it with "
                   "--tokenizer"};
    CARNOT_ASSIGN_OR_RETURN(const auto tokenizer, Tokenizer::load(where));
    CARNOT_ASSIGN_OR_RETURN(auto rows, read_maybe_compressed(file));
    CARNOT_ASSIGN_OR_RETURN(
        const auto graded, grade_rows({.rows = std::move(rows), .name = file.string(), .scoring = options}, tokenizer));
    CARNOT_RETURN_IF_ERROR(write_file_atomically(output_, graded.rows));
    return graded.report;
  }

  fs::path path_, output_, tokenizer_;
  std::vector<std::string> reward_, scorers_, settings_;
};

}  // namespace

CommandEntry grade_entry() {
  return {.name = "grade",
          .arguments = "PATH --output NEW [key=value ...]",
          .summary = "score stored rollouts with another reward, and show what changes",
          .example = "runs/gsm8k --scorers maths --output graded.jsonl answer_in=boxed",
          .settings = Settings::OfItsOwn,
          .make = make_command<GradeCommand>};
}

}  // namespace carnot
