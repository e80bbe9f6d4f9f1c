#include "carnot/view/page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <limits>
#include <map>
#include <numeric>
#include <sstream>

#include "carnot/core/base/json.h"
#include "carnot/core/base/utf8.h"
#include "carnot/core/data/rollout_file.h"
#include "carnot/core/data/trajectory.h"
#include "testing/random_groups.h"
#include "testing/small_tokenizer.h"

namespace carnot {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using testing::small_tokenizer;

constexpr std::size_t kEnough = std::size_t{1} << 30;

std::string data_text(const std::string& html) {
  const std::string start = "<script type=\"application/json\" id=\"data\">";
  const auto begin = html.find(start) + start.size();
  return html.substr(begin, html.find("</script>", begin) - begin);
}

Json data_of(const Page& page, const PageHead& head = {}) {
  return parse_json(data_text(page.html(head, false)), "page").value();
}

/// The numbers of a list that may be written as its one value, as one for each turn of so many sampled tokens, or not
/// at all.
std::vector<double> numbers(const Json& object, std::string_view name, const std::vector<std::size_t>& turns) {
  const double none = std::numeric_limits<double>::quiet_NaN();
  const auto number = [&](const Json& value) { return value.is_null() ? none : value.get<double>(); };
  const std::size_t count = std::accumulate(turns.begin(), turns.end(), std::size_t{0});
  const auto found = object.find(name);
  if (found == object.end()) return std::vector<double>(count, none);
  if (found->is_object()) {
    std::vector<double> list;
    for (std::size_t k = 0; k < turns.size(); ++k) list.insert(list.end(), turns[k], number(found->at("turns").at(k)));
    return list;
  }
  if (!found->is_array()) return std::vector<double>(count, number(*found));
  std::vector<double> list;
  for (const Json& value : *found) list.push_back(number(value));
  return list;
}

/// What is left of a number on the page.
double five_digits(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.5g", value);
  return std::strtod(text, nullptr);
}

void expect_rounded(const std::vector<double>& shown, const std::vector<Json>& row, const std::string& what) {
  ASSERT_EQ(shown.size(), row.size()) << what;
  for (std::size_t i = 0; i < row.size(); ++i) {
    EXPECT_EQ(std::isnan(shown[i]), row[i].is_null()) << what << " " << i;
    if (!row[i].is_null()) {
      EXPECT_EQ(shown[i], five_digits(row[i].get<double>())) << what << " " << i;
    }
  }
}

std::vector<Json> on_sampled(const Json& row, std::string_view field) {
  std::vector<Json> values;
  const Json& mask = row.at("loss_mask");
  for (std::size_t t = 0; t < mask.size(); ++t)
    if (mask[t] == 1) values.push_back(row.contains(field) ? row.at(std::string(field)).at(t) : Json());
  return values;
}

/// The turns of a leaf, from the root on.
std::vector<Json> path_of(const Json& tree, const Json& leaf) {
  std::vector<Json> turns;
  for (int turn = leaf.at("turn"); turn >= 0; turn = turns.front().at("parent"))
    turns.insert(turns.begin(), tree.at("turns").at(static_cast<std::size_t>(turn)));
  return turns;
}

/// Sampled tokens of the turns of a leaf.
std::vector<std::size_t> turns_of(const Json& tree, const Json& leaf) {
  std::vector<std::size_t> sampled;
  for (const Json& turn : path_of(tree, leaf))
    sampled.push_back(turn.at("sampled").at(1).get<std::size_t>() - turn.at("sampled").at(0).get<std::size_t>());
  return sampled;
}

/// Compares a leaf of the page with the row that a run writes of the same trajectory.
void expect_equals_row(const Json& page, const Json& tree, const Json& leaf, const Json& row) {
  EXPECT_EQ(leaf.at("id"), row.at("traj_id"));
  EXPECT_EQ(leaf.at("outcome"), row.at("outcome"));
  EXPECT_EQ(leaf.value("success", false), row.at("success").get<bool>());
  EXPECT_EQ(leaf.value("dropped", false), row.value("dropped", false));
  EXPECT_EQ(leaf.at("score").get<double>(), five_digits(row.at("score")));
  std::vector<Json> tokens, mask, segments;
  std::string text;
  std::map<std::string, std::vector<double>> signals;
  std::size_t turns = 0;
  constexpr std::string_view kSignals[] = {"entropy", "logp_rollout", "logp_old", "logp", "logp_ref", "value"};
  for (const Json& turn : path_of(tree, leaf)) {
    const std::size_t begin = turn.at("sampled").at(0), end = turn.at("sampled").at(1);
    for (std::size_t t = 0; t < turn.at("tokens").size(); ++t) {
      const std::string id = std::to_string(turn.at("tokens").at(t).get<int>());
      tokens.push_back(turn.at("tokens").at(t));
      mask.push_back(t >= begin && t < end ? 1 : 0);
      if (page.at("vocabulary").contains(id))
        text += page.at("vocabulary").at(id).get<std::string>();
      else if (turn.contains("texts"))
        text += turn.at("texts").value(std::to_string(t), "");
    }
    if (turn.contains("spans"))
      for (const Json& span : turn.at("spans"))
        for (int t = span.at(1); t < span.at(2); ++t) segments.push_back(kSpanKindNames[span.at(0).get<std::size_t>()]);
    for (const std::string_view name : kSignals) {
      const std::vector<double> own = numbers(turn, name, {end - begin});
      auto& all = signals[std::string(name)];
      all.insert(all.end(), own.begin(), own.end());
    }
    const Json& entropy = row.at("turns").at(turns++).at("turn_entropy");
    EXPECT_EQ(turn.contains("turn_entropy"), !entropy.is_null());
    if (!entropy.is_null()) {
      EXPECT_EQ(turn.at("turn_entropy").get<double>(), five_digits(entropy));
    }
    text += '\n';
  }
  EXPECT_EQ(Json(tokens), row.at("token_ids"));
  EXPECT_EQ(Json(mask), row.at("loss_mask"));
  EXPECT_EQ(Json(segments), row.at("segment"));
  for (const auto& [name, values] : signals) expect_rounded(values, on_sampled(row, name), name);
  for (const std::string_view name : {"advantage", "weight", "clip_scale", "value_target"}) {
    std::vector<Json> expected = on_sampled(row, name);
    // A trajectory that counts nowhere has no credit.
    if (row.at("valid") == false || row.value("dropped", false)) std::ranges::fill(expected, Json());
    expect_rounded(numbers(leaf.at("credit").at(0), name, turns_of(tree, leaf)), expected, std::string(name));
  }
  std::string expected;
  for (std::size_t k = 0; k < row.at("turns").size(); ++k) {
    const Json& turn = row.at("turns").at(k);
    std::vector<TokenId> ids;
    for (std::size_t t = turn.at("start"); t < turn.at("end"); ++t) ids.push_back(row.at("token_ids").at(t));
    expected += with_replacement_characters(small_tokenizer().decode(ids)) + "\n";
  }
  EXPECT_EQ(text, expected);
}

TEST(ViewPage, HoldsWhatTheRowsHold) {
  int branches = 0, trajectories_compared = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    RandomStream random(seed);
    const std::vector<Group> groups = testing::random_groups(
        random,
        {.vocabulary = small_tokenizer().vocab_size(), .dropped_share = 0.2, .columns = testing::all_columns()});
    const CreditTable credit = testing::random_credit(random, groups);
    const ViewedMethod method{.credit = credit};
    const std::string rows = rollout_rows(groups, credit, {});
    Page page(&small_tokenizer());
    std::size_t first = 0;
    for (const Group& group : groups) {
      const std::size_t members = trajectories(std::span(&group, 1)).size();
      EXPECT_TRUE(page.add({.step = 7, .group = &group, .first = first, .methods = std::span(&method, 1)}, kEnough));
      first += members;
    }
    const Json data = data_of(page);
    std::istringstream lines(rows);
    std::string line;
    ASSERT_EQ(data.at("groups").size(), groups.size());
    for (const Json& group : data.at("groups"))
      for (const Json& tree : group.at("trees"))
        for (const Json& leaf : tree.at("leaves")) {
          ASSERT_TRUE(std::getline(lines, line));
          const Json row = parse_json(line, "row").value();
          EXPECT_EQ(group.at("uid"), row.at("uid"));
          expect_equals_row(data, tree, leaf, row);
          ++trajectories_compared;
          if (!leaf.contains("parent")) continue;
          ++branches;
          EXPECT_EQ(tree.at("leaves").at(leaf.at("parent").get<std::size_t>()).at("id"), row.at("parent"));
          EXPECT_EQ(leaf.at("branch_turn"), row.at("branch_turn"));
        }
    EXPECT_FALSE(std::getline(lines, line));
  }
  EXPECT_GT(branches, 20);
  EXPECT_GT(trajectories_compared, 200);
}

