// Graders of answers.
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <map>
#include <memory>

#include "carnot/core/base/strings.h"
#include "carnot/worlds/reward/answer_metrics.h"
#include "carnot/worlds/reward/maths_answer.h"
#include "carnot/worlds/reward/maths_normal_form.h"
#include "carnot/worlds/reward/scorer.h"
#include "values.h"

namespace carnot::python {
namespace {

AnswerPlace place_of(const std::string& name) {
  const auto found = std::find(kAnswerPlaces.begin(), kAnswerPlaces.end(), name);
  if (found == kAnswerPlaces.end())
    throw nb::value_error(("place: expected one of " + join(kAnswerPlaces) + ", found " + name).c_str());
  return static_cast<AnswerPlace>(found - kAnswerPlaces.begin());
}

class Grader {
 public:
  Grader(const std::string& name, const std::string& place, std::string tag, const ScorerOptions& options)
      : place_(place_of(place)), tag_(std::move(tag)) {
    std::vector<std::string> names;
    for (const ScorerEntry& entry : scorers()) {
      names.emplace_back(entry.name);
      if (entry.name != name) continue;
      scorer_ = value_or_raise(entry.make(options));
      needs_gold_ = entry.needs_gold;
    }
    if (scorer_ == nullptr) throw nb::value_error(("name: expected one of " + join(names) + ", found " + name).c_str());
  }

  double score(const std::string& response, const std::vector<std::string>& golds) const {
    if (needs_gold_ && golds.empty()) throw nb::value_error("golds: expected the answers that count as right");
    const nb::gil_scoped_release others_may_run;
    return scorer_->score({.response = response, .answer = answer_at(place_, response, tag_), .golds = golds});
  }

 private:
  AnswerPlace place_;
  std::string tag_;
  std::unique_ptr<Scorer> scorer_{};
  bool needs_gold_ = false;
};

void make_grader(Grader* self, const std::string& name, const std::string& place, const std::string& tag,
                 const std::string& pattern, const std::string& schema, int length) {
  new (self) Grader(name, place, tag, {.pattern = pattern, .schema = schema, .length = length});
}

std::map<std::string, std::string> summaries() {
  std::map<std::string, std::string> result;
  for (const ScorerEntry& entry : scorers()) result.emplace(entry.name, entry.summary);
  return result;
}

constexpr const char* kGraderHelp =
    R"(Scores responses from 0 to 1 as a recipe's reward of this name does (graders()). `place` says where a response
has its answer: whole, tag (within <tag>), boxed, hashes (after ####), last_number or last_line. `pattern` is the
expression of the grader pattern, `schema` the JSON schema of json, `length` the characters of length.)";

}  // namespace

void bind_graders(nb::module_& module) {
  const ScorerOptions defaults;
  nb::class_<Grader>(module, "Grader", kGraderHelp)
      .def("__init__", make_grader, nb::arg("name"), nb::kw_only(), nb::arg("place") = "whole",
           nb::arg("tag") = "answer", nb::arg("pattern") = "", nb::arg("schema") = "",
           nb::arg("length") = defaults.length)
      .def("score", &Grader::score, nb::arg("response"), nb::arg("golds") = std::vector<std::string>(),
           "`golds` are the answers that count as right.");
  module.def("graders", summaries, "Every grader, with what it does in one line.");
  module.def(
      "answer_at",
      [](const std::string& place, std::string_view response, std::string_view tag) {
        return answer_at(place_of(place), response, tag);
      },
      nb::arg("place"), nb::arg("response"), nb::arg("tag") = "answer",
      "The answer of a response; None if the place is empty.");

  const auto prediction = nb::arg("prediction");
  const auto golds = nb::arg("golds");
  module.def("normalize_answer", normalize_answer, nb::arg("text"), "SQuAD's normal form.");
  module.def(
      "exact_match",
      [](std::string_view text, const std::vector<std::string>& right) { return exact_match(text, right); }, prediction,
      golds, "The normalised prediction equals a normalised gold answer.");
  module.def(
      "contains_answer",
      [](std::string_view text, const std::vector<std::string>& right) { return contains_answer(text, right); },
      prediction, golds, "The normalised prediction contains a normalised gold answer.");
  module.def(
      "answer_f1", [](std::string_view text, const std::vector<std::string>& right) { return answer_f1(text, right); },
      prediction, golds, "F1 of the bags of normalised words, the best over the gold answers.");
  module.def("boxed_content", boxed_content, nb::arg("text"), "What the last \\boxed{} holds, or None.");
  module.def("normalize_maths", normalize_maths, nb::arg("answer"),
             "A mathematical answer in the normal form of MATH's graders.");
  module.def("canonical_maths", canonical_maths, nb::arg("answer"),
             "One text for all answers that are the same number; for votes.");
  module.def("maths_equal", maths_equal, prediction, nb::arg("gold"), "Equal normal forms, or equal values.");
}

}  // namespace carnot::python
