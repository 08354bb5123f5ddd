// StudyFiles: YAML written to a temporary folder and planned with the fake catalogue.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/core/grid/fake_components.h"

namespace assay::grid {

class StudyFiles : public ::testing::Test {
 protected:
  StudyFiles() {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = std::filesystem::temp_directory_path() /
              ("assay_grid_" + std::to_string(::getpid()) + "_" + info->name());
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    ::setenv("ASSAY_CACHE_DIR", (folder_ / "cache").c_str(), 1);
  }
  ~StudyFiles() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name, std::ios::binary) << text;
    return folder_ / name;
  }

  Plan plan(const std::string& yaml, PlanRequest request = {}) {
    request.file = write("study.yaml", yaml);
    return plan_file(std::move(request));
  }

  Plan plan_file(PlanRequest request) {
    if (request.machine.properties.empty()) request.machine = fake_machine();
    if (request.binaries.worker.empty()) request.binaries = fake_binaries();
    if (!request.hash_file) request.hash_file = cached_file_hash;
    request.components = [this](const auto&) -> const Components& { return components_; };
    return grid::plan(request);
  }

  /// The rendered errors of a study that must be refused.
  std::string errors(const std::string& yaml, PlanRequest request = {}) {
    try {
      plan(yaml, std::move(request));
    } catch (const DiagnosticError& error) {
      std::string text = render(error.diagnostics());
      for (size_t at; (at = text.find(folder_.string() + "/")) != text.npos;) {
        text.erase(at, folder_.string().size() + 1);
      }
      return text;
    }
    ADD_FAILURE() << "the study was accepted:\n" << yaml;
    return {};
  }

  std::filesystem::path folder_;
  FakeComponents components_;
};

/// A study with these lines below a head that names model and data.
inline std::string study(const std::string& rest,
                         const std::string& base = "model: llama3, data: synthetic") {
  return "assay: 1\nstudy: s\nbase: {" + base + "}\n" + rest;
}

inline std::vector<std::string> slugs(const Plan& plan) {
  std::vector<std::string> list;
  for (const Cell& cell : plan.cells) list.push_back(cell.slug);
  return list;
}

}  // namespace assay::grid
