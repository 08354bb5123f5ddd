// Diagnostics: the frame of every message, its caret and its limits.
#include "core/base/diagnostic.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

Diagnostic typo() {
  Diagnostic d;
  d.id = "G04";
  d.place = "layouts.yaml:8:5";
  d.text = "unknown option 'modle.name'";
  d.source_line = "    modle.name: [llama3, moe]";
  d.line = 8;
  d.column = 5;
  d.length = 10;
  d.hints = {"did you mean 'model.name'? (declared by the host)"};
  return d;
}

TEST(Diagnostic, RendersHeadExcerptCaretAndHint) {
  EXPECT_EQ(render(typo()),
            "layouts.yaml:8:5: error[G04]: unknown option 'modle.name'\n"
            "    8 |     modle.name: [llama3, moe]\n"
            "      |     ^~~~~~~~~~\n"
            "  hint: did you mean 'model.name'? (declared by the host)\n");
}

TEST(Diagnostic, RendersDetailsAndSeverities) {
  Diagnostic d;
  d.severity = Severity::refused;
  d.id = "R-X";
  d.place = "a.so";
  d.text = "no";
  d.details = {"torch  1"};
  EXPECT_EQ(render(d), "a.so: refused[R-X]: no\n  torch  1\n");
  d = {};
  d.severity = Severity::note;
  d.text = "plain";
  EXPECT_EQ(render(d), "note: plain\n");
}

TEST(Diagnostic, CaretCountsCodePointsAndKeepsTabs) {
  Diagnostic d = typo();
  d.source_line = "\tä: b";
  d.column = 5;
  d.length = 1;
  d.hints.clear();
  EXPECT_NE(render(d).find("    8 | \tä: b\n      | \t   ^\n"), std::string::npos) << render(d);
}

TEST(Diagnostic, CaretStaysInsideTheLine) {
  Diagnostic d = typo();
  d.source_line = "ab";
  d.column = 900;
  d.length = 900;
  EXPECT_NE(render(d).find("      |   ^\n"), std::string::npos) << render(d);
  d.column = -3;
  EXPECT_NE(render(d).find("      | ^~\n"), std::string::npos) << render(d);
}

TEST(Diagnostic, ALongLineIsShownAroundItsCaret) {
  Diagnostic d = typo();
  d.source_line = std::string(100'000, 'a') + "X" + std::string(100'000, 'b');
  d.column = 100'001;
  d.length = 1;
  const std::string text = render(d);
  EXPECT_LT(text.size(), 500u);
  EXPECT_NE(text.find("| " + std::string(60, ' ') + "^"), std::string::npos) << text;
}

TEST(Diagnostic, ManyAreCutWithACount) {
  const std::vector<Diagnostic> many(23, typo());
  const std::string text = render(many);
  EXPECT_NE(text.find("... and 3 more\n"), std::string::npos);
  EXPECT_EQ(render(std::vector<Diagnostic>(20, typo())).find("more"), std::string::npos);
}

TEST(Diagnostic, TheErrorCarriesAll) {
  const DiagnosticError error({typo(), typo()});
  EXPECT_EQ(error.diagnostics().size(), 2u);
  EXPECT_EQ(std::string(error.what()) + "\n", render(error.diagnostics()));
}

}  // namespace
}  // namespace assay
