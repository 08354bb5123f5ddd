// The inner loops of the fused AdamW; compiled once per instruction set, the CPU's is picked at
// load.
#pragma once

#include <cstdint>

namespace assay::optim {

/// The constants of one parameter's update, already in the dtype of its arithmetic.
template <class T>
struct AdamWScalars {
  T keep;  ///< 1 - lr * weight_decay
  T lr;
  T beta1, one_minus_beta1;
  T beta2, one_minus_beta2;
  T correction1, correction2;  ///< 1 - beta^t
  T eps;
};

/// One update of n elements; bf16 gradients are given as their bits.
void adamw_loop(float* w, const float* g, float* m, float* q, int64_t n,
                const AdamWScalars<float>& s);
void adamw_loop(float* w, const uint16_t* g, float* m, float* q, int64_t n,
                const AdamWScalars<float>& s);
void adamw_loop(double* w, const double* g, double* m, double* q, int64_t n,
                const AdamWScalars<double>& s);
void adamw_loop(double* w, const uint16_t* g, double* m, double* q, int64_t n,
                const AdamWScalars<double>& s);

/// Rounds to bf16, to nearest even; NaN stays NaN.
void round_loop(const float* from, uint16_t* to, int64_t n);
void round_loop(const double* from, uint16_t* to, int64_t n);

}  // namespace assay::optim
