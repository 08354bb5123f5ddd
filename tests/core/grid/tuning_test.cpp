// Trials of a tuned study: what each changes, what is shared, what is refused.
#include "core/grid/tuning.h"

#include <gmock/gmock.h>

#include <set>

#include "assay/error.h"
#include "tests/core/grid/study_files.h"

namespace assay::grid {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::string kTune = "tune: {factors: [2, 0.5], steps: 7, seeds: [101]}\n";
const std::string kTwo =
    "grid: {product: {optim: [adamw, lion]}}\nseeds: [1, 2]\n";  // starts 3e-4 and 1e-4

class Tuning : public StudyFiles {
 protected:
  Trials trials(const std::string& rest) {
    const Plan planned = plan(study(rest));
    PlanRequest request;
    request.file = folder_ / "study.yaml";
    request.machine = fake_machine();
    request.binaries = fake_binaries();
    request.hash_file = cached_file_hash;
    request.components = [this](const auto&) -> const Components& { return components_; };
    return plan_trials(request, planned);
  }
  static nlohmann::json value(const Cell& cell, const std::string& pointer) {
    return cell.config().at(nlohmann::json::json_pointer(pointer));
  }
};

TEST_F(Tuning, EveryRecipeTriesTheFactorsTimesItsOwnStart) {
  const Trials t = trials(kTwo + kTune);
  EXPECT_EQ(t.plan.study, "s-tune");
  EXPECT_THAT(slugs(t.plan), ElementsAre("adamw_x0.5", "lion_x0.5", "adamw_x2", "lion_x2"));
  std::vector<double> rates;
  for (const Cell& cell : t.plan.cells) {
    rates.push_back(value(cell, "/optim/lr"));
    EXPECT_EQ(value(cell, "/seed"), 101);
    EXPECT_EQ(value(cell, "/train/steps"), 7);
  }
  EXPECT_THAT(rates, ElementsAre(1.5e-4, 0.5e-4, 6e-4, 2e-4));
  ASSERT_EQ(t.cells.size(), 4u);
  EXPECT_EQ(t.cells[0].arm, "adamw");
  EXPECT_EQ(t.cells[0].cell_id, t.plan.cells[0].cell_id);
  EXPECT_EQ(t.cells[3].factor, 1u);
  EXPECT_EQ(t.cells[3].value, 2e-4);
}

TEST_F(Tuning, SeedsMultiplyTrials) {
  const Trials t = trials(kTwo + "tune: {factors: [1], steps: 7, seeds: [8, 9]}\n");
  EXPECT_THAT(slugs(t.plan), ElementsAre("adamw_x1_s8", "lion_x1_s8", "adamw_x1_s9", "lion_x1_s9"));
}

TEST_F(Tuning, RecipesThatTrialsMakeEqualShareThem) {
  const Trials t = trials("grid: {product: {train.steps: [20, 30]}}\n" + kTune);
  EXPECT_EQ(t.plan.cells.size(), 2u);
  ASSERT_EQ(t.cells.size(), 4u);
  EXPECT_EQ(t.cells[0].cell_id, t.cells[1].cell_id);
  EXPECT_NE(t.cells[0].arm, t.cells[1].arm);
}

TEST_F(Tuning, TheChosenValueEntersTheRecipesOwnCells) {
  PlanRequest request;
  request.tuned = {{"lion", 0.25}};
  const Plan p = plan(study(kTwo + kTune), request);
  std::vector<double> rates;
  for (const Cell& cell : p.cells) rates.push_back(value(cell, "/optim/lr"));
  EXPECT_THAT(rates, ElementsAre(3e-4, 3e-4, 0.25, 0.25));
  EXPECT_THAT(slugs(p), ElementsAre("adamw_s1", "adamw_s2", "lion_s1", "lion_s2"));
  EXPECT_EQ(p.cells[3].arm, "lion");
  EXPECT_EQ(p.cells[3].recipe_id, p.cells[2].recipe_id);
}

TEST_F(Tuning, MistakesHaveTheirPlace) {
  const auto mistake = [&](const std::string& tune, const std::string& grid = kTwo) {
    return errors(study(grid + "tune: " + tune + "\n"));
  };
  EXPECT_THAT(mistake("{step: 7}"), HasSubstr("study.yaml:6:8: error[G04]"));
  EXPECT_THAT(mistake("{step: 7}"), HasSubstr("did you mean 'steps'"));
  EXPECT_THAT(mistake("{factors: [1]}"), HasSubstr("'tune.steps' is missing"));
  EXPECT_THAT(mistake("{steps: 7, factors: [0, 1]}"), HasSubstr("must be above 0"));
  EXPECT_THAT(mistake("{steps: 7, factors: [1, 1]}"), HasSubstr("stands twice"));
  EXPECT_THAT(mistake("{steps: 7, seeds: [2]}"), HasSubstr("seed 2 is compared by the study"));
  EXPECT_THAT(mistake("{steps: 7, key: optim.lrr}"), HasSubstr("did you mean 'optim.lr'"));
  EXPECT_THAT(mistake("{steps: 7, key: model.flavour}"), HasSubstr("has no such number"));
  EXPECT_THAT(mistake("{steps: 7, score: speed}"), HasSubstr("final_val_loss"));
  EXPECT_THAT(mistake("lr"), HasSubstr("must be a map"));
  EXPECT_THAT(mistake("{steps: 7}", "grid: {product: {optim.lr: [1e-3, 2e-3]}}\n\n"),
              HasSubstr("error[G08]: 'optim.lr' is swept by the grid"));
  EXPECT_THROW(trials(kTwo + "tune: {steps: 7, key: optim.beta1, factors: [2]}\n"),
               DiagnosticError);  // above its range
}

TEST_F(Tuning, FactorsThatMeetShareACell) {
  const Trials t = trials(
      "grid: {product: {rate: {variants: [{label: lo, set: {optim.lr: 0.0001}},"
      " {label: hi, set: {optim.lr: 0.0002}}]}}}\n"
      "tune: {factors: [1, 2], steps: 7}\n");
  EXPECT_EQ(t.plan.cells.size(), 3u);  // lo x 2 is hi x 1
  EXPECT_EQ(t.cells.size(), 4u);
  const Trials near = trials(kTwo + "tune: {factors: [1.0000001, 1.0000002], steps: 7}\n");
  std::set<std::string> names;
  for (const Cell& cell : near.plan.cells) names.insert(cell.slug);
  EXPECT_EQ(names.size(), 4u);
}

TEST_F(Tuning, WhatTuneChangesMayNotBeReadBefore) {
  const auto mistake = [&](const std::string& more) { return errors(study(more + kTune)); };
  EXPECT_THAT(mistake("derive: {optim.weight_decay: optim.lr * 2}\n"),
              HasSubstr("error[G08]: 'optim.weight_decay' is derived from 'optim.lr'"));
  EXPECT_THAT(mistake("derive: {train.eval_every: train.steps / 2}\n"), HasSubstr("'train.steps'"));
  EXPECT_THAT(mistake("when: optim.lr < 0.1\n"), HasSubstr("a condition reads 'optim.lr'"));
  EXPECT_THAT(mistake("exclude: [{optim.lr: 0.1}]\n"), HasSubstr("'exclude' reads 'optim.lr'"));
}

TEST_F(Tuning, SeedsOfTheStudyChooseNothing) {
  const auto mistake = [&](const std::string& more) { return errors(study(more)); };
  EXPECT_THAT(mistake("tune: {steps: 7, seeds: [1]}\n"), HasSubstr("seed 1 is the study's own"));
  EXPECT_THAT(mistake("grid: {product: {seed: [7, 8]}}\n" + kTune),
              HasSubstr("'seed' is an axis of the grid"));
  EXPECT_THAT(mistake("tune: {key: optim.weight_decay, steps: 7}\ndefaults:"
                      " {optim.weight_decay: 0}\n"),
              HasSubstr("every factor of it is 0"));
  EXPECT_THAT(mistake("tune: {key: [optim.lr], steps: 7}\n"), HasSubstr("must be one key"));
}

TEST_F(Tuning, TwoRecipesOfOneNameAreRefused) {
  EXPECT_THROW(trials("grid:\n  concat:\n"
                      "    - {set: {train.steps: 5}, cells: [{optim: adamw}]}\n"
                      "    - {set: {train.steps: 6}, cells: [{optim: adamw}]}\n" +
                      kTune),
               Error);
}

}  // namespace
}  // namespace assay::grid
