// Every pair of strategies, and the compositions of three and four that people use, against one
// rank; docs/compositions.md shows the table that this test holds.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>

#include "core/train/dry_run.h"
#include "layouts.h"

namespace assay::parity::compositions {
namespace {

using nlohmann::json;

constexpr double kBound = 1e-10;
constexpr int64_t kSteps = 3;

struct Strategy {
  std::string name{}, dim{};
  json component{};
};

std::vector<Strategy> strategies() {
  return {{"ddp", "dp_replicate", {{"name", "ddp"}}},
          {"zero1", "dp_shard", {{"name", "zero1"}}},
          {"zero2", "dp_shard", {{"name", "zero2"}}},
          {"fsdp", "dp_shard", {{"name", "fsdp"}}},
          {"cp", "cp", {{"name", "cp"}}},
          {"tp", "tp", {{"name", "tp"}}},
          {"async_tp", "tp", {{"name", "async_tp"}}},
          {"pp", "pp", {{"name", "pp"}, {"schedule", "1f1b"}}},
          {"ep", "ep", {{"name", "ep"}}}};
}

struct Composition {
  std::string name{};  ///< "fsdp x tp"
  std::string mesh{};
  json components = json::object();
  bool experts = false;
};

/// Each at degree 2. cp and ep need a component for what they leave whole: fsdp where none is
/// named.
Composition compose(const std::vector<std::string>& names) {
  Composition c;
  const auto known = strategies();
  for (const std::string& name : names) {
    const auto s = std::ranges::find(known, name, &Strategy::name);
    c.name += (c.name.empty() ? "" : " x ") + name;
    c.mesh += s->dim + "=2 ";
    c.components[s->dim] = s->component;
  }
  c.experts = c.components.contains("ep");
  const bool shards = c.components.contains("dp_shard");
  if (!shards && c.components.contains("cp")) {
    c.components["dp_shard"] = {{"name", "fsdp"}};
  } else if (!shards && c.experts && !c.components.contains("tp")) {
    c.components["dp_shard"] = {{"name", "fsdp"}};
    c.mesh += "dp_shard=2 ";
  }
  return c;
}

std::vector<Composition> compositions() {
  std::vector<Composition> list;
  const auto known = strategies();
  for (size_t a = 0; a < known.size(); ++a) {
    list.push_back(compose({known[a].name}));
    for (size_t b = a + 1; b < known.size(); ++b) {
      if (known[a].dim != known[b].dim) list.push_back(compose({known[a].name, known[b].name}));
    }
  }
  for (const std::vector<std::string>& names : std::vector<std::vector<std::string>>{
           {"ddp", "fsdp", "tp"},
           {"ddp", "fsdp", "pp"},
           {"ddp", "fsdp", "cp"},
           {"fsdp", "cp", "tp"},
           {"fsdp", "tp", "pp"},
           {"fsdp", "cp", "pp"},
           {"fsdp", "tp", "ep"},
           {"fsdp", "pp", "ep"},
           {"ddp", "fsdp", "tp", "pp"},
           {"fsdp", "cp", "tp", "pp"},
           {"fsdp", "tp", "pp", "ep"},
       }) {
    list.push_back(compose(names));
  }
  return list;
}

json config_of(const Composition& c) {
  json config = layout(c.mesh, c.components);
  if (!c.experts) return config;
  config["model"].merge_patch({{"name", "moe"}, {"experts", 4}, {"expert_ffn", 20}});
  return config;
}

const RankOutcome& one_rank(bool experts) {
  static std::map<bool, RankOutcome> known;
  if (!known.contains(experts)) {
    Composition none;
    none.experts = experts;
    known.emplace(experts, run(config_of(none), kSteps).front());
  }
  return known.at(experts);
}

class Compositions : public testing::TestWithParam<Composition> {};

TEST_P(Compositions, GivesTheNumbersOfOneRank) {
  const Composition& c = GetParam();
  const Distance d = distance(run(config_of(c), kSteps), one_rank(c.experts));
  EXPECT_LE(d.loss, kBound);
  EXPECT_LE(d.norm, kBound);
  EXPECT_LE(d.eval, kBound);
}

/// The same recipe code without values and peers, on the first and the last rank.
TEST_P(Compositions, RunsOnShapesAlone) {
  json config = config_of(GetParam());
  config["comm"] = {{"name", "fake"}};
  load_plugins_of(config);
  const json first = train::dry_run(config, 0);
  EXPECT_GT(first.at("bytes").at("parameters"), 0);
  EXPECT_FALSE(first.at("collectives").empty());
  EXPECT_EQ(train::dry_run(config, first.at("world").get<int>() - 1).at("parameters"),
            first.at("parameters"));
}

std::string test_name(const testing::TestParamInfo<Composition>& info) {
  std::string name = info.param.name;
  for (size_t at; (at = name.find(" x ")) != std::string::npos;) name.replace(at, 3, "_");
  return name;
}

INSTANTIATE_TEST_SUITE_P(Table, Compositions, testing::ValuesIn(compositions()), test_name);

std::string table() {
  std::ostringstream out;
  out << "| composition | mesh | ranks | components |\n|---|---|---|---|\n";
  for (const Composition& c : compositions()) {
    int64_t ranks = 1;
    std::istringstream words(c.mesh);
    std::string components;
    for (std::string word; words >> word;) {
      if (!word.starts_with("ep=")) ranks *= std::stoi(word.substr(word.find('=') + 1));
    }
    for (const auto& [dim, component] : c.components.items()) {
      components +=
          (components.empty() ? "" : ", ") + dim + ": " + component.at("name").get<std::string>();
    }
    out << "| " << c.name << " | " << c.mesh.substr(0, c.mesh.size() - 1) << " | " << ranks << " | "
        << components << " |\n";
  }
  return out.str();
}

/// ASSAY_WRITE_DOCS=1 writes the table between the marks instead of comparing it.
TEST(CompositionsPage, ShowsTheTableThatIsTested) {
  const std::string file = std::string(ASSAY_TEST_DATA) + "/../../docs/compositions.md";
  std::ifstream in(file);
  std::string page(std::istreambuf_iterator<char>(in), {});
  const std::string open = "<!-- table -->\n", close = "<!-- end -->\n";
  const size_t from = page.find(open), to = page.find(close);
  ASSERT_NE(from, std::string::npos);
  ASSERT_NE(to, std::string::npos);
  const size_t begin = from + open.size();
  if (std::getenv("ASSAY_WRITE_DOCS")) {
    page.replace(begin, to - begin, table());
    std::ofstream(file) << page;
    return;
  }
  EXPECT_EQ(page.substr(begin, to - begin), table())
      << "write it anew: ASSAY_WRITE_DOCS=1 test_parity --gtest_filter=CompositionsPage.*";
}

}  // namespace
}  // namespace assay::parity::compositions
