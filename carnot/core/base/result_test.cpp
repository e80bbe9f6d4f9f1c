#include "carnot/core/base/result.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>

namespace carnot {
namespace {

Status even(int number) {
  if (number % 2 != 0) return Error{std::to_string(number) + " is odd"};
  return Done{};
}

Result<int> half(int number) {
  CARNOT_RETURN_IF_ERROR(even(number));
  return number / 2;
}

Result<std::unique_ptr<int>> owned_half(int number) {
  CARNOT_ASSIGN_OR_RETURN(auto owned, half(number));
  return std::make_unique<int>(owned);
}

Result<std::map<int, std::string>> named_half(int number) {
  CARNOT_ASSIGN_OR_RETURN(const int found, half(number));
  return std::map<int, std::string>{{found, "half"}};
}

TEST(ReturnIfError, ReturnsTheErrorAndDropsAValue) {
  EXPECT_EQ(*half(6), 3);
  EXPECT_EQ(half(7).error().message, "7 is odd");
}

TEST(ReturnIfError, ContinuesAfterAResultWithAValue) {
  const auto quarter_exists = [](int number) -> Status {
    CARNOT_RETURN_IF_ERROR(half(number));
    return Done{};
  };
  EXPECT_TRUE(quarter_exists(6));
  EXPECT_EQ(quarter_exists(7).error().message, "7 is odd");
}

TEST(ReturnIfError, ReturnsFromAFunctionOfErrors) {
  const auto problem_of = [](int number) -> Error {
    CARNOT_RETURN_IF_ERROR(even(number));
    return Error{"none"};
  };
  EXPECT_EQ(problem_of(6).message, "none");
  EXPECT_EQ(problem_of(7).message, "7 is odd");
}

TEST(ReturnIfError, IsOneStatement) {
  const auto checked = [](bool first, int number) -> Status {
    if (first)
      CARNOT_RETURN_IF_ERROR(even(number));
    else
      return Error{"not the first"};
    switch (number) {
      case 2: CARNOT_RETURN_IF_ERROR(even(3)); break;
      default: break;
    }
    return Done{};
  };
  EXPECT_TRUE(checked(true, 4));
  EXPECT_EQ(checked(true, 5).error().message, "5 is odd");
  EXPECT_EQ(checked(true, 2).error().message, "3 is odd");
  EXPECT_EQ(checked(false, 4).error().message, "not the first");
}

TEST(ReturnIfError, EvaluatesOnce) {
  int calls = 0;
  const auto counted = [&](int number) {
    ++calls;
    return even(number);
  };
  const auto run = [&](int number) -> Status {
    CARNOT_RETURN_IF_ERROR(counted(number));
    return Done{};
  };
  EXPECT_TRUE(run(2));
  EXPECT_EQ(calls, 1);
  EXPECT_FALSE(run(3));
  EXPECT_EQ(calls, 2);
}

TEST(AssignOrReturn, DeclaresAConstant) {
  EXPECT_EQ(named_half(6)->at(3), "half");
  EXPECT_EQ(named_half(7).error().message, "7 is odd");
}

TEST(AssignOrReturn, MovesAValueThatCannotBeCopied) {
  const auto doubled = [](int number) -> Result<std::unique_ptr<int>> {
    CARNOT_ASSIGN_OR_RETURN(auto owned, owned_half(number));
    *owned *= 4;
    return owned;
  };
  EXPECT_EQ(**doubled(6), 12);
  EXPECT_EQ(doubled(7).error().message, "7 is odd");
}

TEST(AssignOrReturn, AssignsToAnExistingVariableAndLeavesItOnAnError) {
  struct Holder {
    std::unique_ptr<int> owned = std::make_unique<int>(1);
    std::map<std::string, int> halves;
  } holder;
  const auto hold = [&](int number) -> Status {
    CARNOT_ASSIGN_OR_RETURN(holder.halves["last"], half(number));
    CARNOT_ASSIGN_OR_RETURN(holder.owned, owned_half(number));
    return Done{};
  };
  EXPECT_TRUE(hold(6));
  EXPECT_EQ(*holder.owned, 3);
  EXPECT_EQ(holder.halves["last"], 3);
  EXPECT_EQ(hold(7).error().message, "7 is odd");
  EXPECT_EQ(*holder.owned, 3);
}

TEST(AssignOrReturn, TakesTypesWithCommas) {
  const auto size_of = [](int number) -> Result<std::size_t> {
    CARNOT_ASSIGN_OR_RETURN(const auto by_auto, named_half(number));
    using Names = std::map<int, std::string>;
    CARNOT_ASSIGN_OR_RETURN(const Names by_alias, named_half(number));
    CARNOT_ASSIGN_OR_RETURN(const auto given, Result<std::map<int, std::string>>(by_alias));
    return by_auto.size() + by_alias.size() + given.size();
  };
  EXPECT_EQ(*size_of(6), 3u);
  EXPECT_EQ(size_of(7).error().message, "7 is odd");
}

TEST(AssignOrReturn, CanBeNestedThroughALambda) {
  const auto nested = [](int number) -> Result<int> {
    CARNOT_ASSIGN_OR_RETURN(const int found, [&]() -> Result<int> {
      CARNOT_ASSIGN_OR_RETURN(const int inner, half(number));
      return inner + 1;
    }());
    return found;
  };
  EXPECT_EQ(*nested(6), 4);
  EXPECT_EQ(nested(7).error().message, "7 is odd");
}

}  // namespace
}  // namespace carnot
