// Philox, the normal quantile and the Feistel permutation of counter_random.h.
#include "core/train/counter_random.h"

#include <bit>
#include <cmath>

namespace assay::train {
namespace {

constexpr uint64_t kMultiplier0 = 0xD2511F53, kMultiplier1 = 0xCD9E8D57;
constexpr uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;

template <size_t n>
double polynomial(const double (&c)[n], double x) {
  double value = c[n - 1];
  for (size_t i = n - 1; i-- > 0;) value = value * x + c[i];
  return value;
}

// AS 241: |p - 1/2| <= 0.425, then two ranges of sqrt(-ln tail).
constexpr double kA[] = {3.3871328727963666080, 133.14166789178437745, 1971.5909503065514427,
                         13731.693765509461125, 45921.953931549871457, 67265.770927008700853,
                         33430.575583588128105, 2509.0809287301226727};
constexpr double kB[] = {1.0,
                         42.313330701600911252,
                         687.18700749205790830,
                         5394.1960214247511077,
                         21213.794301586595867,
                         39307.895800092710610,
                         28729.085735721942674,
                         5226.4952788528545610};
constexpr double kC[] = {1.42343711074968357734,    4.63033784615654529590,
                         5.76949722146069140550,    3.64784832476320460504,
                         1.27045825245236838258,    2.41780725177450611770e-1,
                         2.27238449892691845833e-2, 7.74545014278341407640e-4};
constexpr double kD[] = {1.0,
                         2.05319162663775882187,
                         1.67638483018380384940,
                         6.89767334985100004550e-1,
                         1.48103976427480074590e-1,
                         1.51986665636164571966e-2,
                         5.47593808499534494600e-4,
                         1.05075007164441684324e-9};
constexpr double kE[] = {6.65790464350110377720,    5.46378491116411436990,
                         1.78482653991729133580,    2.96560571828504891230e-1,
                         2.65321895265761230930e-2, 1.24266094738807843860e-3,
                         2.71155556874348757815e-5, 2.01033439929228813265e-7};
constexpr double kF[] = {1.0,
                         5.99832206555887937690e-1,
                         1.36929880922735805310e-1,
                         1.48753612908506148525e-2,
                         7.86869131145613259100e-4,
                         1.84631831751005468180e-5,
                         1.42151175831644588870e-7,
                         2.04426310338993978564e-15};

}  // namespace

std::array<uint32_t, 4> philox(std::array<uint32_t, 4> c, std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = kMultiplier0 * c[0], product1 = kMultiplier1 * c[2];
    c = {static_cast<uint32_t>(product1 >> 32) ^ c[1] ^ key[0], static_cast<uint32_t>(product1),
         static_cast<uint32_t>(product0 >> 32) ^ c[3] ^ key[1], static_cast<uint32_t>(product0)};
    key = {key[0] + kWeyl0, key[1] + kWeyl1};
  }
  return c;
}

uint64_t stream_key(uint64_t seed, std::string_view name) {
  uint64_t hash = 14695981039346656037ull;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  const auto low = static_cast<uint32_t>(hash), high = static_cast<uint32_t>(hash >> 32);
  const auto mixed =
      philox({low, high, 0, 0}, {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
  return uint64_t{mixed[0]} << 32 | mixed[1];
}

double uniform_at(uint64_t key, uint64_t index) {
  // One Philox call serves two elements; callers that walk ranges pay twice and stay simple.
  const uint64_t pair = index / 2;
  const auto words = philox({static_cast<uint32_t>(pair), static_cast<uint32_t>(pair >> 32), 0, 0},
                            {static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32)});
  const size_t at = index % 2 * 2;
  const uint64_t bits = (uint64_t{words[at]} << 32 | words[at + 1]) >> 11;
  return (static_cast<double>(bits) + 0.5) * 0x1p-53;
}

double normal_quantile(double p) {
  const double q = p - 0.5;
  if (std::abs(q) <= 0.425) {
    const double r = 0.180625 - q * q;
    return q * polynomial(kA, r) / polynomial(kB, r);
  }
  const double r = std::sqrt(-std::log(q < 0 ? p : 1 - p));
  const double tail = r <= 5 ? polynomial(kC, r - 1.6) / polynomial(kD, r - 1.6)
                             : polynomial(kE, r - 5) / polynomial(kF, r - 5);
  return q < 0 ? -tail : tail;
}

double normal_cdf(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }

Permutation::Permutation(uint64_t n, uint64_t key) : n_(n), key_(key) {
  const int bits = n <= 2 ? 2 : std::bit_width(n - 1);
  half_bits_ = (bits + 1) / 2;
  half_mask_ = (uint64_t{1} << half_bits_) - 1;
}

uint64_t Permutation::encrypt(uint64_t x) const {
  uint64_t left = x >> half_bits_, right = x & half_mask_;
  for (uint32_t round = 0; round < 4; ++round) {
    const auto words =
        philox({static_cast<uint32_t>(right), static_cast<uint32_t>(right >> 32), round, 0},
               {static_cast<uint32_t>(key_), static_cast<uint32_t>(key_ >> 32)});
    const uint64_t mixed = left ^ ((uint64_t{words[0]} << 32 | words[1]) & half_mask_);
    left = right;
    right = mixed;
  }
  return left << half_bits_ | right;
}

uint64_t Permutation::operator()(uint64_t i) const {
  do i = encrypt(i);
  while (i >= n_);
  return i;
}

}  // namespace assay::train
