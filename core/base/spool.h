// Spool: the append-only file in which one rank leaves its raw rows, and the reader that tails it.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/diagnostic.h"

namespace assay {

/// Who writes a spool; becomes its first row. `extra` (config, binaries, env) is for ranks that no
/// supervisor started, so that the file alone can be imported.
struct SpoolIdentity {
  int64_t attempt_id = 0;
  int rank = 0;
  std::string cell_id{};
  nlohmann::json extra = nlohmann::json::object();
};

/// `<folder>/<attempt>.r<rank>.jl`
std::filesystem::path spool_path(const std::filesystem::path& folder, int64_t attempt_id, int rank);

/// One line of a spool: crc32c (8 hex digits), a space, the row as JSON, a line feed.
/// Non-finite numbers become "nan", "inf", "-inf".
std::string spool_line(const nlohmann::json& row);

/// Writes rows as they come: one write per row, so a crash of the process loses none, and
/// fdatasync every 2 s or 1,000 rows and at close, so a power cut loses 2 s at most.
/// Threads: any may append; a second one may call sync_if_due() to keep the wait off the first.
/// Errors: InfrastructureError naming the file and the reason (a full disk).
class SpoolWriter {
 public:
  /// Creates the file, which must not exist, and writes the `open` row.
  SpoolWriter(const std::filesystem::path& folder, const SpoolIdentity& identity);
  ~SpoolWriter();  ///< without close() the file stays open-ended: the run was cut off
  SpoolWriter(const SpoolWriter&) = delete;
  SpoolWriter& operator=(const SpoolWriter&) = delete;

  /// Rows carry their table in "t" and no attempt_id or rank.
  void append(const nlohmann::json& row);
  void sync_if_due();
  /// Writes `close` with the count of the lines before it, syncs; nothing may follow.
  void close(std::string_view outcome);

  const std::filesystem::path& path() const { return path_; }
  int64_t rows() const { return rows_; }

 private:
  void write_line(const std::string& line);
  void sync();

  const std::filesystem::path path_;
  std::mutex mutex_;       ///< one line at a time
  std::mutex sync_mutex_;  ///< keeps the file open while it is synced
  int file_ = -1;
  std::atomic<int64_t> rows_ = 0;
  std::atomic<int64_t> unsynced_ = 0;
  std::atomic<double> synced_s_ = 0;
};

/// Rows read from one place of a spool on.
struct SpoolChunk {
  std::vector<nlohmann::json> rows{};
  int64_t next_offset = 0;  ///< where the next read starts: behind the last whole line
  bool torn = false;        ///< bytes follow that are no whole line: wait for the rest, or drop it
  std::optional<Diagnostic> corrupt{};  ///< the line at next_offset is damaged; reading stops there
  bool closed() const { return !rows.empty() && rows.back().value("t", "") == "close"; }
};

/// Reads at most `max_rows` rows from byte `offset` on. A missing file has no rows. A damaged line
/// is reported with file and line number (H05), never skipped. Throws Error if it cannot be read.
SpoolChunk read_spool(const std::filesystem::path& file, int64_t offset, size_t max_rows = 10000);

/// The same rows as text: checksums hold, the JSON is not parsed yet.
struct SpoolText {
  std::vector<char> bytes{};             ///< what `rows` point into; a move keeps them valid
  std::vector<std::string_view> rows{};  ///< JSON objects without checksum and line feed
  int64_t next_offset = 0;
  bool torn = false;
  std::optional<Diagnostic> corrupt{};
};

/// As read_spool(), for imports: a row costs its checksum alone.
SpoolText read_spool_text(const std::filesystem::path& file, int64_t offset,
                          size_t max_rows = 10000);

/// What the `close` row says: "ok", "fail", ...; nothing when the file does not end with one.
std::optional<std::string> spool_outcome(const std::filesystem::path& file);

/// The bytes of a number that travelled as text: "nan", "inf", "-inf"; nothing for other texts.
std::optional<double> nonfinite(std::string_view text);

}  // namespace assay
