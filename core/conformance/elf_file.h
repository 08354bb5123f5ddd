// What a shared library exports, needs and asks of the dynamic linker, read from its file.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace assay::conformance {

struct ElfFile {
  std::vector<std::string> exports{};  ///< defined dynamic symbols, weak and unique ones included
  std::vector<std::string> needed{};   ///< DT_NEEDED
  bool run_path = false;               ///< DT_RPATH or DT_RUNPATH
  bool stays = false;                  ///< DF_1_NODELETE
};

/// Throws Error for a file without a section table.
ElfFile read_elf(const std::filesystem::path& file);

}  // namespace assay::conformance
