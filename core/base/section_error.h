// SectionError: a wrong value in a section of a study, named by its path inside the section; who
// knows the YAML adds the place.
#pragma once

#include <string>
#include <vector>

namespace assay {

struct SectionError {
  std::vector<std::string> path{};  ///< {"metrics", "1"}; empty: the section itself
  bool at_key = false;              ///< the key is wrong, not its value
  std::string id{};                 ///< "G14"
  std::string text{};
  std::vector<std::string> hints{};
};

}  // namespace assay
