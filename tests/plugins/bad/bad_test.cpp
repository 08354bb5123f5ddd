// Plugins that break a rule: refused with the golden text, or failed by assay-check, never worse.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "assay/registry.h"
#include "core/base/diagnostic.h"
#include "core/base/files.h"
#include "core/base/subprocess.h"
#include "core/sdk/loader.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

constexpr double kLimit_s = 120;

class BadPlugin : public testing::Test {
 protected:
  BadPlugin() : folder_(fs::path(testing::TempDir()) / ("assay_bad_" + std::to_string(getpid()))) {
    fs::create_directories(folder_);
  }
  ~BadPlugin() override {
    unsetenv("ASSAY_BAD");
    fs::remove_all(folder_);
  }

  /// A file of its own with `from` replaced by `to` in its bytes. Its path is new, too: the dynamic
  /// linker takes a path that it knows for the library that it knows.
  fs::path copy(const std::string& from = "", const std::string& to = "") const {
    std::string bytes = read_file(BAD_PLUGIN);
    EXPECT_EQ(from.size(), to.size());
    for (size_t at = 0; !from.empty() && (at = bytes.find(from, at)) != std::string::npos;) {
      bytes.replace(at, from.size(), to);
    }
    static int copies = 0;
    const fs::path file = folder_ / std::to_string(++copies) / "bad.assay.so";
    fs::create_directory(file.parent_path());
    write_file_atomically(file, bytes);
    return file;
  }

  std::string refusal(const fs::path& file) const {
    try {
      load_plugin(file);
      return "accepted";
    } catch (const DiagnosticError& e) {
      std::string text = render(e.diagnostics());
      const std::string front = file.parent_path().string() + "/";
      for (size_t at; (at = text.find(front)) != std::string::npos;) text.erase(at, front.size());
      return text;
    }
  }
  std::string refusal_when(const std::string& rule) const {
    setenv("ASSAY_BAD", rule.c_str(), 1);
    return refusal(copy());
  }

  ProcessResult check(const std::string& rule, const std::string& filter = "*") const {
    return run_process(
        {std::string(ASSAY_BIN) + "/assay-check", copy().string(), "--filter=" + filter}, kLimit_s,
        {{"ASSAY_BAD", rule}});
  }

  const fs::path folder_;
};

std::string golden(const std::string& name) {
  return read_file(fs::path(ASSAY_TEST_DATA) / "plugins" / (name + ".txt"));
}

TEST_F(BadPlugin, RegistrationThatThrowsIsRefusedWithItsWords) {
  EXPECT_EQ(refusal_when("throws_error"), golden("p07_error"));
  EXPECT_EQ(refusal_when("throws_c10_error"), golden("p07_c10_error"));
  EXPECT_EQ(refusal_when("throws_int"), golden("p07_int"));
}

TEST_F(BadPlugin, RegistrationThatBreaksARuleIsRefused) {
  EXPECT_EQ(refusal_when("other_component"), golden("p08"));
  EXPECT_EQ(refusal_when("registers_twice"), golden("p07_twice"));
  EXPECT_EQ(refusal_when("unknown_capability"), golden("p07_capability"));
  EXPECT_EQ(refusal_when("no_default_lr"), golden("p07_no_default_lr"));
  EXPECT_EQ(refusal_when("dims_of_another_kind"), golden("p07_dims"));
  EXPECT_EQ(refusal_when("rule_without_id"), golden("p07_rule"));
}

TEST_F(BadPlugin, AFileThatDoesNotLinkIsRefusedWithTheLinkersWords) {
  EXPECT_EQ(refusal(copy("_ZN5assay9Registrar4takeE", "_ZN5assay9Registrar4taleE")),
            golden("p06_undefined"));
  EXPECT_EQ(
      refusal(copy(std::string("assay_plugin_v1\0", 16), std::string("assay_plugin_v0\0", 16))),
      golden("p06_no_door"));
  const std::string magic = "YSSA";  // kPluginMagic in memory order
  EXPECT_EQ(
      refusal(copy(magic + std::string("\x20\0\0\0", 4), magic + std::string("\x18\0\0\0", 4))),
      golden("p06_layout"));
}

