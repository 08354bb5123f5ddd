// The dtypes of fp32, fp64 and bf16: the table of state bytes follows from them.
#include <c10/core/ScalarType.h>
#include <gtest/gtest.h>

#include "bf16.h"
#include "float8.h"
#include "fp32.h"
#include "fp64.h"

namespace assay::precision {
namespace {

/// Bytes per parameter with AdamW: weight, main gradient, two moments (and a master of its own).
size_t state_bytes(const Precision& precision) {
  const Dtypes d = precision.dtypes();
  const size_t master = d.master == d.param ? 0 : c10::elementSize(d.master);
  return c10::elementSize(d.param) + c10::elementSize(d.main_grad) + master +
         2 * c10::elementSize(d.master);
}

}  // namespace

TEST(Precision, StateBytesOfTheTable) {
  EXPECT_EQ(state_bytes(Fp64({})), 32U);
  EXPECT_EQ(state_bytes(Fp32({})), 16U);
  EXPECT_EQ(state_bytes(Bf16({})), 16U);
  EXPECT_EQ(state_bytes(Float8({})), 16U);
}

TEST(Precision, ComputeDtypes) {
  EXPECT_EQ(Fp64({}).dtypes().reduce, at::kDouble);
  EXPECT_EQ(Bf16({}).dtypes().compute, at::kBFloat16);
  EXPECT_EQ(Bf16({}).dtypes().reduce, at::kFloat);
  EXPECT_EQ(Float8({}).dtypes().compute, at::kBFloat16);
  EXPECT_EQ(Float8({.base = "fp32"}).dtypes().compute, at::kFloat);
}

TEST(Precision, OnlyEmulationsAndDoubleAreNumericsOnly) {
  EXPECT_TRUE(Fp64({}).numerics_only());
  EXPECT_TRUE(Float8({}).numerics_only());
  EXPECT_FALSE(Fp32({}).numerics_only());
  EXPECT_FALSE(Bf16({}).numerics_only());
}

}  // namespace assay::precision
