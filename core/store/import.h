// import_text: rows of a spool as JSON text to their tables. Private to core/store; Store has the
// form for parsed rows, spool_import.h the one for files.
#pragma once

#include <filesystem>
#include <span>
#include <string_view>

#include "core/store/store.h"

namespace assay::store {

/// As Store::import_rows(), without a tree of JSON nodes for each row: about twice as fast.
SpoolPosition import_text(Store& store, int64_t attempt_id, int64_t rank,
                          const std::filesystem::path& path, std::span<const std::string_view> rows,
                          int64_t offset);

}  // namespace assay::store
