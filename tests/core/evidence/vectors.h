// The test vectors of the pair statistics: log-ratios in units of 1e-4, checked by enumeration.
#pragma once

#include <string>
#include <vector>

namespace assay::evidence {

struct Vector {
  const char* name;
  std::vector<double> d;
  double w_plus, p_greater, p_less;
  double estimate, low, high, level;  ///< alpha .005 per side; level 0: not stated
  double p_same;                      ///< margin ln 1.01
  const char* verdict;                ///< alpha .005
};

inline std::vector<double> scaled(std::vector<double> values) {
  for (double& v : values) v *= 1e-4;
  return values;
}

inline const std::vector<Vector>& vectors() {
  static const std::vector<Vector> list = {
      {"V1", scaled({298, 312, 275, 331, 304, 289, 347, 301}), 36, 0.00390625, 1, 304.5, 275, 347,
       .9921875, 1, "SLOWER"},
      {"V2", scaled({12, -8, 5, -15, 21, -3, 9, -11, 2, -6}), 28, 0.5, 0.5390625, 0.5, -11, 13,
       .990234375, 0.0009765625, "SAME"},
      {"V3", scaled({100, -50, 50, 100, 0, 150, -100, 200, 50, 150}), 38, 0.0390625, 0.978515625,
       75, -50, 150, 0, 0.3056640625, "UNRESOLVED"},
      {"V4", scaled({301, 287, 312, 295, -1500, 308, 276, 322, 290, 410,
                     299, 315, 268, 303, 1200,  284, 319, 297, 306, 293}),
       190, 0.0003538131714, 0.999707222, 300.5, 285.5, 322, .99056434, 0.999707222, "SLOWER"},
      {"V5", scaled({120, -40, 210, 80, -110, 170, 30, 250, -20, 140}), 46, 0.0322265625,
       0.9755859375, 85, -40, 210, 0, 0.4228515625, "UNRESOLVED"},
      {"V6", scaled({31, 27, 35, 29, 40, 22, 33, 30, 26, 37}), 55, 0.0009765625, 1, 31, 25.5, 37, 0,
       0.0009765625, "SAME"}};
  return list;
}

}  // namespace assay::evidence
