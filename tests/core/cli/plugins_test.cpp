// assay plugins: what list and describe print, what check answers, what new writes.
#include <sstream>

#include "core/cli/context.h"
#include "core/cli/plugins_check.h"
#include "core/cli/plugins_new.h"
#include "core/cli/plugins_text.h"
#include "tests/core/plugin/fixture.h"

namespace assay::cli {
namespace {

using nlohmann::json;

class PluginsCommand : public PluginFolder {
 protected:
  void plugin(const std::string& file, const std::string& name,
              const std::vector<std::string>& components) {
    put(file, elf_with_note(note_json(name, components)));
  }
  Catalogue load() const { return Catalogue::load({folder_ / "a", folder_ / "b"}, nullptr); }
};

TEST_F(PluginsCommand, ListShowsEveryFileWithItsState) {
  plugin("a/lion.assay.so", "lion", {"optim/lion", "memory/none"});
  plugin("b/mine.assay.so", "mine", {"optim/lion"});
  put("b/broken.assay.so", "#!/bin/sh\n");
  EXPECT_EQ(without_folder(list_text(load(), {})), golden("list.txt"));
  EXPECT_EQ(without_folder(list_text(load(), {.kind = Kind::memory})),
            "COMPONENT    VERSION  STATE  FILE\n"
            "memory/none  1.0.0    ok     a/lion.assay.so\n");
  EXPECT_NE(list_text(load(), {.all = true}).find("hint: build it with assay_add_plugin()"),
            std::string::npos);
}

TEST_F(PluginsCommand, ListAsJsonHoldsTheSame) {
  plugin("a/lion.assay.so", "lion", {"optim/lion"});
  json note = note_json("old", {"optim/old"});
  note["torch"] = "2.10.0";
  put("b/old.assay.so", elf_with_note(note));
  const json rows = list_json(load(), {});
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0]["component"], "optim/lion");
  EXPECT_EQ(rows[0]["accepted"], true);
  EXPECT_EQ(rows[1]["accepted"], false);
  EXPECT_NE(rows[1]["refusal"].get<std::string>().find("plugin 2.10.0"), std::string::npos);
}

TEST_F(PluginsCommand, AnEmptySearchSaysWhereItLooked) {
  EXPECT_NE(list_text(load(), {}).find("ASSAY_PLUGIN_PATH"), std::string::npos);
}

TEST(PluginsDescribe, ReadsAsDocumentation) {
  PluginFile file;
  file.place = "lib/assay/plugins/lion.assay.so";
  file.note = parse_note(note_json("lion", {"optim/lion"}).dump(), "x");
  Component lion;
  lion.kind = Kind::optim;
  lion.name = "lion";
  lion.summary = "sign of momentum";
  lion.reference = "arXiv:2302.06675";
  lion.default_lr = 1e-4;
  lion.provides = {"meta.safe"};
  lion.conflicts = {{"memory/offload", "it moves tensors"}};
  lion.rules = {{"R-LAB", "mesh.tp > 1", "one rank has nothing to cut"}};
  lion.file = &file;
  OptionSpec beta;
  beta.name = "beta1";
  beta.type = OptionType::real;
  beta.default_value = 0.9;
  beta.range = {0, 1};
  beta.doc = "share of momentum";
  lion.options = {beta};
  EXPECT_EQ(describe_text(lion, nullptr), golden("describe.txt"));
  EXPECT_EQ(describe_yaml(lion, {{"beta1", 0.5}}), "optim: {name: lion, lr: 0.0001, beta1: 0.5}\n");
  lion.kind = Kind::parallel;
  lion.default_lr.reset();
  lion.dims = {"tp"};
  EXPECT_EQ(describe_yaml(lion, {}), "parallel: {tp: {name: lion, beta1: 0.9}}\n");
  EXPECT_NE(describe_text(lion, {{"heads", 4}}).find("heads  4"), std::string::npos);
}

TEST(PluginsDescribe, ComponentNamesAreChecked) {
  EXPECT_EQ(parse_component_id("optim/lion"), (std::pair<Kind, std::string>{Kind::optim, "lion"}));
  EXPECT_EQ(refusal_of([] { parse_component_id("lion"); }),
            "'lion' is no component: write KIND/NAME, such as optim/adamw\n");
  EXPECT_NE(refusal_of([] { parse_component_id("optm/lion"); }).find("did you mean 'optim'?"),
            std::string::npos);
}

TEST_F(PluginsCommand, CheckRefusesBeforeLoadingWithTwo) {
  std::ostringstream out, err;
  EXPECT_EQ(check_plugin(put("x.assay.so", "no plugin"), {}, out, err), 2);
  EXPECT_NE(err.str().find("error[P04]"), std::string::npos) << err.str();
  EXPECT_EQ(out.str(), "");
}

TEST_F(PluginsCommand, NewWritesFiveFilesForEveryKind) {
  for (const Kind kind : kKinds) {
    const auto folder = folder_ / name_of(kind);
    const auto files = new_plugin(kind, "my_part", folder);
    EXPECT_EQ(files.size(), 5u) << name_of(kind);
    for (const char* name :
         {"CMakeLists.txt", "my_part.h", "my_part.cpp", "study.yaml", "README.md"}) {
      ASSERT_TRUE(std::filesystem::exists(folder / name)) << name_of(kind) << " " << name;
      const std::string text = read_file(folder / name);
      EXPECT_EQ(text.find('@'), std::string::npos) << name_of(kind) << " " << name;
    }
    EXPECT_NE(read_file(folder / "my_part.cpp").find("MyPart"), std::string::npos);
    EXPECT_NE(read_file(folder / "CMakeLists.txt")
                  .find("COMPONENTS " + std::string(name_of(kind)) + "/my_part"),
              std::string::npos);
  }
}

TEST_F(PluginsCommand, NewOverwritesNothingAndWantsALowerCaseName) {
  new_plugin(Kind::optim, "lion", folder_ / "lion");
  EXPECT_NE(refusal_of([&] {
              new_plugin(Kind::optim, "lion", folder_ / "lion");
            }).find("exists already; nothing was written"),
            std::string::npos);
  EXPECT_NE(refusal_of([&] { new_plugin(Kind::optim, "MyLion", folder_ / "x"); }), "accepted");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "x"));
}

TEST_F(PluginsCommand, TheCommandLineKnowsThem) {
  std::ostringstream out, err;
  Context context = default_context();
  context.out = &out;
  context.err = &err;
  context.plugin_path = {folder_ / "a"};
  plugin("a/lion.assay.so", "a_plugin_of_this_test", {"optim/of_this_test"});
  const char* list[] = {"assay", "plugins", "list", "--kind", "optim"};
  EXPECT_EQ(run_cli(5, list, context), 0) << err.str();
  EXPECT_NE(out.str().find("optim/of_this_test  1.0.0    ok"), std::string::npos) << out.str();
  const char* wrong[] = {"assay", "plugins", "describe", "optim/of_this_tset"};
  EXPECT_EQ(run_cli(4, wrong, context), 2);
  EXPECT_NE(err.str().find("did you mean optim/of_this_test?"), std::string::npos) << err.str();
}

}  // namespace
}  // namespace assay::cli
