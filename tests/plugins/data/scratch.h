// Scratch: a folder of its own for one test, which is assay's cache as well.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "assay/error.h"

namespace assay::data {

class Scratch : public ::testing::Test {
 protected:
  Scratch() {
    std::string pattern = (std::filesystem::temp_directory_path() / "assay_data_XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    ::setenv("ASSAY_CACHE_DIR", (folder_ / "cache").c_str(), 1);
  }
  ~Scratch() override {
    ::unsetenv("ASSAY_CACHE_DIR");
    std::filesystem::remove_all(folder_);
  }

  std::filesystem::path write(const std::string& name, const std::string& content) const {
    std::ofstream(folder_ / name, std::ios::binary) << content;
    return folder_ / name;
  }

  const std::filesystem::path& folder() const { return folder_; }

  /// Text and hint of the Error that `call` throws, the scratch folder left out.
  template <class Call>
  std::string refusal(Call call) const {
    try {
      call();
    } catch (const Error& error) {
      std::string text = std::string(error.what()) + " | " + error.hint();
      const std::string prefix = folder_.string() + "/";
      for (size_t at; (at = text.find(prefix)) != std::string::npos;) text.erase(at, prefix.size());
      return text;
    }
    return "accepted";
  }

 private:
  std::filesystem::path folder_;
};

}  // namespace assay::data
