// Reader: a read-only connection for reports, the CLI and evidence. Any number may be open.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/store/table.h"

namespace assay::store {

/// A study by its newest row of that name.
struct StudyInfo {
  int64_t study_id = 0;
  std::string name;
  int64_t created_us = 0;
  int64_t cells = 0;
  std::string yaml_sha256;
  std::string resolved_json;
  std::string nuisance_json;
};

/// Opened with OPEN_READONLY and query_only, never takes a write lock. Aggregates median(x) and
/// p10(x) (type 7, NULLs ignored) are there. Errors: assay::Error (missing file, not a database of
/// assay, newer schema).
class Reader {
 public:
  explicit Reader(const std::filesystem::path& file);
  ~Reader();
  Reader(Reader&&) noexcept;

  /// Runs one statement with `parameters` bound to ?1, ?2, ...; throws Error with SQLite's words.
  Table query(const std::string& sql, std::span<const Value> parameters = {}) const;
  Table query(const std::string& sql, std::initializer_list<Value> parameters) const;
  /// Queries that run longer throw Error; 0 = no limit.
  void set_timeout(double seconds);

  std::vector<StudyInfo> studies() const;  ///< newest first, one per name
  /// Throws Error with the nearest names, or "the database holds no study yet".
  StudyInfo study(const std::string& name) const;
  StudyInfo newest_study() const;

  const std::filesystem::path& file() const { return file_; }

 private:
  std::filesystem::path file_;
  std::unique_ptr<Connection> connection_;
  double timeout_s_ = 0;
};

}  // namespace assay::store
