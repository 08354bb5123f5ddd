// The catalogue: discovery order, lazy refusals, describing once, caches, suggestions.
#include "core/plugin/catalogue.h"

#include "core/plugin/discovery.h"
#include "tests/core/plugin/fixture.h"

namespace assay {
namespace {

using nlohmann::json;

/// Answers from the notes; counts and can be told to die on a file.
class FakeDescriber final : public Describer {
 public:
  json describe(const json& request) override {
    ++calls;
    json manifests = json::object(), facts = json::array();
    for (const std::string file : request.at("files")) {
      if (!deadly.empty() && file.find(deadly) != std::string::npos) {
        throw Error("describing ended with SIGABRT");
      }
      manifests[file] = manifest(file);
    }
    for (const json& fact : request.at("facts")) {
      facts.push_back(fact.at("options").value("bad", false)
                          ? json{{"error", "hidden 7 is odd\nhint: take 8"}}
                          : json{{"heads", 4}, {"asked", fact}});
    }
    return {{"manifests", manifests}, {"facts", facts}};
  }

  json manifest(const std::string& file) const {
    if (errors.contains(file)) return {{"error", errors.at(file)}};
    const Note note = parse_note(read_note_text(file, file), file);
    json components = json::array();
    for (const std::string& id : note.components) {
      Component c;
      c.kind = *kind_of(id.substr(0, id.find('/')));
      c.name = id.substr(id.find('/') + 1);
      components.push_back(to_json(c));
    }
    return {{"schema", 1}, {"plugin", note.plugin}, {"components", components}};
  }

