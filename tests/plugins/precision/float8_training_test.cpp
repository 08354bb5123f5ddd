// float8 inside the trainer: recompute gives the plain run's bits and keeps the same linear
// weights, and a model learns nearly as well as with bf16.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "assay/registry.h"
#include "core/train/trainer.h"

// The registration functions of the plugins that this program links.
void assay_register_adamw(assay::Registrar&);
void assay_register_compile_eager(assay::Registrar&);
void assay_register_data_synthetic(assay::Registrar&);
void assay_register_llama3(assay::Registrar&);
void assay_register_memory_full(assay::Registrar&);
void assay_register_memory_none(assay::Registrar&);
void assay_register_memory_selective_op(assay::Registrar&);
void assay_register_precision_bf16(assay::Registrar&);
void assay_register_precision_float8(assay::Registrar&);

namespace assay::precision {
namespace {

void register_plugins() {
  static const bool once = [] {
    Registrar registrar("test");
    for (auto* add :
         {assay_register_adamw, assay_register_compile_eager, assay_register_data_synthetic,
          assay_register_llama3, assay_register_memory_full, assay_register_memory_none,
          assay_register_memory_selective_op, assay_register_precision_bf16,
          assay_register_precision_float8}) {
      add(registrar);
    }
    registry().add(registrar.entries());
    at::set_num_threads(1);  // bits of full sums depend on the thread count
    return true;
  }();
  (void)once;
}

std::unique_ptr<train::Trainer> make_trainer(nlohmann::json precision, const char* memory) {
  register_plugins();
  const nlohmann::json config = {
      {"model",
       {{"name", "llama3"},
        {"flavour", "tiny"},
        {"layers", 2},
        {"hidden", 64},
        {"ffn", 96},
        {"seq_len", 16}}},
      {"data", {{"name", "synthetic"}, {"vocab_size", 32}, {"branches", 2}}},
      {"mesh", nlohmann::json::object()},
      {"parallel", nlohmann::json::object()},
      {"memory", {{"name", memory}}},
      {"precision", std::move(precision)},
      {"optim", {{"name", "adamw"}, {"lr", 1e-2}}},
      {"compile", {{"name", "eager"}}},
      {"comm", {{"name", "shm"}}},
      {"train",
       {{"steps", 60},
        {"global_batch", 8},
        {"micro_batch", 4},
        {"max_norm", 1.0},
        {"warmup", 0},
        {"schedule", "constant"},
        {"eval_batches", 1}}},
      {"seed", 1}};
  return std::make_unique<train::Trainer>(
      train::assemble(train::make_recipe(config), 0, {}, at::kCPU));
}

std::vector<std::pair<double, double>> steps(train::Trainer& trainer, int64_t count) {
  std::vector<std::pair<double, double>> result;
  for (int64_t i = 0; i < count; ++i) {
    const auto step = trainer.step(i);
    result.emplace_back(step.loss, step.grad_norm);
  }
  return result;
}

}  // namespace

TEST(Float8Training, RecomputeGivesTheBitsOfThePlainRun) {
  for (const char* recipe : {"tensorwise", "rowwise"}) {
    const nlohmann::json float8 = {{"name", "float8"}, {"recipe", recipe}};
    const auto plain = steps(*make_trainer(float8, "none"), 3);
    EXPECT_EQ(steps(*make_trainer(float8, "full"), 3), plain) << recipe;
    EXPECT_EQ(steps(*make_trainer(float8, "selective_op"), 3), plain) << recipe;
  }
}

TEST(Float8Training, SelectiveRecomputeKeepsWhatItKeepsWithoutFloat8) {
  const auto kept = [](const char* precision) {
    auto trainer = make_trainer({{"name", precision}}, "selective_op");
    steps(*trainer, 1);
    return trainer->assembly().counters["recompute.kept"];
  };
  EXPECT_EQ(kept("float8"), kept("bf16"));
}

TEST(Float8Training, LearnsLikeItsBase) {
  auto base = make_trainer({{"name", "bf16"}}, "none");
  auto eight = make_trainer({{"name", "float8"}, {"recipe", "rowwise"}}, "none");
  const double reached = steps(*base, 60).back().first, found = steps(*eight, 60).back().first;
  EXPECT_LT(reached, 2.0) << "ln 32 = 3.47 at first, ln 2 = 0.69 at best";
  EXPECT_NEAR(found, reached, 0.1 * reached);
}

}  // namespace assay::precision