/// One trajectory of one turn: a prompt token, then these, sampled.
Group one_turn(const std::vector<TokenId>& sampled) {
  Turn turn{.tokens = {5}, .sampled_begin = 1, .sampled_end = 1 + static_cast<int>(sampled.size())};
  turn.tokens.insert(turn.tokens.end(), sampled.begin(), sampled.end());
  turn.spans = {{SpanKind::Prompt, 0, 1}, {SpanKind::Think, 1, turn.sampled_end}};
  Tree tree;
  tree.turns.push_back(turn);
  tree.leaves.push_back({.turn = 0, .trajectory_id = "a/0"});
  Group group{.uid = "a"};
  group.trees.push_back(tree);
  return group;
}

TEST(ViewPage, HoldsTheClipStateOfEachToken) {
  const Group group = one_turn({6, 7, 8, 9, 10, 11});
  const double none = std::numeric_limits<double>::quiet_NaN();
  const ViewedMethod method{.states = {{.ratio = {none, 1, 0.7, 1.4, 9, 30, none},
                                        .clip_state = {"", "none", "low", "high", "dual", "limit", ""}}}};
  Page page(nullptr);
  EXPECT_TRUE(page.add({.group = &group, .methods = std::span(&method, 1)}, kEnough));
  const Json data = data_of(page), leaf = data.at("groups").at(0).at("trees").at(0).at("leaves").at(0);
  EXPECT_EQ(leaf.at("credit").at(0).at("clip"), "nlhdm-");
  EXPECT_EQ(leaf.at("credit").at(0).at("ratio"), Json::parse("[1.0, 0.7, 1.4, 9.0, 30.0, null]"));
  EXPECT_TRUE(data.at("vocabulary").is_null());
}

