// The grammar of expressions in Boost.Spirit X3; the only file that includes it.
#include <algorithm>
#include <boost/spirit/home/x3.hpp>
#include <functional>
#include <optional>

#include "core/base/units.h"
#include "core/grid/expression.h"

namespace assay::grid {

/// Nodes are pushed as the grammar meets them; an operator takes its operands off the stack.
class ExpressionBuilder {
 public:
  explicit ExpressionBuilder(std::string_view text) { result_.text_ = text; }

  const char* begin() const { return result_.text_.data(); }
  const char* end() const { return begin() + result_.text_.size(); }

  void constant(Value value) {
    push({.operation = Operation::constant, .constant = std::move(value)});
  }

  void name(const char* first, const char* last) {
    const std::string word(first, last);
    auto& names = result_.names_;
    const auto found = std::find_if(names.begin(), names.end(),
                                    [&](const ExpressionName& n) { return n.text == word; });
    const auto index = static_cast<size_t>(found - names.begin());
    if (found == names.end()) names.push_back({word, static_cast<size_t>(first - begin())});
    push({.operation = Operation::name, .name = index});
  }

  void operation(Operation operation, size_t operands) {
    ExpressionNode node{.operation = operation};
    node.operands.assign(stack_.end() - static_cast<std::ptrdiff_t>(operands), stack_.end());
    stack_.resize(stack_.size() - operands);
    push(std::move(node));
  }

  void open() { opened_.push_back(stack_.size()); }
  size_t close() {
    const size_t count = stack_.size() - opened_.back();
    opened_.pop_back();
    return count;
  }

  /// Nesting is bounded, so that no text overflows the stack.
  bool enter() { return ++depth_ <= kMostNesting; }
  void refuse_call(std::string problem) { problem_ = std::move(problem); }
  const std::string& problem() const { return problem_; }
  bool too_deep() const { return depth_ > kMostNesting; }
  void leave() { --depth_; }

  Expression finish() {
    result_.root_ = stack_.back();
    return std::move(result_);
  }

 private:
  static constexpr int kMostNesting = 64;

  void push(ExpressionNode node) {
    stack_.push_back(result_.nodes_.size());
    result_.nodes_.push_back(std::move(node));
  }

