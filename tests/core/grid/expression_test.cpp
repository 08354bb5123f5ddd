// The expression language: precedence, exact arithmetic, undefined keys, units, error places.
#include "core/grid/expression.h"

#include <gtest/gtest.h>

#include <map>

namespace assay::grid {
namespace {

/// Values by name; other names are undefined.
class MapScope final : public Scope {
 public:
  MapScope(const Expression& expression, std::map<std::string, Value> values)
      : expression_(expression), values_(std::move(values)) {}
  Value value(size_t name) const override {
    const auto found = values_.find(expression_.names()[name].text);
    return found == values_.end() ? Value() : found->second;
  }

 private:
  const Expression& expression_;
  std::map<std::string, Value> values_;
};

std::string result(const std::string& text, std::map<std::string, Value> values = {}) {
  const Expression expression = Expression::compile(text);
  return print(expression.evaluate(MapScope(expression, std::move(values))));
}

std::string error(const std::string& text, std::map<std::string, Value> values = {}) {
  try {
    return "no error, but " + result(text, std::move(values));
  } catch (const ExpressionError& e) {
    return e.id + "@" + std::to_string(e.offset) + ": " + e.what();
  }
}

struct Example {
  const char* text;
  const char* value;
};

class Arithmetic : public ::testing::TestWithParam<Example> {};

TEST_P(Arithmetic, Computes) { EXPECT_EQ(result(GetParam().text), GetParam().value); }

INSTANTIATE_TEST_SUITE_P(
    Expressions, Arithmetic,
    ::testing::Values(
        Example{"1 + 2 * 3", "7"}, Example{"(1 + 2) * 3", "9"}, Example{"10 - 3 - 2", "5"},
        Example{"64 / 4 / 2", "8"}, Example{"7 % 4", "3"}, Example{"7%4", "3"},
        Example{"-3 + 5", "2"}, Example{"2 - -3", "5"}, Example{"1.5 * 2", "3.0"},
        Example{"1e-3", "0.001"}, Example{"3 / 2.0", "1.5"}, Example{"ceil_div(7, 2)", "4"},
        Example{"unmatched(['a*', 'b'], ['ab', 'c'])", "['b']"},
        Example{"unmatched(['*.w'], ['x.w']) == []", "true"},
        Example{"unmatched(['a'], nowhere)", "[]"}, Example{"min(3, 1, 2)", "1"},
        Example{"max(3, 1.5)", "3"}, Example{"64MiB", "67108864"},
        Example{"3GiB / 1GiB == 3", "true"}, Example{"30s", "30000000000"},
        Example{"1h30m == 90m", "true"}, Example{"250k", "250000"}, Example{"1%", "0.01"},
        Example{"50% > 0.4", "true"}, Example{"8 % 3 == 2", "true"}, Example{"[1, 2]", "[1, 2]"},
        Example{"'text'", "'text'"}, Example{"\"text\"", "'text'"}, Example{"true", "true"}));

INSTANTIATE_TEST_SUITE_P(
    Logic, Arithmetic,
    ::testing::Values(Example{"1 < 2 and 2 < 3", "true"}, Example{"1 > 2 or 2 > 1", "true"},
                      Example{"not 1 == 2", "true"}, Example{"not true or true", "true"},
                      Example{"true or false and false", "true"}, Example{"1 == 1.0", "true"},
                      Example{"1 == '1'", "false"}, Example{"'a' < 'b'", "true"},
                      Example{"3 in [1, 2, 3]", "true"}, Example{"'x' in []", "false"},
                      Example{"'x' not in ['y']", "true"}, Example{"2 >= 2", "true"},
                      Example{"2 != 2", "false"}, Example{"[1] == [1.0]", "true"}));

TEST(Expression, NamesAreListedOnceWithTheirPlace) {
  const Expression e = Expression::compile("mesh.tp > 1 and (mesh.tp < 8 or facts.heads == 3)");
  ASSERT_EQ(e.names().size(), 2U);
  EXPECT_EQ(e.names()[0].text, "mesh.tp");
  EXPECT_EQ(e.names()[1].text, "facts.heads");
  EXPECT_EQ(e.names()[1].offset, 32U);
}

TEST(Expression, KeywordsAreWholeWords) {
  EXPECT_EQ(result("nothing + inner + orbit",
                   {{"nothing", int64_t{1}}, {"inner", int64_t{2}}, {"orbit", int64_t{3}}}),
            "6");
  EXPECT_EQ(result("truest", {{"truest", int64_t{4}}}), "4");
  EXPECT_EQ(result("minimum", {{"minimum", int64_t{5}}}), "5");
}

TEST(Expression, UndefinedEqualsNothingAndIsFalse) {
  EXPECT_EQ(result("nope == 1"), "false");
  EXPECT_EQ(result("nope != 1"), "true");
  EXPECT_EQ(result("nope == nope"), "false");
  EXPECT_EQ(result("nope < 1 or nope >= 1"), "false");
  EXPECT_EQ(result("not nope"), "true");
  EXPECT_EQ(result("nope + 1"), "undefined");
  EXPECT_EQ(result("nope in [1]"), "false");
  EXPECT_EQ(result("nope not in [1]"), "true");
  EXPECT_EQ(result("defined(nope)"), "false");
  EXPECT_EQ(result("defined(yes)", {{"yes", false}}), "true");
  EXPECT_EQ(result("max(nope, 1)"), "undefined");
}

TEST(Expression, AndOrAreLazy) {
  EXPECT_EQ(result("false and 1 / 0 == 1"), "false");
  EXPECT_EQ(result("true or 1 / 0 == 1"), "true");
}

TEST(Expression, WholeDivisionIsExactOrNamesTheWayOut) {
  const std::map<std::string, Value> values = {{"train.global_batch", int64_t{64}},
                                               {"mesh.dp_shard", int64_t{3}}};
  EXPECT_EQ(error("train.global_batch / (8 * mesh.dp_shard)", values),
            "G09@0: 64 / (8 * 3) = 64 / 24 is not a whole number. Change train.global_batch or use "
            "ceil_div");
  EXPECT_EQ(error("(1 + 1) / 3"),
            "G09@0: (1 + 1) / 3 = 2 / 3 is not a whole number. Change a value or use ceil_div");
  EXPECT_EQ(error("7 / 2"), "G09@0: 7 / 2 is not a whole number. Change a value or use ceil_div");
  EXPECT_EQ(error("1 % 0"), "G09@0: 1 % 0 has no value");
}

TEST(Expression, OverflowIsAnError) {
  EXPECT_EQ(error("9223372036854775807 + 1"),
            "G09@0: 9223372036854775807 + 1 is too large for a whole number");
  EXPECT_EQ(error("ceil_div(1, 0)"),
            "G09@0: ceil_div(1, 0) needs whole numbers, the second above 0");
}

TEST(Expression, MistakesAreShownAtTheirPlace) {
  EXPECT_EQ(error("mesh.tp <= "), "G16@11: expected an operand after '<=' in \"mesh.tp <= \"");
  EXPECT_EQ(error(""), "G16@0: expected an operand in \"\"");
  EXPECT_EQ(error("1 + * 2"), "G16@4: expected an operand after '+' in \"1 + * 2\"");
  EXPECT_EQ(error("1 2"), "G16@2: expected an operator or the end after '1' in \"1 2\"");
  EXPECT_EQ(error("(1"), "G16@2: expected ')' after '1' in \"(1\"");
  EXPECT_EQ(error("not"), "G16@3: expected an operand after 'not' in \"not\"");
  EXPECT_EQ(error("a and"), "G16@5: expected an operand after 'and' in \"a and\"");
}

TEST(Expression, TypesAreNotMixed) {
  EXPECT_EQ(error("'a' + 1"), "G16@0: 'a' is no number: it cannot stand beside '+'");
  EXPECT_EQ(error("1 and true"), "G16@0: 1 is neither true nor false");
  EXPECT_EQ(error("1 in 2"), "G16@0: 'in' needs a list on its right, got 2");
  EXPECT_EQ(error("ceil_div(3)"), "G16@10: ceil_div takes 2 values, not 1 in \"ceil_div(3)\"");
  EXPECT_EQ(error("unmatched(['a'], 1)"), "G09@0: unmatched() needs two lists, not 1");
  EXPECT_EQ(error("3x"), "G16@0: expected an operand in \"3x\"");
}

TEST(Expression, NestingHasALimit) {
  const std::string deep = std::string(5000, '(') + "1" + std::string(5000, ')');
  EXPECT_NE(error(deep).find("nested too deeply"), std::string::npos);
  std::string minus(5000, '-');
  EXPECT_NE(error(minus + "1").find("G16"), std::string::npos);
  EXPECT_EQ(result("((((((1))))))"), "1");
}

}  // namespace
}  // namespace assay::grid