TEST(ViewPage, ReadsTheStatesThatCreditExplainWrote) {
  const TokenStates states =
      states_in_row(R"({"clip_state": [null, "none", "high"], "ratio": [null, 1.5, 2], "token_ids": [1, 2, 3]})", 3);
  EXPECT_EQ(states.clip_state, (std::vector<std::string>{"", "none", "high"}));
  ASSERT_EQ(states.ratio.size(), 3u);
  EXPECT_EQ(states.ratio[1], 1.5);
  EXPECT_TRUE(states_in_row(R"({"token_ids": [1]})", 1).clip_state.empty());
  EXPECT_TRUE(states_in_row(R"({"clip_state": ["none"], "ratio": [1]})", 2).clip_state.empty());
}

TEST(ViewPage, RunsNoScriptsFromModelOutput) {
  const std::string hostile = "</script><script>alert(1)</script><!--<img src=x onerror=alert(1)>\x1b[2J\x01";
  Group group = one_turn(small_tokenizer().encode(hostile));
  group.uid = group.trees[0].leaves[0].trajectory_id = hostile;
  group.ground_truth = {hostile};
  group.info["question"] = hostile;
  group.trees[0].turns[0].tool = hostile;
  group.trees[0].leaves[0].answer = hostile;
  Page page(&small_tokenizer());
  EXPECT_TRUE(page.add({.group = &group}, kEnough));
  const PageHead head{.title = hostile, .facts = {{"method", hostile}}, .notes = {hostile}};
  const std::string html = page.html(head, false), text = data_text(html);
  EXPECT_THAT(text, Not(HasSubstr("<")));
  for (const char c : text) EXPECT_TRUE(static_cast<unsigned char>(c) >= 0x20 || c == '\n') << static_cast<int>(c);
  const Json data = parse_json(text, "page").value();
  EXPECT_EQ(data.at("title"), hostile);
  EXPECT_EQ(data.at("groups").at(0).at("info").at("question"), hostile);
  EXPECT_THAT(html, HasSubstr("default-src 'none'"));
  for (const char* forbidden : {"innerHTML", "src=", "href=", "@import", "url(", "eval(", "connect-src"})
    EXPECT_THAT(html.substr(0, html.find(text)) + html.substr(html.find(text) + text.size()), Not(HasSubstr(forbidden)))
        << forbidden;
}

TEST(ViewPage, TakesWholeGroupsAsLongAsThereIsRoom) {
  const Group group = one_turn({6, 7, 8});
  Page page(nullptr);
  int added = 0;
  while (page.add({.group = &group}, 1000)) ++added;
  EXPECT_GT(added, 1);
  EXPECT_LE(page.data({}).size(), Page(nullptr).data({}).size() + 1000u);
  EXPECT_EQ(data_of(page).at("groups").size(), static_cast<std::size_t>(added));
}

TEST(ViewPage, HasItsFirstGroupsBeforeTheScriptAndTheOthersBehindIt) {
  const Group group = one_turn(std::vector<TokenId>(20'000, 7));
  Page page(nullptr);
  while (page.add({.step = 3, .group = &group}, 3'500'000)) continue;
  const Json all = parse_json(page.data({}), "page").value();
  const std::string html = page.html({}, false);
  const Json first = parse_json(data_text(html), "page").value();
  std::size_t groups = first.at("groups").size(), parts = 0;
  EXPECT_LT(groups, all.at("groups").size());
  const std::string begin = "class=\"more\">";
  for (std::size_t at = html.find(begin); at != std::string::npos; at = html.find(begin, at + 1), ++parts) {
    const std::size_t from = at + begin.size();
    const Json more = parse_json(html.substr(from, html.find("</script>", from) - from), "page").value();
    groups += more.size();
    EXPECT_EQ(more.at(0), all.at("groups").at(0));
  }
  EXPECT_EQ(groups, all.at("groups").size());
  EXPECT_EQ(first.at("later"), parts);
  EXPECT_EQ(all.at("later"), 0);
}

TEST(ViewPage, MayAskTheProgramThatServesItAndNoOther) {
  const Page page(nullptr);
  EXPECT_THAT(page.html({}, true), HasSubstr("; connect-src 'self'\">"));
  EXPECT_THAT(page.html({}, true), HasSubstr("<body data-served>"));
  EXPECT_THAT(page.html({}, false), Not(HasSubstr("connect-src")));
}

}  // namespace
}  // namespace carnot