  Expression result_;
  std::vector<size_t> stack_, opened_;
  std::string problem_;
  int depth_ = 0;
};

namespace {

namespace x3 = boost::spirit::x3;
using x3::char_;
using x3::lit;
using x3::string;

struct BuilderTag {};

template <class Context>
ExpressionBuilder& builder(const Context& context) {
  return x3::get<BuilderTag>(context).get();
}

template <class Context>
std::string matched(const Context& context) {
  const auto& range = x3::_attr(context);
  return {range.begin(), range.end()};
}

std::optional<Value> number(const std::string& text) {
  if (const auto i = parse_integer(text)) return Value(*i);
  if (const auto d = parse_real(text)) return Value(*d);
  if (const auto bytes = parse_bytes(text)) return Value(*bytes);
  if (const auto ns = parse_duration(text)) return Value(*ns);
  if (const auto count = parse_count(text)) return Value(*count);
  if (const auto share = parse_percent(text)) return Value(*share);
  return std::nullopt;
}

const auto push_number = [](auto& context) {
  const auto value = number(matched(context));
  x3::_pass(context) = value.has_value();
  if (value) builder(context).constant(*value);
};
const auto push_text = [](auto& context) {
  const std::string quoted = matched(context);
  builder(context).constant(quoted.substr(1, quoted.size() - 2));
};
const auto push_name = [](auto& context) {
  const auto& range = x3::_attr(context);
  builder(context).name(&*range.begin(), &*range.begin() + range.size());
};
const auto push_true = [](auto& context) { builder(context).constant(true); };
const auto push_false = [](auto& context) { builder(context).constant(false); };
const auto open = [](auto& context) { builder(context).open(); };
const auto close_list = [](auto& context) {
  builder(context).operation(Operation::list, builder(context).close());
};
const auto enter = [](auto& context) { x3::_pass(context) = builder(context).enter(); };
const auto leave = [](auto& context) { builder(context).leave(); };

auto apply(Operation operation, size_t operands) {
  return [=](auto& context) { builder(context).operation(operation, operands); };
}

/// A call with any number of arguments from one; `exact` > 0 wants that many.
auto apply_call(const char* name, Operation operation, size_t exact) {
  return [=](auto& context) {
    const size_t count = builder(context).close();
    const bool fits = exact == 0 || count == exact;
    x3::_pass(context) = fits;
    if (fits) return builder(context).operation(operation, count);
    builder(context).refuse_call(std::string(name) + " takes " + std::to_string(exact) +
                                 (exact == 1 ? " value, not " : " values, not ") +
                                 std::to_string(count));
  };
}

const x3::rule<struct OrRule> expression = "an expression";
const x3::rule<struct AndRule> conjunction = "an operand";
const x3::rule<struct NotRule> negation = "an operand";
const x3::rule<struct CompareRule> comparison = "an operand";
const x3::rule<struct SumRule> sum = "an operand";
const x3::rule<struct ProductRule> product = "an operand";
const x3::rule<struct UnaryRule> unary = "an operand";
const x3::rule<struct PrimaryRule> primary = "an operand";

const auto letter = char_("a-zA-Z_");
const auto word_end = !char_("a-zA-Z0-9_");

auto word(const char* text) { return x3::lexeme[lit(text) >> word_end]; }

const auto keyword = word("and") | word("or") | word("not") | word("in");
const auto identifier = letter >> *char_("a-zA-Z0-9_");
const auto name_text = x3::raw[x3::lexeme[identifier >> *(char_('.') >> identifier)]] - keyword;
// "1%" is a percentage only where no operand follows: "8 % 2" and "8%2" are remainders.
const auto after_percent = *x3::space >> (x3::eoi | char_(")],<>=!+*/-") | word("and") |
                                          word("or") | word("in") | word("not"));
const auto exponent = char_("eE") >> char_("+-") >> +x3::digit;
const auto number_text = x3::raw[x3::lexeme[x3::digit >> *(exponent | char_("a-zA-Z0-9.")) >>
                                            -(char_('%') >> &after_percent)]];
const auto quoted_text = x3::raw[x3::lexeme[(char_('\'') >> *~char_('\'') >> char_('\'')) |
                                            (char_('"') >> *~char_('"') >> char_('"'))]];

auto call(const char* name, Operation operation, size_t exact) {
  return word(name) >> lit('(')[open] > expression % ',' >
         lit(')')[apply_call(name, operation, exact)];
}

const auto primary_def =
    number_text[push_number] | quoted_text[push_text] | word("true")[push_true] |
    word("false")[push_false] | call("min", Operation::minimum, 0) |
    call("max", Operation::maximum, 0) | call("ceil_div", Operation::ceil_div, 2) |
    call("defined", Operation::defined, 1) | call("unmatched", Operation::unmatched, 2) |
    (lit('[')[open] > -(expression % ',') > lit(']')[close_list]) |
    (lit('(') > expression > lit(')')) | name_text[push_name];
const auto unary_def =
    (lit('-') > x3::eps[enter] > unary)[apply(Operation::negate, 1)] >> x3::eps[leave] | primary;
const auto product_def = unary >> *((lit('*') > unary)[apply(Operation::multiply, 2)] |
                                    (lit('/') > unary)[apply(Operation::divide, 2)] |
                                    (lit('%') > unary)[apply(Operation::remainder, 2)]);
const auto sum_def = product >> *((lit('+') > product)[apply(Operation::add, 2)] |
                                  (lit('-') > product)[apply(Operation::subtract, 2)]);
const auto comparison_def = sum >>
                            -((lit("==") > sum)[apply(Operation::equal, 2)] |
                              (lit("!=") > sum)[apply(Operation::not_equal, 2)] |
                              (lit("<=") > sum)[apply(Operation::less_equal, 2)] |
                              (lit(">=") > sum)[apply(Operation::greater_equal, 2)] |
                              (lit('<') > sum)[apply(Operation::less, 2)] |
                              (lit('>') > sum)[apply(Operation::greater, 2)] |
                              (word("in") > sum)[apply(Operation::in, 2)] |
                              (word("not") >> word("in") > sum)[apply(Operation::not_in, 2)]);
const auto negation_def =
    (word("not") > x3::eps[enter] > negation)[apply(Operation::logical_not, 1)] >> x3::eps[leave] |
    comparison;
const auto conjunction_def = negation >>
                             *(word("and") > negation)[apply(Operation::logical_and, 2)];
const auto expression_def =
    x3::eps[enter] >> conjunction >>
    *(word("or") > conjunction)[apply(Operation::logical_or, 2)] >> x3::eps[leave];

BOOST_SPIRIT_DEFINE(expression, conjunction, negation, comparison, sum, product, unary, primary)

/// The word or symbol that ends before `at`.
std::string token_before(std::string_view text, size_t at) {
  while (at > 0 && text[at - 1] == ' ') --at;
  const auto is_word = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
  };
  size_t first = at;
  if (first > 0 && is_word(text[first - 1])) {
    while (first > 0 && (is_word(text[first - 1]) || text[first - 1] == '.')) --first;
  } else {
    while (first > 0 && std::string_view("=!<>+-*/%(),[]").find(text[first - 1]) != text.npos)
      --first;
  }
  return std::string(text.substr(first, at - first));
}

[[noreturn]] void refuse(const ExpressionBuilder& builder, std::string_view text, size_t at,
                         const std::string& expected) {
  if (builder.too_deep()) throw ExpressionError("G16", "the expression is nested too deeply", at);
  if (!builder.problem().empty()) {
    throw ExpressionError("G16", builder.problem() + " in \"" + std::string(text) + "\"", at);
  }
  while (at < text.size() && text[at] == ' ') ++at;
  const std::string before = token_before(text, at);
  std::string message = "expected " + expected;
  if (!before.empty()) message += " after '" + before + "'";
  throw ExpressionError("G16", message + " in \"" + std::string(text) + "\"", at);
}

}  // namespace

Expression Expression::compile(std::string_view text) {
  ExpressionBuilder builder(text);
  const char* at = builder.begin();
  const auto grammar = x3::with<BuilderTag>(std::ref(builder))[expression];
  bool parsed = false;
  try {
    parsed = x3::phrase_parse(at, builder.end(), grammar, x3::space);
  } catch (const x3::expectation_failure<const char*>& error) {
    const std::string which = error.which() == "an expression" ? "an operand" : error.which();
    refuse(builder, text, static_cast<size_t>(error.where() - builder.begin()), which);
  }
  if (!parsed) refuse(builder, text, static_cast<size_t>(at - builder.begin()), "an operand");
  if (at != builder.end()) {
    refuse(builder, text, static_cast<size_t>(at - builder.begin()), "an operator or the end");
  }
  return builder.finish();
}

}  // namespace assay::grid