  int calls = 0;
  std::string deadly;
  std::map<std::string, std::string> errors;
};

class CatalogueTest : public PluginFolder {
 protected:
  Catalogue load() {
    return Catalogue::load({folder_ / "a", folder_ / "none", folder_ / "b"}, fake_);
  }
  std::filesystem::path plugin(const std::string& file, const std::string& name,
                               const std::vector<std::string>& components,
                               const std::string& version = "1.0.0") {
    return put(file, elf_with_note(note_json(name, components, version)));
  }
  const std::shared_ptr<FakeDescriber> fake_ = std::make_shared<FakeDescriber>();
};

TEST_F(CatalogueTest, FindsInOrderAndDescribesOnce) {
  plugin("a/lion.assay.so", "lion", {"optim/lion", "optim/tiger"});
  plugin("b/adamw.assay.so", "adamw", {"optim/adamw"});
  put("b/other.so", "no plugin by name");
  const Catalogue catalogue = load();
  EXPECT_EQ(catalogue.files().size(), 2u);
  EXPECT_EQ(fake_->calls, 0) << "notes alone";
  EXPECT_EQ(catalogue.names(Kind::optim), (std::vector<std::string>{"adamw", "lion", "tiger"}));
  const Component* lion = catalogue.find(Kind::optim, "lion");
  ASSERT_NE(lion, nullptr);
  EXPECT_EQ(lion->file->note->plugin, "lion");
  EXPECT_EQ(catalogue.find(Kind::optim, "lion"), lion);
  EXPECT_NE(catalogue.find(Kind::optim, "adamw"), nullptr);
  EXPECT_EQ(catalogue.find(Kind::memory, "lion"), nullptr);
  EXPECT_EQ(fake_->calls, 1);
}

TEST_F(CatalogueTest, AManifestIsCachedUnderTheFilesContent) {
  plugin("a/lion.assay.so", "lion", {"optim/lion"});
  load().find(Kind::optim, "lion");
  load().find(Kind::optim, "lion");
  EXPECT_EQ(fake_->calls, 1) << "the second catalogue reads the cache";
  plugin("a/lion.assay.so", "lion", {"optim/lion"}, "1.0.1");
  load().find(Kind::optim, "lion");
  EXPECT_EQ(fake_->calls, 2) << "other content, other key";
  for (const auto& entry : std::filesystem::directory_iterator(folder_ / "cache" / "manifests")) {
    write_file_atomically(entry.path(), "damaged");
  }
  EXPECT_NE(load().find(Kind::optim, "lion"), nullptr);
  EXPECT_EQ(fake_->calls, 3) << "a damaged entry is no entry";
}

TEST_F(CatalogueTest, TwoOwnersAreAnErrorOnlyWhenUsed) {
  plugin("a/mine.assay.so", "mine", {"optim/lion"}, "0.3.0");
  plugin("b/lion.assay.so", "lion", {"optim/lion", "optim/tiger"});
  const Catalogue catalogue = load();
  EXPECT_NE(catalogue.find(Kind::optim, "tiger"), nullptr);
  EXPECT_EQ(without_folder(refusal_of([&] { catalogue.find(Kind::optim, "lion"); })),
            golden("p02.txt"));
}

TEST_F(CatalogueTest, TheSameFileUnderTwoNamesCountsOnce) {
  plugin("a/lion.assay.so", "lion", {"optim/lion"});
  std::filesystem::create_directories(folder_ / "b");
  std::filesystem::create_symlink(folder_ / "a/lion.assay.so", folder_ / "b/lion.assay.so");
  const Catalogue catalogue = load();
  EXPECT_EQ(catalogue.files().size(), 1u);
  EXPECT_NE(catalogue.find(Kind::optim, "lion"), nullptr);
}

TEST_F(CatalogueTest, TwoPluginsOfOneNameAreRefused) {
  plugin("a/lion.assay.so", "lion", {"optim/lion"});
  plugin("b/lion.assay.so", "lion", {"optim/tiger"});
  EXPECT_EQ(without_folder(refusal_of([&] { load().find(Kind::optim, "lion"); })),
            "a/lion.assay.so: error[P02]: plugin 'lion' is also the name of b/lion.assay.so\n"
            "  hint: rename one, or take one folder out of ASSAY_PLUGIN_PATH\n");
}

TEST_F(CatalogueTest, TwoOwnersOfANamespaceAreRefused) {
  json x = note_json("x", {"compile/x"}), y = note_json("y", {"compile/y"});
  x["op_namespaces"] = y["op_namespaces"] = {"lab_ops"};
  put("a/x.assay.so", elf_with_note(x));
  put("b/y.assay.so", elf_with_note(y));
  EXPECT_EQ(without_folder(refusal_of([&] { load().find(Kind::compile, "x"); })),
            golden("p09.txt"));
}

TEST_F(CatalogueTest, ARefusedPluginIsNamedWhenItsComponentIsUsed) {
  json note = note_json("lion", {"optim/lion"});
  note["torch"] = "2.10.0+cpu";
  put("a/lion.assay.so", elf_with_note(note));
  const Catalogue catalogue = load();
  EXPECT_FALSE(catalogue.files().front()->accepted());
  EXPECT_TRUE(catalogue.names(Kind::optim).empty());
  EXPECT_NE(refusal_of([&] { catalogue.find(Kind::optim, "lion"); }).find("error[P01]"),
            std::string::npos);
}

TEST_F(CatalogueTest, AnAcceptedOneHidesARefusedOne) {
  json note = note_json("lion", {"optim/lion"});
  note["torch"] = "2.10.0+cpu";
  put("a/lion.assay.so", elf_with_note(note));
  plugin("b/lion.assay.so", "lion", {"optim/lion"});
  EXPECT_NE(load().find(Kind::optim, "lion"), nullptr);
}

TEST_F(CatalogueTest, WhatDoesNotLoadIsRefusedAloneAndNotCached) {
  const auto bad = plugin("a/x.assay.so", "x", {"optim/x"});
  plugin("a/good.assay.so", "good", {"optim/good"});
  fake_->errors[bad.string()] =
      "P07 plugin 'x' threw while registering: my device is missing\n"
      "hint: plug it in";
  const Catalogue catalogue = load();
  EXPECT_NE(catalogue.find(Kind::optim, "good"), nullptr);
  EXPECT_EQ(without_folder(refusal_of([&] { catalogue.find(Kind::optim, "x"); })),
            "a/x.assay.so: error[P07]: plugin 'x' threw while registering: my device is missing\n"
            "  hint: plug it in\n");
  fake_->errors.clear();
  EXPECT_NE(load().find(Kind::optim, "x"), nullptr);
}

TEST_F(CatalogueTest, AFileThatKillsTheDescriberIsFoundByName) {
  plugin("a/x.assay.so", "x", {"optim/x"});
  plugin("a/good.assay.so", "good", {"optim/good"});
  fake_->deadly = "x.assay.so";
  const Catalogue catalogue = load();
  EXPECT_NE(catalogue.find(Kind::optim, "good"), nullptr);
  EXPECT_EQ(without_folder(refusal_of([&] { catalogue.find(Kind::optim, "x"); })),
            "a/x.assay.so: error[P06]: plugin 'x' does not load: describing ended with SIGABRT\n");
}

TEST_F(CatalogueTest, UnknownComponentsGetTheNearest) {
  plugin("a/lion.assay.so", "lion", {"optim/lion", "optim/adamw"});
  const Catalogue catalogue = load();
  EXPECT_EQ(render(catalogue.unknown(Kind::optim, "loin")), golden("p03.txt"));
  EXPECT_EQ(render(catalogue.unknown(Kind::optim, "zzz")),
            "error[P03]: no component optim/zzz\n  hint: there are: optim/adamw, optim/lion\n");
  EXPECT_NE(render(catalogue.unknown(Kind::data, "x")).find("no plugin of kind data"),
            std::string::npos);
}

TEST_F(CatalogueTest, FactsAreAskedOncePerOptionSet) {
  plugin("a/llama3.assay.so", "llama3", {"model/llama3"});
  const Catalogue catalogue = load();
  const json options = {{"flavour", "tiny"}}, context = {{"vocab", 272}};
  EXPECT_EQ(catalogue.facts(Kind::model, "llama3", options, context).at("heads"), 4);
  EXPECT_EQ(fake_->calls, 2) << "manifests, then facts";
  catalogue.facts(Kind::model, "llama3", options, context);
  load().facts(Kind::model, "llama3", options, context);
  EXPECT_EQ(fake_->calls, 2);
  const std::vector<FactsRequest> more = {
      {Kind::model, "llama3", {{"flavour", "small"}}, context},
      {Kind::model, "llama3", {{"flavour", "tiny"}}, {{"vocab", 256}}},
      {Kind::model, "llama3", {{"flavour", "small"}}, context}};
  catalogue.prepare_facts(more);
  EXPECT_EQ(fake_->calls, 3) << "one process for all that are missing";
  catalogue.facts(Kind::model, "llama3", more[0].options, context);
  EXPECT_EQ(fake_->calls, 3);
}

TEST_F(CatalogueTest, FactsOfDataFollowTheFile) {
  plugin("a/text.assay.so", "text", {"data/text"});
  const auto corpus = put("corpus.txt", "one");
  const json options = {{"path", corpus.string()}};
  load().facts(Kind::data, "text", options);
  const int before = fake_->calls;
  load().facts(Kind::data, "text", options);
  EXPECT_EQ(fake_->calls, before);
  put("corpus.txt", "three");
  load().facts(Kind::data, "text", options);
  EXPECT_EQ(fake_->calls, before + 1);
}

TEST_F(CatalogueTest, RefusedFactsCarryThePluginsWords) {
  plugin("a/llama3.assay.so", "llama3", {"model/llama3"});
  const Catalogue catalogue = load();
  EXPECT_EQ(refusal_of([&] {
              catalogue.facts(Kind::model, "llama3", {{"bad", true}});
            }),
            "hidden 7 is odd\n  hint: take 8\n");
}

TEST_F(CatalogueTest, WithoutADescriberTheCachesStillAnswer) {
  plugin("a/lion.assay.so", "lion", {"optim/lion"});
  load().find(Kind::optim, "lion");
  const Catalogue cached = Catalogue::load({folder_ / "a"}, nullptr);
  EXPECT_NE(cached.find(Kind::optim, "lion"), nullptr);
}

TEST(PluginFolders, OwnThenEnvironmentThenInstalled) {
  setenv("ASSAY_PLUGIN_PATH", "/x:/y::", 1);
  const auto folders = plugin_folders({"/own"});
  unsetenv("ASSAY_PLUGIN_PATH");
  ASSERT_EQ(folders.size(), 4u) << "an empty entry is not the current folder";
  EXPECT_EQ(folders[0], "/own");
  EXPECT_EQ(folders[1], "/x");
  EXPECT_EQ(folders[2], "/y");
  EXPECT_TRUE(folders[3].string().ends_with("lib/assay/plugins"));
}

}  // namespace
}  // namespace assay
