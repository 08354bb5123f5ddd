// Documents: the texts of a corpus file (plain text or JSON lines), and the refusal of files that
// are no text.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace assay::data {

/// Throws Error unless `file` is a readable, non-empty, ordinary file.
void check_file(const std::filesystem::path& file);

/// Throws Error for text with a NUL byte, or where more than one byte in 1,000 is no UTF-8.
void check_text(const std::filesystem::path& file, std::string_view text);

/// Calls `take` for each document: of a `.jsonl` file the field `field` of each line; of any other
/// the parts between `separator`, or the whole text where that is empty. Empty ones are left out.
void for_each_document(const std::filesystem::path& file, std::string_view content,
                       const std::string& field, const std::string& separator,
                       const std::function<void(std::string_view)>& take);

}  // namespace assay::data
