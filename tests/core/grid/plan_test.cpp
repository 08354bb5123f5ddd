// Plans: identity, layers, order of the stages, labels, facts asked once.
#include "core/grid/plan.h"

#include <gtest/gtest.h>

#include "core/grid/identity.h"
#include "tests/core/grid/study_files.h"

namespace assay::grid {
namespace {

TEST(Identity, HasTheHashesOfTheTestVector) {  // V0 of evidence.md 1.3
  const std::string binaries = "{\"libassay\":\"" + std::string(64, '2') +
                               "\",\"libtorch\":\"2.11.0\",\"plugins\":{\"adamw\":\"" +
                               std::string(64, '0') + "\"},\"worker\":\"" + std::string(64, '1') +
                               "\"}";
  const std::string config =
      R"({"memory":{"name":"full"},"model":{"flavour":"tiny","name":"llama3"},"optim":{"lr":0.0003,)"
      R"("name":"adamw"},"seed":1,"train":{"steps":40,"threads_per_rank":1}})";
  std::string recipe = config;
  recipe.erase(recipe.find("\"seed\":1,"), 9);
  const Ids ids = ids_of(binaries, config, recipe, std::string(64, '3'));
  EXPECT_EQ(ids.cell_id, "d7a495f759605967e5be6cfab3b8915f86f7da7c76aa0156ae68b469f85d015a");
  EXPECT_EQ(ids.recipe_id, "b068374e32d3613d99d9bc366d95249bf1ca9b4bc05ad2d9b8f03135d90e0783");
  EXPECT_EQ(ids.config_id, "fdad8090765d8095029b8eccaa7f741678b69ddeca81017ede13b55b49de6dd6");
}

using PlanTest = StudyFiles;

TEST_F(PlanTest, ConfigurationIsCanonicalJson) {
  const Plan p = plan(study("grid: {product: {parallel.tp: [tp], mesh.tp: [2]}}\n"));
  ASSERT_EQ(p.cells.size(), 1U);
  const nlohmann::json config = p.cells[0].config();
  EXPECT_EQ(config.dump(), p.cells[0].config_json);
  EXPECT_EQ(config["parallel"]["tp"]["name"], "tp");
  EXPECT_EQ(config["parallel"]["tp"]["sp"], true);
  EXPECT_EQ(config["mesh"]["dp_shard"], 1);
  EXPECT_EQ(config["memory"]["name"], "none");
  EXPECT_EQ(config["train"]["micro_batch"], 8);
  EXPECT_EQ(config["train"]["grad_accum"], 1);
  EXPECT_EQ(config["train"]["warmup"], 6);
  EXPECT_EQ(config["train"]["threads_per_rank"], 1);
  EXPECT_EQ(config["optim"]["lr"], 3e-4);
  EXPECT_EQ(config["comm"]["timeout"], 60'000'000'000);
  EXPECT_EQ(p.cells[0].world, 2);
}

TEST_F(PlanTest, IdsAreThoseOfTheCanonicalTexts) {
  const Cell cell = plan(study("")).cells.at(0);
  nlohmann::json config = cell.config();
  const nlohmann::json full = {{"binaries", nlohmann::json::parse(cell.binaries_json)},
                               {"config", config},
                               {"data", cell.data_fingerprint},
                               {"v", 1}};
  EXPECT_EQ(cell.cell_id, sha256(full.dump()));
  nlohmann::json recipe = full;
  recipe["config"].erase("seed");
  EXPECT_EQ(cell.recipe_id, sha256(recipe.dump()));
  nlohmann::json bare = full;
  bare.erase("binaries");
  EXPECT_EQ(cell.config_id, sha256(bare.dump()));
  EXPECT_EQ(nlohmann::json::parse(cell.binaries_json)["plugins"].size(), 7U);
}

TEST_F(PlanTest, SeedsShareARecipeAndNuisanceKeysLeaveIt) {
  const Plan p = plan(study("seeds: [1, 2, 3]\n"));
  ASSERT_EQ(p.cells.size(), 3U);
  EXPECT_EQ(p.cells[0].recipe_id, p.cells[2].recipe_id);
  EXPECT_NE(p.cells[0].cell_id, p.cells[2].cell_id);
  EXPECT_NE(p.cells[0].config_id, p.cells[2].config_id);
  EXPECT_EQ(slugs(p), (std::vector<std::string>{"s1", "s2", "s3"}));

  const Plan q =
      plan(study("nuisance: [train.eval_every]\ngrid: {product: {train.eval_every: [1, "
                 "2], train.steps: [5, 6]}}\n"));
  EXPECT_EQ(q.cells[0].recipe_id, q.cells[2].recipe_id);
  EXPECT_NE(q.cells[0].recipe_id, q.cells[1].recipe_id);
}

TEST_F(PlanTest, ExecutionKeysChangeNoId) {
  const std::string id = plan(study("")).cells[0].cell_id;
  const Plan p =
      plan(study("run: {timeout: 1m, devices: 1, memory_limit: 6GiB, timed: false, "
                 "retries: 0}\nrepeats: 7\n"));
  EXPECT_EQ(p.cells[0].cell_id, id);
  EXPECT_EQ(p.run.timeout_ns, 60'000'000'000);
  EXPECT_EQ(p.run.memory_limit_bytes, int64_t{6} << 30);
  EXPECT_FALSE(p.run.timed);
  EXPECT_EQ(p.run.retries, 0);
  EXPECT_EQ(p.repeats, 7);
}

TEST_F(PlanTest, BinariesChangeTheCellButNotItsHistory) {
  const Cell before = plan(study("")).cells[0];
  PlanRequest request;
  request.binaries = fake_binaries();
  request.binaries.worker = std::string(64, '9');
  const Cell after = plan(study(""), request).cells[0];
  EXPECT_NE(before.cell_id, after.cell_id);
  EXPECT_EQ(before.config_id, after.config_id);
}

TEST_F(PlanTest, APathCountsByItsContent) {
  write("a.txt", std::string(1000, 'x'));
  write("b.txt", std::string(1000, 'x'));
  write("c.txt", std::string(1000, 'y'));
  const auto id = [&](const std::string& file) {
    return plan(study("", "model: llama3, data: {name: text, path: " + file + "}"))
        .cells[0]
        .cell_id;
  };
  EXPECT_EQ(id("a.txt"), id("b.txt"));
  EXPECT_NE(id("a.txt"), id("c.txt"));
  const Cell cell = plan(study("", "model: llama3, data: {name: text, path: a.txt}")).cells[0];
  EXPECT_EQ(cell.config()["data"]["path"], (folder_ / "a.txt").string());
}

TEST_F(PlanTest, LaterLayersWin) {
  const auto lr = [](const Plan& p) { return p.cells[0].config()["optim"]["lr"].get<double>(); };
  EXPECT_EQ(lr(plan(study("defaults: {optim.lr: 1.0}\n"))), 1.0);
  EXPECT_EQ(lr(plan(study("defaults: {optim.lr: 1.0}\n",
                          "model: llama3, data: synthetic, optim.lr: 2.0"))),
            2.0);
  PlanRequest request;
  request.sets = {"optim.lr=3.0"};
  EXPECT_EQ(lr(plan(study("", "model: llama3, data: synthetic, optim.lr: 2.0"), request)), 3.0);
  const std::string set = "grid: {set: {optim.lr: 4.0}, product: {seed: [1]}}\n";
  EXPECT_EQ(lr(plan(study(set), request)), 4.0);
  EXPECT_EQ(lr(plan(study("grid: {set: {optim.lr: 4.0}, product: {optim.lr: [5.0]}}\n"))), 5.0);
  EXPECT_EQ(lr(plan(study("grid: {product: {optim.lr: [5.0]}}\nderive: {optim.lr: 2 * 3.0}\n"))),
            6.0);
}

TEST_F(PlanTest, ExtendsMergesMapsReplacesListsAndRemovesKeys) {
  write("base.yaml",
        "base: {model: llama3, data: synthetic, memory: {name: selective_layer, every: 3}, train: "
        "{steps: 5}}\n"
        "nuisance: [train.steps]\nenv: [A, B]\n");
  const Plan p = plan(
      "assay: 1\nstudy: s\nextends: [base.yaml]\nbase: {memory: ~, train.steps: 7}\nnuisance: "
      "[optim.lr]\n");
  const nlohmann::json config = p.cells[0].config();
  EXPECT_EQ(config["memory"]["name"], "none");
  EXPECT_EQ(config["train"]["steps"], 7);
  EXPECT_EQ(p.nuisance, (std::vector<std::string>{"seed", "optim.lr"}));
}

TEST_F(PlanTest, NullUnsetsAKey) {
  const Plan p = plan(study("grid: {product: {optim.lr: [~, 1e-2]}}\n",
                            "model: llama3, data: synthetic, optim.lr: 1e-3"));
  EXPECT_EQ(p.cells[0].config()["optim"]["lr"], 3e-4);
  EXPECT_EQ(p.cells[0].slug, "default");
}

TEST_F(PlanTest, CopiesFollowTheCell) {
  const Plan p = plan(study("grid: {product: {train.steps: [10, 20]}}\n",
                            "model: llama3, data: synthetic, train.warmup: \"${train.steps}\""));
  EXPECT_EQ(p.cells[0].config()["train"]["warmup"], 10);
  EXPECT_EQ(p.cells[1].config()["train"]["warmup"], 20);
}

TEST_F(PlanTest, TheLastAxisVariesFastest) {
  const Plan p = plan(study("grid: {product: {memory: [none, full], precision: [fp32, bf16]}}\n"));
  EXPECT_EQ(slugs(p),
            (std::vector<std::string>{"none_fp32", "none_bf16", "full_fp32", "full_bf16"}));
  EXPECT_EQ(p.swept, (std::vector<std::string>{"memory", "precision"}));
  EXPECT_EQ(p.cells[3].axes[1].label, "bf16");
  EXPECT_EQ(p.cells[3].axes[1].value_json, "\"bf16\"");
  EXPECT_EQ(p.cells[3].ordinal, 3);
}

TEST_F(PlanTest, ProductsOfBlocksAndZipsOfBlocksNest) {
  const Plan p =
      plan(study("grid:\n  product:\n    - zip: {memory: [none, full], optim.lr: [1e-3, 2e-3]}\n"
                 "    - concat:\n        - product: {precision: [fp32]}\n        - cells: "
                 "[{precision: bf16, train.steps: 9}]\n"));
  EXPECT_EQ(slugs(p), (std::vector<std::string>{"none_1e-3_fp32", "none_1e-3_bf16_9",
                                                "full_2e-3_fp32", "full_2e-3_bf16_9"}));
}

TEST_F(PlanTest, ClashingSlugsGetAPieceOfTheId) {
  const Plan p =
      plan(study("grid: {product: {k: {variants: [{label: 'a b', set: {seed: 1}}, {label: a-b, "
                 "set: {seed: 2}}]}}}\n"));
  EXPECT_EQ(p.cells[0].slug, "a-b~" + p.cells[0].cell_id.substr(0, 6));
  EXPECT_NE(p.cells[0].slug, p.cells[1].slug);
}

TEST_F(PlanTest, LongLabelsAreCut) {
  const std::string label(200, 'x');
  const Plan p =
      plan(study("grid: {product: {k: {variants: [{label: " + label + ", set: {}}]}}}\n"));
  EXPECT_EQ(p.cells[0].slug.size(), 80U);
}

TEST_F(PlanTest, FactsAreAskedOncePerSetOfOptions) {
  plan(
      study("grid: {product: {model.flavour: [tiny, small], seed: [1, 2, 3, 4, 5], memory: [none, "
            "full]}}\n"));
  EXPECT_EQ(components_.asked, 3);    // one data set, two models
  EXPECT_EQ(components_.batches, 2);  // data together, then models together
}

TEST_F(PlanTest, SkipsAreListedInGridOrderWithTheirRule) {
  PlanRequest request;
  request.filter = "precision.name == 'fp32'";
  const Plan p = plan(
      study("grid: {product: {precision: [fp32, bf16], mesh.tp: [1, 4], memory: [none, full]}}\n"
            "exclude: [{memory: full, precision: fp32}]\nwhen: not (memory.name == 'full' and "
            "mesh.tp == 4)\n",
            "model: llama3, data: synthetic, parallel.tp: tp"),
      request);
  std::vector<std::string> rules;
  for (const Skip& skip : p.skips) rules.push_back(skip.slug + " " + skip.rule);
  EXPECT_EQ(rules, (std::vector<std::string>{"fp32_1_full exclude", "fp32_4_none refused",
                                             "fp32_4_full exclude", "bf16_1_none filter",
                                             "bf16_1_full filter", "bf16_4_none refused",
                                             "bf16_4_full when"}));
  EXPECT_EQ(slugs(p), std::vector<std::string>{"fp32_1_none"});
  EXPECT_EQ(p.skips[1].rule_id, "R-MESH");
  EXPECT_EQ(p.skips[0].line, 5);
}

TEST_F(PlanTest, DeriveMayReadTheSeed) {
  const Plan p = plan(study("seeds: [3, 4]\nderive: {train.eval_batches: seed * 2}\n"));
  EXPECT_EQ(p.cells[0].config()["train"]["eval_batches"], 6);
  EXPECT_EQ(p.cells[1].config()["train"]["eval_batches"], 8);
}

TEST_F(PlanTest, ADerivedComponentNameChoosesTheComponent) {
  const Plan p = plan(study("derive: {memory.name: \"'full'\"}\n"));
  EXPECT_EQ(p.cells[0].config()["memory"]["name"], "full");
}

TEST_F(PlanTest, OneRankUsesAllThreads) {
  PlanRequest request;
  request.machine = fake_machine(6);
  const Plan p = plan(study("grid: {product: {mesh.dp_replicate: [1, 2, 4]}}\n",
                            "model: llama3, data: synthetic, parallel.dp_replicate: ddp"),
                      request);
  EXPECT_EQ(p.cells[0].config()["train"]["threads_per_rank"], 6);
  EXPECT_EQ(p.cells[1].config()["train"]["threads_per_rank"], 3);
  EXPECT_EQ(p.cells[2].config()["train"]["threads_per_rank"], 1);
}

TEST_F(PlanTest, ARuleWithAnUnknownKeyIsThePluginsError) {
  components_.add({{"kind", "memory"},
                   {"name", "lab"},
                   {"rules", {{{"id", "R-LAB"}, {"expression", "mesh.tpp > 1"}, {"text", "x"}}}}});
  const std::string text = errors(study("", "model: llama3, data: synthetic, memory: lab"));
  EXPECT_EQ(text,
            "lab.assay.so: error[P10]: rule R-LAB of memory/lab: no key 'mesh.tpp' in \"mesh.tpp > "
            "1\"\n  hint: did you mean 'mesh.pp', 'mesh.tp' or 'mesh.cp'?\n");
}

TEST_F(PlanTest, ARuleThatCannotBeReadIsThePluginsError) {
  components_.add({{"kind", "memory"},
                   {"name", "lab"},
                   {"rules", {{{"id", "R-LAB"}, {"expression", "mesh.tp >"}, {"text", "x"}}}}});
  EXPECT_NE(errors(study("", "model: llama3, data: synthetic, memory: lab")).find("error[P10]"),
            std::string::npos);
}

TEST_F(PlanTest, HashesOfFilesFollowTheirContent) {
  const auto file = write("f", "one");
  EXPECT_EQ(cached_file_hash(file), sha256("one"));
  EXPECT_EQ(cached_file_hash(file), sha256("one"));
  write("f", "three");
  EXPECT_EQ(cached_file_hash(file), sha256("three"));
  EXPECT_THROW(cached_file_hash(folder_ / "none"), Error);
}

TEST(ThisMachine, HasACore) {
  const Machine machine = this_machine();
  EXPECT_GE(machine.devices, 1);
  EXPECT_TRUE(machine.properties.contains("device.cpu"));
}

}  // namespace
}  // namespace assay::grid
