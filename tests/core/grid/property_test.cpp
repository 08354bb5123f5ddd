// Properties: spelling changes no id, the resolved study plans the same cells, no input crashes.
#include <gtest/gtest.h>

#include <random>

#include "core/grid/layers.h"
#include "core/grid/node.h"
#include "tests/core/grid/study_files.h"

namespace assay::grid {
namespace {

using PropertyTest = StudyFiles;

std::vector<std::string> ids(const Plan& plan) {
  std::vector<std::string> list;
  for (const Cell& cell : plan.cells)
    list.push_back(cell.cell_id + cell.recipe_id + cell.config_id);
  return list;
}

constexpr const char* kStudy = R"(assay: 1
study: s
base:
  model: {name: llama3, seq_len: 128}
  data: synthetic
  parallel: {dp_shard: {name: fsdp, reshard: never}}
  optim: adamw
  train: {steps: 12, global_batch: 4}
derive: {train.micro_batch: train.global_batch / (2 * mesh.dp_shard)}
grid:
  product:
    memory: [none, {name: selective_layer, every: 3}]
    mesh.dp_shard: [1, 2]
    precision.name: [fp32, float8]
seeds: [1, 2]
)";

/// The members of every map in another order; the grid stays, for its order names the cells.
void shuffle_maps(Node& node, std::mt19937& random) {
  std::shuffle(node.members.begin(), node.members.end(), random);
  for (Node& item : node.items) shuffle_maps(item, random);
  for (Member& member : node.members) {
    if (member.key != "product") shuffle_maps(member.value, random);
  }
}

Node tree_of(const std::string& yaml) {
  static std::vector<std::shared_ptr<const Source>> sources;
  sources.push_back(Source::make("study.yaml", {}, yaml));
  Findings findings;
  return read_yaml(yaml, *sources.back(), findings);
}

TEST_F(PropertyTest, TheOrderOfKeysChangesNoId) {
  const auto expected = ids(plan(kStudy));
  ASSERT_EQ(expected.size(), 16U);
  std::mt19937 random(7);
  for (int i = 0; i < 20; ++i) {
    Node tree = tree_of(kStudy);
    shuffle_maps(tree, random);
    EXPECT_EQ(ids(plan(emit_yaml(tree))), expected) << emit_yaml(tree);
  }
}

TEST_F(PropertyTest, WrittenDefaultsChangeNoId) {
  const auto expected = ids(plan(kStudy));
  Plan first = plan(kStudy);
  const nlohmann::json config = first.cells[0].config();
  std::string yaml = kStudy;
  // Every option of the first cell that no axis or derivation sets, written out under defaults.
  std::string defaults = "defaults: {";
  for (const auto& [section, options] : config.items()) {
    if (!options.is_object() || section == "parallel") continue;
    for (const auto& [key, value] : options.items()) {
      const bool varies = key == "name" || key == "grad_accum" || key == "micro_batch" ||
                          key == "timeout" || key == "warmup" || key == "threads_per_rank";
      if (!varies) defaults += section + "." + key + ": " + value.dump() + ", ";
    }
  }
  EXPECT_EQ(ids(plan(yaml + defaults + "optim.name: adamw}\n")), expected) << defaults;
}

TEST_F(PropertyTest, APlainComponentNameIsItsMap) {
  std::string yaml = kStudy;
  const auto replace = [&](const std::string& from, const std::string& to) {
    ASSERT_NE(yaml.find(from), std::string::npos);
    yaml.replace(yaml.find(from), from.size(), to);
  };
  replace("optim: adamw", "optim: {name: adamw}");
  replace("data: synthetic", "data.name: synthetic");
  replace("memory: [none,", "memory: [{name: none},");
  EXPECT_EQ(ids(plan(yaml)), ids(plan(kStudy)));
}

TEST_F(PropertyTest, TheResolvedStudyPlansTheSameCells) {
  write("base.yaml", "base: {model: llama3, data: synthetic, train.steps: 3}\n");
  ::setenv("ASSAY_TEST_LR", "0.25", 1);
  PlanRequest request;
  request.sets = {"train.global_batch=2"};
  const Plan first = plan(
      "assay: 1\nstudy: s\nextends: [base.yaml]\nenv: [ASSAY_TEST_LR]\n"
      "base: {optim.lr: '${env:ASSAY_TEST_LR}', memory: {name: offload, limit: 64MiB}}\n"
      "grid: {product: {precision: [fp32, bf16], train.min_factor: [0, 1e-1]}}\n" +
          std::string(),
      request);
  const Plan second = plan(first.resolved_json);
  EXPECT_EQ(ids(first), ids(second));
  EXPECT_EQ(ids(plan(second.resolved_json)), ids(first));
}

TEST_F(PropertyTest, AnEmittedTreePlansTheSameCells) {
  EXPECT_EQ(ids(plan(emit_yaml(tree_of(kStudy)))), ids(plan(kStudy)));
}

/// Plans, or is refused with diagnostics or an Error; anything else is a bug.
void survive(StudyFiles&, const std::function<void()>& run, const std::string& text) {
  try {
    run();
  } catch (const DiagnosticError& error) {
    EXPECT_FALSE(error.diagnostics().empty()) << text;
  } catch (const Error&) {
  } catch (const std::exception& error) {
    ADD_FAILURE() << error.what() << "\n" << text;
  }
}

TEST_F(PropertyTest, RandomBytesNeverCrash) {
  std::mt19937 random(11);
  for (int i = 0; i < 300; ++i) {
    std::string text(random() % 200, ' ');
    for (char& c : text) c = static_cast<char>(random() % 256);
    survive(
        *this, [&] { plan(text); }, text);
  }
}

TEST_F(PropertyTest, RandomYamlNeverCrashes) {
  const std::vector<std::string> pieces = {
      "assay: 1\n", "study: s\n", "base: ",  "grid: ",     "{",      "}",
      "[",          "]",          ": ",      ", ",         "\n",     "  ",
      "- ",         "product",    "zip",     "cells",      "concat", "variants",
      "values",     "label",      "set",     "when",       "model",  "llama3",
      "data",       "synthetic",  "~",       "1",          "-1",     "1e3",
      "'",          "\"",         "&a ",     "*a",         "<<",     "${train.steps}",
      "${env:X}",   "mesh.tp",    "seed",    "!!x ",       "#",      "|\n",
      ">",          "include",    "exclude", "derive",     "seeds",  "compare",
      "baseline",   "candidates", "extends", "study.yaml", "run"};
  std::mt19937 random(13);
  for (int i = 0; i < 600; ++i) {
    std::string text = i % 2 ? "assay: 1\nstudy: s\nbase: {model: llama3, data: synthetic}\n" : "";
    for (size_t n = random() % 40; n > 0; --n) text += pieces[random() % pieces.size()];
    survive(
        *this, [&] { plan(text); }, text);
  }
}

TEST_F(PropertyTest, ChangedBytesNeverCrash) {
  std::mt19937 random(17);
  for (int i = 0; i < 400; ++i) {
    std::string text = kStudy;
    for (int n = 0; n < 4; ++n) {
      const size_t at = random() % text.size();
      switch (random() % 3) {
        case 0:
          text[at] = static_cast<char>(32 + random() % 95);
          break;
        case 1:
          text.erase(at, 1 + random() % 8);
          break;
        default:
          text.insert(at, text.substr(random() % text.size(), random() % 12));
      }
    }
    survive(
        *this, [&] { plan(text); }, text);
  }
}

TEST_F(PropertyTest, RandomFiltersNeverCrash) {
  const std::vector<std::string> pieces = {
      "mesh.tp", "memory.name", "'full'", "1",   "64MiB",    "(",       ")",         "and", "or",
      "not",     "in",          "[",      "]",   ",",        "<",       "==",        "+",   "-",
      "*",       "/",           "%",      "min", "ceil_div", "defined", "unmatched", "x.y"};
  std::mt19937 random(19);
  for (int i = 0; i < 500; ++i) {
    PlanRequest request;
    for (size_t n = 1 + random() % 12; n > 0; --n) {
      request.filter += pieces[random() % pieces.size()] + " ";
    }
    survive(
        *this, [&] { plan(kStudy, request); }, request.filter);
  }
}

}  // namespace
}  // namespace assay::grid
