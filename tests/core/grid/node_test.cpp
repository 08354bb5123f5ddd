// The walk over yaml-cpp 0.7: one test for each of its traps.
#include "core/grid/node.h"

#include <gtest/gtest.h>

#include "core/grid/reading.h"

namespace assay::grid {
namespace {

struct Document {
  explicit Document(const std::string& text)
      : source(Source::make("f.yaml", {}, text)), node(read_yaml(text, *source, findings)) {}

  std::string errors() {
    try {
      findings.throw_if_any();
    } catch (const DiagnosticError& error) {
      return error.what();
    }
    return {};
  }

  std::shared_ptr<const Source> source;
  Findings findings;
  Node node;
};

TEST(YamlWalk, DuplicateKeysAreRejectedWithBothPlaces) {  // trap 1
  EXPECT_EQ(Document("a: 1\nb: 2\na: 3\n").errors(),
            "f.yaml:3:1: error[G05]: key 'a' is set twice; first at 1:1\n"
            "    3 | a: 3\n      | ^");
}

TEST(YamlWalk, MergeKeysAreRefused) {  // trap 2
  EXPECT_NE(Document("a: &x {b: 1}\nc:\n  <<: *x\n").errors().find("3:3: error[G11]"),
            std::string::npos);
}

TEST(YamlWalk, CircularAliasesEnd) {  // trap 3
  EXPECT_NE(Document("&a [*a]").errors().find("error[G12]"), std::string::npos);
  EXPECT_NE(Document("&a {k: [1, *a]}").errors().find("error[G12]"), std::string::npos);
}

TEST(YamlWalk, NestedAliasesAreCountedWhenExpanded) {  // trap 3
  std::string bomb = "a: &a [x,x,x,x,x,x,x,x,x,x]\n";
  for (char c = 'b'; c < 'j'; ++c) {
    bomb += std::string(1, c) + ": &" + c + " [";
    for (int i = 0; i < 10; ++i) bomb += std::string(i ? "," : "") + "*" + char(c - 1);
    bomb += "]\n";
  }
  EXPECT_NE(Document(bomb).errors().find("200,000 nodes"), std::string::npos);
}

TEST(YamlWalk, AliasesKeepBothPlaces) {  // trap 4
  Document document("a: &x 5\nb: *x\n");
  const Node& b = *document.node.find("b");
  EXPECT_EQ(b.mark.position(), "1:7");
  ASSERT_TRUE(b.alias.has_value());
  EXPECT_EQ(b.alias->position(), "2:4");
}

TEST(YamlWalk, MarksAreOneBasedCodePoints) {  // trap 5
  Document document("{\"\xC3\xA4\xC3\xB6\": 1, b: 2}");
  EXPECT_EQ(document.node.member("b")->mark.position(), "1:11");
  EXPECT_EQ(document.node.mark.position(), "1:1");
}

TEST(YamlWalk, ASecondDocumentIsRefused) {  // trap 6
  EXPECT_NE(Document("a: 1\n---\nb: 2\n").errors().find("2:1: error[G02]: a second YAML document"),
            std::string::npos);
  EXPECT_EQ(Document("---\na: 1\n").errors(), "");
}

TEST(YamlWalk, QuotedScalarsAreText) {  // trap 7
  Document document("{a: 64, b: '64', c: \"64\", d: !!str 64}\n");
  EXPECT_FALSE(document.node.find("a")->quoted);
  for (const char* key : {"b", "c", "d"}) EXPECT_TRUE(document.node.find(key)->quoted) << key;
  EXPECT_TRUE(Document("a: |\n  64\n").node.find("a")->quoted);
}

TEST(YamlWalk, NumbersAndBooleansAreReadPlainly) {  // trap 8
  const OptionSpec whole{.type = OptionType::integer, .default_value = int64_t{0}};
  const OptionSpec flag{.type = OptionType::boolean, .default_value = false};
  const OptionSpec text{.type = OptionType::text, .default_value = std::string()};
  Document document("{octal: 010, yes: yes, on: on, no: no, t: true, exp: 1e3, q: '64'}");
  Findings findings;
  const auto read = [&](const char* key, const OptionSpec& spec) {
    return read_value(*document.node.find(key), spec, key, findings);
  };
  EXPECT_EQ(read("octal", whole), OptionValue(int64_t{10}));
  EXPECT_EQ(read("t", flag), OptionValue(true));
  EXPECT_EQ(read("no", text), OptionValue(std::string("no")));
  EXPECT_TRUE(findings.empty());
  EXPECT_FALSE(read("yes", flag) || read("on", flag) || read("exp", whole) || read("q", whole));
  EXPECT_EQ(findings.size(), 4U);
}

TEST(YamlWalk, OpenBracketsAreNamed) {  // trap 9
  EXPECT_NE(Document("a: 1\nb: [1, 2\nc: 3\n").errors().find("'[' was opened at 2:4"),
            std::string::npos);
}

TEST(YamlWalk, BareDollarBracesGetAHint) {  // trap 10
  EXPECT_NE(Document("a: {b: ${env:X}}\n").errors().find("hint: quote it"), std::string::npos);
}

TEST(YamlWalk, DepthHasALimit) {
  const auto nested = [](int depth) {
    return std::string(static_cast<size_t>(depth), '[') +
           std::string(static_cast<size_t>(depth), ']');
  };
  EXPECT_EQ(Document(nested(kMostDepth)).errors(), "");
  EXPECT_NE(Document(nested(kMostDepth + 1)).errors().find("32 levels"), std::string::npos);
  EXPECT_NE(Document(nested(4000)).errors(), "");
}

TEST(YamlWalk, OnlyReadableTextIsYaml) {
  EXPECT_NE(Document("a: \xff\n").errors().find("byte 3 is no readable text"), std::string::npos);
  EXPECT_NE(Document(std::string("a: \0b", 5)).errors(), "");
  EXPECT_NE(Document("a: \xC0\x80\n").errors(), "");
}

TEST(YamlWalk, EmittedTreesReadBackEqual) {
  const std::string text =
      "{a: 64, b: '64', c: [1, ~, {d: \"x: y\"}], e: 'line\nbreak', f: on, g: '', h: {}, i: []}";
  Document first(text);
  Document second(emit_yaml(first.node));
  EXPECT_EQ(second.errors(), "");
  EXPECT_EQ(to_json_text(first.node), to_json_text(second.node));
  EXPECT_TRUE(second.node.find("b")->quoted);
  EXPECT_FALSE(second.node.find("f")->quoted);
}

TEST(YamlWalk, JsonKeepsTextApartFromNumbers) {
  EXPECT_EQ(
      to_json_text(Document("{a: 1, b: '1', c: 1e-3, d: yes, e: true, f: 64MiB, g: ~}").node),
      "{\"a\":1,\"b\":\"1\",\"c\":0.001,\"d\":\"yes\",\"e\":true,\"f\":\"64MiB\",\"g\":null}");
}

TEST(YamlWalk, CaretsSpanScalars) {
  Document document("{key: value, q: 'a b'}");
  EXPECT_EQ(document.node.find("key")->mark.length, 5);
  EXPECT_EQ(document.node.find("q")->mark.length, 5);
}

}  // namespace
}  // namespace assay::grid
