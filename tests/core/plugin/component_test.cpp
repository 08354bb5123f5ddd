// Manifests and option values survive JSON and text, both ways.
#include "core/plugin/component.h"

#include "core/plugin/option_text.h"
#include "tests/core/plugin/fixture.h"

namespace assay {
namespace {

OptionSpec spec(const std::string& name, OptionType type, OptionValue value) {
  OptionSpec s;
  s.name = name;
  s.type = type;
  s.default_value = std::move(value);
  s.doc = "what it does";
  return s;
}

Component lion() {
  Component c;
  c.kind = Kind::optim;
  c.name = "lion";
  c.summary = "sign of momentum";
  c.default_lr = 1e-4;
  c.provides = {"meta.safe"};
  c.needs = {"param.whole"};
  c.conflicts = {{"memory/offload", "it moves tensors"}};
  c.rules = {{"R-LAB", "mesh.tp > 1", "why"}};
  c.options = {spec("beta", OptionType::real, 0.9), spec("bits", OptionType::integer, int64_t{8}),
               spec("mode", OptionType::choice, std::string("a")),
               spec("bucket", OptionType::bytes, int64_t{1} << 20),
               spec("names", OptionType::list, std::vector<std::string>{"x", "y"})};
  c.options[0].range = {0, 1};
  c.options[0].aliases = {"momentum"};
  c.options[1].range = {1};
  c.options[2].choices = {"a", "b"};
  c.options[3].affects = Affects::speed;
  return c;
}

TEST(Component, ManifestSurvivesJson) {
  const nlohmann::json written = to_json(lion());
  const Component read = component_from_json(nlohmann::json::parse(written.dump()));
  EXPECT_EQ(to_json(read), written);
  EXPECT_EQ(read.id(), "optim/lion");
  EXPECT_EQ(read.options[0].range.high, 1);
  EXPECT_TRUE(std::isinf(read.options[1].range.high));
  EXPECT_EQ(read.option("momentum"), &read.options[0]);
  EXPECT_EQ(read.option("nothing"), nullptr);
}

TEST(Component, RefusesAForeignDocument) {
  EXPECT_THROW(component_from_json({{"kind", "optim"}}), Error);
  nlohmann::json document = to_json(lion());
  document["kind"] = "optimizer";
  EXPECT_THROW(component_from_json(document), Error);
  document = to_json(lion());
  document["options"][0]["type"] = "number";
  EXPECT_THROW(component_from_json(document), Error);
}

TEST(Component, ReadsAResolvedMap) {
  const Component c = lion();
  const OptionValues values =
      option_values(c, {{"name", "lion"}, {"lr", 0.1}, {"momentum", 1}, {"names", {"z"}}});
  EXPECT_EQ(values.size(), 2u);
  EXPECT_EQ(std::get<double>(values.at("beta")), 1.0);
  EXPECT_EQ(std::get<std::vector<std::string>>(values.at("names")).front(), "z");
  EXPECT_EQ(refusal_of([&] {
              option_values(c, {{"beta", 7}});
            }),
            "'beta' must be in [0, 1]; got '7'\n");
  EXPECT_EQ(refusal_of([&] {
              option_values(c, {{"bett", 0.1}});
            }),
            "unknown option 'bett'\n  hint: did you mean 'beta'?\n");
  EXPECT_NE(refusal_of([&] { option_values(c, {{"beta", nullptr}}); }), "accepted");
}

TEST(OptionText, ReadsByDeclaredType) {
  EXPECT_EQ(std::get<bool>(parse_option(spec("x", OptionType::boolean, true), "false")), false);
  EXPECT_EQ(std::get<int64_t>(parse_option(spec("x", OptionType::bytes, int64_t{0}), "64MiB")),
            64 << 20);
  EXPECT_EQ(std::get<int64_t>(parse_option(spec("x", OptionType::count, int64_t{0}), "2k")), 2000);
  EXPECT_EQ(std::get<std::string>(parse_option(spec("x", OptionType::text, std::string()), "no")),
            "no");
  EXPECT_EQ(std::get<std::vector<std::string>>(
                parse_option(spec("x", OptionType::list, std::vector<std::string>{}), "[a, b]")),
            (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(refusal_of([] { parse_option(spec("x", OptionType::integer, int64_t{0}), "1e3"); }),
            "'x' must be a whole number; got '1e3'\n");
}

TEST(OptionText, PrintedValuesReadBack) {
  const std::vector<std::pair<OptionSpec, OptionValue>> cases = {
      {spec("x", OptionType::real, 0.0), 1e-4},
      {spec("x", OptionType::bytes, int64_t{0}), int64_t{3} << 20},
      {spec("x", OptionType::bytes, int64_t{0}), int64_t{1000}},
      {spec("x", OptionType::duration, int64_t{0}), int64_t{90'000'000'000}},
      {spec("x", OptionType::boolean, false), true},
      {spec("x", OptionType::list, std::vector<std::string>{}),
       std::vector<std::string>{"a", "b"}}};
  for (const auto& [s, value] : cases) {
    EXPECT_EQ(parse_option(s, print_option(s, value)), value) << print_option(s, value);
  }
  EXPECT_EQ(print_option(spec("x", OptionType::text, std::string()), std::string("it's")),
            "'it''s'");
  EXPECT_EQ(print_option(spec("x", OptionType::text, std::string()), std::string()), "''");
}

TEST(OptionText, AllowedValues) {
  const Component c = lion();
  EXPECT_EQ(allowed_values(c.options[0]), "[0, 1]");
  EXPECT_EQ(allowed_values(c.options[1]), ">= 1");
  EXPECT_EQ(allowed_values(c.options[2]), "a|b");
  EXPECT_EQ(allowed_values(c.options[3]), "");
}

}  // namespace
}  // namespace assay
