// Batches of spool rows, each with its offset in one transaction.
#include "core/store/spool_import.h"

#include "core/base/spool.h"
#include "core/store/import.h"

namespace assay::store {
namespace {

/// A file that lost bytes: truncated, or replaced by another one.
std::optional<Diagnostic> shrunk(const std::filesystem::path& path, int64_t bytes_imported) {
  std::error_code missing;
  const auto size = std::filesystem::file_size(path, missing);
  if (missing || static_cast<int64_t>(size) >= bytes_imported) return std::nullopt;
  return Diagnostic{.id = "H06",
                    .place = path.string(),
                    .text = "the spool is shorter than what was imported from it",
                    .details = {"size " + std::to_string(size) + " bytes, imported " +
                                std::to_string(bytes_imported) + " bytes"},
                    .hints = {"imported rows are kept; the run is repeated by: assay resume"}};
}

}  // namespace

SpoolImport import_spool(Store& store, int64_t attempt_id, int64_t rank,
                         const std::filesystem::path& path, size_t batch_rows) {
  SpoolImport result{.position = store.spool(attempt_id, rank)};
  result.corrupt = shrunk(path, result.position.bytes_imported);
  while (!result.corrupt) {
    const SpoolText text = read_spool_text(path, result.position.bytes_imported, batch_rows);
    result.torn = text.torn;
    result.corrupt = text.corrupt;
    if (text.rows.empty()) break;
    result.position = import_text(store, attempt_id, rank, path, text.rows, text.next_offset);
    result.rows += static_cast<int64_t>(text.rows.size());
  }
  return result;
}

}  // namespace assay::store
