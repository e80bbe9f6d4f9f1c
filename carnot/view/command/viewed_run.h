// view/command/viewed_run.h -- a run folder or a file of rollouts as the data of its page.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "carnot/core/cli/run_files.h"
#include "carnot/core/text/tokenizer.h"
#include "carnot/core/train/recipe.h"
#include "carnot/view/command/viewed_step.h"
#include "carnot/view/page.h"

namespace carnot {

/// What a path leads to.
struct ViewedRun {
  std::filesystem::path run{};  ///< the run's folder; may be empty
  std::string title{};
  std::vector<RolloutsOfStep> steps{};  ///< that have rollouts
  std::optional<Tokenizer> tokenizer{};
  std::filesystem::path tokenizer_path{};
  std::optional<Recipe> recipe{};
};

/// `tokenizer`: tokenizer.json or its folder; empty: the run's. `growing`: a run folder may have no rollouts yet.
Result<ViewedRun> find_viewed(const std::filesystem::path& path, const std::filesystem::path& tokenizer, bool growing);

/// The rows of a step, and what the methods make of them.
Result<ViewedStep> load_step(const ViewedRun& run, const RolloutsOfStep& step, const std::vector<PageMethod>& methods);

/// The number of a step as it is shown: its file's, or its rows' where the file's name has none.
std::int64_t shown_step(const RolloutsOfStep& step, const Group& group);

/// The alarms of the run so far, as notes; none without a run folder.
std::vector<std::string> alarms_of(const ViewedRun& run);

/// run_curves() of the run so far.
OrderedJson curves_of(const ViewedRun& run);

struct PageRequest {
  std::vector<RolloutsOfStep> steps{};
  std::string methods{};  ///< to compute credit by, as contestants.h has them; empty: credit as the rows hold it
  std::size_t bytes = 0;  ///< at most, each step with an equal share
  std::vector<std::string> notes{};  ///< that come first
  bool after = false;                ///< measure tokens under the weights after their step
};

struct ViewedPage {
  Page page;
  PageHead head{};
  std::size_t groups = 0;
};

/// The page of the request. The run must outlive it.
Result<ViewedPage> make_page(const ViewedRun& run, const PageRequest& request);

}  // namespace carnot
