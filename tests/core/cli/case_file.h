// CaseFile: a data-driven test: files, then commands with their exit code and whole output.
//
//   # what the case shows
//   === study.yaml
//   assay: 1
//   === assay plan study.yaml -> 2
//   study.yaml:1:1: error[G15]: ...
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace assay::cli {

struct CaseStep {
  std::string head;     ///< without "=== "
  std::string content;  ///< of a file, or what the command prints (stderr, then stdout)
  bool is_command() const { return head.starts_with("assay "); }
  std::vector<std::string> words() const;  ///< of a command, split as a shell would
  int exit_code() const;
};

struct CaseFile {
  std::string comment;
  std::vector<CaseStep> steps;
};

CaseFile parse_case(const std::string& text);
std::string print_case(const CaseFile& file);

/// Ids become <id> and <hash>, `folder` becomes <dir>: what differs between machines.
std::string masked(std::string text, const std::filesystem::path& folder);

}  // namespace assay::cli
