// Recipes out of seeds and machines: what becomes one row, and what never mixes.
#include "core/report/rows.h"

#include <gtest/gtest.h>

#include "core/report/formats.h"
#include "tests/core/store/sample_study.h"

namespace assay::report {
namespace {

/// Two seeds of one recipe and one of another, each run on the machines given, ok at once.
Model seeds_on(const std::vector<std::string>& machines) {
  store::TempFolder folder;
  store::SampleStore sample(folder / "a.db");
  store::Study study = store::sample_study("seeds");
  study.cells = {store::sample_cell('1', 0, "bf16"), store::sample_cell('2', 1, "bf16"),
                 store::sample_cell('3', 2, "fp32")};
  study.cells[0].slug = "bf16-s1";
  study.cells[1].slug = "bf16-s2";
  study.cells[1].recipe_id = study.cells[0].recipe_id;
  const int64_t id = sample.store.add_study(study);
  for (const std::string& machine : machines) {
    sample.store.ensure_runs(id, machine);
    while (const auto claim = sample.store.claim({.study_id = id,
                                                  .machine_id = machine,
                                                  .supervisor_id = sample.supervisor_id,
                                                  .env_id = store::id64('e')})) {
      const store::Metric loss{.name = "final_val_loss",
                               .value = 3.0 + 0.1 * static_cast<double>(claim->run.ordinal),
                               .unit = "nat",
                               .formula_id = "loss.v1"};
      sample.store.put_metrics(claim->attempt_id, {&loss, 1});
      sample.store.finish_attempt(claim->attempt_id, {.state = "ok"});
    }
  }
  return build_model(store::Reader(folder / "a.db"), {.study = "seeds"});
}

TEST(Rows, SeedsOfARecipeAreOneRow) {
  const Model m = seeds_on({store::kMachine});
  ASSERT_EQ(m.rows.size(), 2u);
  EXPECT_EQ(m.rows[0].label, "bf16");
  EXPECT_EQ(m.rows[0].cells, 2u);
  EXPECT_NE(terminal(m).find("cells (seeds) of the recipes: bf16 2, fp32 1"), std::string::npos)
      << terminal(m);
  EXPECT_EQ(m.rows[0].runs.size(), 4u);
  EXPECT_DOUBLE_EQ(*m.rows[0].figures[3].value, 3.05);  // losses: the mean over runs
  EXPECT_DOUBLE_EQ(*m.rows[0].figures[3].low, 3.0);
  EXPECT_DOUBLE_EQ(*m.rows[0].figures[3].high, 3.1);
  EXPECT_EQ(m.rows[1].label, "fp32");
}

TEST(Rows, MachinesNeverMix) {
  const Model m = seeds_on({"m1", "m2"});
  ASSERT_EQ(m.rows.size(), 4u);
  EXPECT_EQ(m.rows[0].machine_id, "m1");
  EXPECT_EQ(m.rows[1].machine_id, "m2");
  EXPECT_NE(terminal(m, {.width = 200}).find("machine  precision.name"), std::string::npos)
      << terminal(m, {.width = 200});
  EXPECT_EQ(terminal(seeds_on({"m1"})).find("recipe          machine"), std::string::npos);
}

TEST(Rows, StatesOfSeveralRuns) {
  const auto state = [](const std::vector<std::string>& states) {
    std::vector<RunRow> rows;
    for (const std::string& s : states) rows.push_back({.state = s});
    std::vector<const RunRow*> runs;
    for (const RunRow& row : rows) runs.push_back(&row);
    return state_of(runs);
  };
  EXPECT_EQ(state({}), "queued");
  EXPECT_EQ(state({"ok", "ok"}), "ok");
  EXPECT_EQ(state({"oom", "oom"}), "OOM");
  EXPECT_EQ(state({"ok", "timeout", "oom"}), "1/3 ok, TIMEOUT");
  EXPECT_EQ(state({"fail", "running"}), "running");
}

TEST(Rows, OptionsOfAnotherComponentAreImpliedByItsName) {
  std::vector<CellRow> cells(2);
  cells[0] = {.recipe_id = "a",
              .config = {{"optim.name", "adamw"}, {"optim.lr", "1"}, {"optim.eps", "1e-8"}}};
  cells[1] = {.recipe_id = "b",
              .config = {{"optim.name", "muon"}, {"optim.lr", "2"}, {"optim.momentum", "0.9"}}};
  EXPECT_EQ(shown_keys(cells, false), (std::vector<std::string>{"optim.lr", "optim.name"}));
  EXPECT_EQ(shown_keys(cells, true).size(), 4u);
}

TEST(Rows, FlattenKeepsTextsAndWritesTheRestAsJson) {
  const auto flat = flatten({{"a", {{"b", "text"}, {"c", {1, 2}}}}, {"d", nullptr}});
  EXPECT_EQ(flat.at("a.b"), "text");
  EXPECT_EQ(flat.at("a.c"), "[1,2]");
  EXPECT_EQ(flat.at("d"), "null");
}

}  // namespace
}  // namespace assay::report