TEST_F(BadPlugin, ATruncatedFileIsRefusedBeforeTheLinkerSeesIt) {
  const std::string bytes = read_file(BAD_PLUGIN);
  for (int tenth = 1; tenth <= 10; ++tenth) {
    const fs::path file = folder_ / ("cut" + std::to_string(tenth) + ".assay.so");
    write_file_atomically(file, bytes.substr(0, bytes.size() * static_cast<size_t>(tenth) / 11));
    EXPECT_NE(refusal(file).find("error[P05]: truncated: it has "), std::string::npos)
        << refusal(file);
  }
}

TEST_F(BadPlugin, TheNoteSurvivesStripping) {
  const fs::path file = copy();
  ASSERT_TRUE(run_process({"/usr/bin/strip", "-s", file.string()}, kLimit_s).ok());
  EXPECT_EQ(parse_note(read_note_text(file, "x"), "x").plugin, "bad");
}

TEST_F(BadPlugin, AGoodOneIsOpenedOnceAndMakesItsComponent) {
  const fs::path file = copy();
  fs::create_symlink(file, folder_ / "again.assay.so");
  const LoadedPlugin& first = load_plugin(file);
  EXPECT_EQ(&load_plugin(folder_ / "again.assay.so"), &first);
  EXPECT_EQ(first.sha256, sha256_file(file));
  ASSERT_NE(registry().find(Kind::optim, "bad"), nullptr);
  EXPECT_EQ(registry().find(Kind::optim, "bad")->plugin, "bad");
  fs::copy_file(file, folder_ / "twin.assay.so");
  EXPECT_EQ(refusal(folder_ / "twin.assay.so"), golden("p09_twin"));
}

TEST_F(BadPlugin, CheckFailsWhatRegistrationMayNotDo) {
  for (const char* rule : {"prints", "starts_a_thread", "ftz"}) {
    const ProcessResult result = check(rule, "*.LoadsQuietly");
    EXPECT_EQ(result.exit_code, 1) << rule << ": " << result.ending() << result.out << result.err;
  }
  EXPECT_TRUE(check("nothing", "*.LoadsQuietly").ok());
}

TEST_F(BadPlugin, CheckFailsAnOperatorWithoutMetaKernel) {
  const ProcessResult result = check("no_meta_kernel", "*.OperatorsHaveMetaKernels");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.out.find("has no Meta kernel"), std::string::npos) << result.out;
  EXPECT_TRUE(check("nothing", "*.OperatorsHaveMetaKernels").ok());
}

TEST_F(BadPlugin, CheckFailsRulesThatCannotBeJudged) {
  EXPECT_EQ(check("rule_does_not_parse", "*.RulesCanBeJudged").exit_code, 1);
  EXPECT_EQ(check("rule_names_nothing", "*.RulesCanBeJudged").exit_code, 1);
  EXPECT_TRUE(check("nothing", "*.RulesCanBeJudged").ok());
}

TEST_F(BadPlugin, CheckFailsABrokenContract) {
  EXPECT_EQ(check("moves_without_gradient", "*.MissingGradientIsSkipped").exit_code, 1);
  EXPECT_TRUE(check("nothing", "*.MissingGradientIsSkipped").ok());
}

TEST_F(BadPlugin, ACrashIsAResultOfItsOwnProcess) {
  EXPECT_EQ(check("aborts_in_static_initialiser").ending(), "SIGABRT");
  EXPECT_EQ(check("library_clash").ending(), "SIGABRT");
  EXPECT_EQ(check("segfault_in_step", "*.ResumesBitwise").ending(), "SIGSEGV");
}

TEST_F(BadPlugin, ARefusedFileEndsCheckWithTwo) {
  const ProcessResult result = check("throws_error");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_NE(result.err.find("error[P07]"), std::string::npos) << result.err;
}

}  // namespace
}  // namespace assay
