// The comparison of notes: every field's rule, all differences in one text.
#include "core/plugin/handshake.h"

#include "tests/core/plugin/fixture.h"

namespace assay {
namespace {

Note worker() {
  Note note = host_note();
  note.torch = "2.11.0+cu130";
  note.sdk_hash = "b2507273807e55a7" + std::string(48, '0');
  note.build = "release";
  note.compiler = "gcc 12.2";
  note.isa = "x86-64";
  note.sanitizer = "none";
  return note;
}

Note plugin() {
  Note note = worker();
  note.plugin = "lion8";
  note.cuda = note.nccl = "none";
  return note;
}

std::string refusal(const Note& note) {
  const Verdict verdict = compare_notes(note, worker(), "my_plugins/lion8.assay.so");
  return verdict.refusal ? render(*verdict.refusal) : "accepted";
}

TEST(Handshake, AcceptsItsOwnKind) {
  const Verdict verdict = compare_notes(plugin(), worker(), "x");
  EXPECT_FALSE(verdict.refusal);
  EXPECT_TRUE(verdict.warnings.empty());
}

TEST(Handshake, ShowsAllDifferencesAtOnce) {
  Note note = plugin();
  note.torch = "2.10.0+cu128";
  note.sdk_hash = "91ab03c25d7e11f0" + std::string(48, '0');
  note.build = "debug";
  EXPECT_EQ(refusal(note), golden("p01.txt"));
}

TEST(Handshake, EachOfTheseFieldsRefuses) {
  for (const auto field :
       {&Note::assay_api, &Note::sdk_hash, &Note::torch, &Note::cxx11_abi, &Note::glibcxx_debug,
        &Note::stdlib, &Note::sanitizer, &Note::cxx_std, &Note::isa, &Note::cuda, &Note::nccl}) {
    Note note = plugin();
    note.*field = "other";
    EXPECT_NE(refusal(note).find("plugin other"), std::string::npos) << refusal(note);
  }
}

TEST(Handshake, GoldenTextsOfSingleFields) {
  Note note = plugin();
  note.assay_api = "0";
  EXPECT_EQ(refusal(note), golden("other_api.txt"));
  note = plugin();
  note.sanitizer = "address";
  EXPECT_EQ(refusal(note), golden("other_sanitizer.txt"));
  note = plugin();
  note.torch = "2.10.0+cpu";
  EXPECT_EQ(refusal(note), golden("other_torch.txt"));
  note = plugin();
  note.sdk_hash = std::string(64, '7');
  EXPECT_EQ(refusal(note), golden("other_hash.txt"));
}

TEST(Handshake, AForeignInstructionSetNamesThisProcessor) {
  Note note = plugin();
  note.isa = "x86-64-v9";
  EXPECT_NE(refusal(note).find("isa  plugin x86-64-v9   worker x86-64"), std::string::npos)
      << refusal(note);
  EXPECT_NE(refusal(note).find("(this processor)"), std::string::npos);
}

TEST(Handshake, CompilerAndBuildOnlyWarn) {
  Note note = plugin();
  note.compiler = "gcc 12.9";
  EXPECT_TRUE(compare_notes(note, worker(), "x").warnings.empty());
  note.compiler = "gcc 13.1";
  note.build = "debug";
  const Verdict verdict = compare_notes(note, worker(), "x");
  EXPECT_FALSE(verdict.refusal);
  ASSERT_EQ(verdict.warnings.size(), 2u);
  EXPECT_EQ(verdict.warnings[0],
            "compiler: plugin gcc 13.1, worker gcc 12.2 (warning: other major version)");
  EXPECT_EQ(verdict.warnings[1], "build: plugin debug, worker release (warning: never time it)");
}

}  // namespace
}  // namespace assay
