// import_spool: brings what a spool file holds beyond the stored offset into the database.
#pragma once

#include <filesystem>
#include <optional>

#include "core/base/diagnostic.h"
#include "core/store/store.h"

namespace assay::store {

struct SpoolImport {
  SpoolPosition position{};  ///< after this call
  int64_t rows = 0;          ///< imported by this call, close row included
  bool torn = false;         ///< the last line is not whole yet: call again, or drop it with a note
  std::optional<Diagnostic> corrupt{};  ///< a damaged line: rows before it are in, none after
};

/// Reads whole lines in batches, each one transaction with its offset. May be called while the
/// rank still writes, and again after any crash. A damaged line, or a file shorter than what was
/// imported, stops the import there and is reported; the rows before it are kept.
SpoolImport import_spool(Store& store, int64_t attempt_id, int64_t rank,
                         const std::filesystem::path& path, size_t batch_rows = 10000);

}  // namespace assay::store
