// Loss tiers from what plugins declare.
#include "core/evidence/tier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay::evidence {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

json config() {
  return {{"model", {{"name", "llama3"}, {"flavour", "tiny"}}},
          {"memory", {{"name", "none"}}},
          {"precision", {{"name", "fp32"}}},
          {"optim", {{"name", "adamw"}, {"lr", 0.001}, {"implementation", "plain"}}},
          {"parallel", {{"tp", {{"name", "tp"}, {"sp", false}}}}},
          {"train", {{"steps", 40}, {"micro_batch", 4}, {"threads_per_rank", 1}}},
          {"mesh", {{"tp", 1}}},
          {"seed", 1}};
}

/// memory/* keeps the bits; optim's implementation affects speed; every other option numerics.
Trait trait(const std::string& position, const std::string& component, const std::string& option) {
  if (component == "foreign") return {};
  return {.known = true,
          .bitwise_identical = position == "memory",
          .numerics = option != "implementation"};
}

Tier tier(const json& candidate) { return choose_tier(config(), candidate, trait).tier; }

json with(const std::string& pointer, json value) {
  json changed = config();
  changed[json::json_pointer(pointer)] = std::move(value);
  return changed;
}

TEST(Tier, EqualConfigurationsOweBits) {
  const TierChoice choice = choose_tier(config(), config(), trait);
  EXPECT_EQ(choice.tier, Tier::t0);
  EXPECT_THAT(choice.evidence, ElementsAre(HasSubstr("equal")));
}

TEST(Tier, SeedsAreNoDifference) { EXPECT_EQ(tier(with("/seed", 2)), Tier::t0); }

TEST(Tier, ComponentsThatKeepTheBitsOweThem) {
  EXPECT_EQ(tier(with("/memory/name", "full")), Tier::t0);
}

TEST(Tier, OptionsThatAffectSpeedOweBits) {
  EXPECT_EQ(tier(with("/optim/implementation", "fused")), Tier::t0);
}

TEST(Tier, AnotherOrderOfSumsOwesTheEnvelope) {
  EXPECT_EQ(tier(with("/train/micro_batch", 2)), Tier::t1);
  EXPECT_EQ(tier(with("/train/threads_per_rank", 2)), Tier::t1);
  EXPECT_EQ(tier(with("/mesh/tp", 2)), Tier::t1);
  EXPECT_EQ(tier(with("/parallel/tp/sp", true)), Tier::t1);
}

TEST(Tier, OtherNumericsOweSeeds) {
  EXPECT_EQ(tier(with("/precision/name", "bf16")), Tier::t2);
  EXPECT_EQ(tier(with("/optim/name", "lion")), Tier::t2);
  EXPECT_EQ(tier(with("/optim/lr", 0.002)), Tier::t2);
  EXPECT_EQ(tier(with("/train/steps", 50)), Tier::t2);
}

TEST(Tier, TheWeakestDifferenceDecidesAndIsNamedFirst) {
  json changed = with("/memory/name", "full");
  changed["precision"]["name"] = "bf16";
  changed["train"]["micro_batch"] = 2;
  const TierChoice choice = choose_tier(config(), changed, trait);
  EXPECT_EQ(choice.tier, Tier::t2);
  EXPECT_THAT(choice.evidence,
              ElementsAre("precision.name: fp32 -> bf16: other numerics (T2)",
                          "train.micro_batch: 4 -> 2: another order of sums (T1)",
                          "memory.name: none -> full: both provide bitwise.identical (T0)"));
}

TEST(Tier, AnUnknownPluginIsTrustedWithNothing) {
  json base = with("/optim/name", "foreign"), changed = base;
  changed["optim"]["beta"] = 0.5;
  EXPECT_EQ(choose_tier(base, changed, trait).tier, Tier::t2);
}

TEST(Tier, OptionsOfAnotherComponentAreImplied) {
  json changed = with("/optim/name", "lion");
  changed["optim"].erase("implementation");
  changed["optim"]["beta1"] = 0.9;
  const auto differences = config_differences(config(), changed);
  ASSERT_EQ(differences.size(), 1u);
  EXPECT_EQ(differences[0].key, "optim.name");
}

TEST(Tier, AWinnerIsNamedOnlyWhereQualityMayDiffer) {
  EXPECT_FALSE(quality_may_differ(config(), with("/precision/name", "bf16")));
  EXPECT_FALSE(quality_may_differ(config(), with("/mesh/tp", 2)));
  EXPECT_TRUE(quality_may_differ(config(), with("/optim/name", "lion")));
}

}  // namespace
}  // namespace assay::evidence
