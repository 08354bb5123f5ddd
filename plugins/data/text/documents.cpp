// Reading documents, with error texts that name the place and the way out.
#include "documents.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "assay/error.h"

namespace assay::data {
namespace fs = std::filesystem;
namespace {

constexpr int64_t kBytesPerBadByte = 1000;  // more bad bytes than one in so many: no UTF-8 text
constexpr size_t kListedNeighbours = 5;

[[noreturn]] void refuse(const fs::path& file, const std::string& what, const std::string& hint) {
  throw Error(file.string() + ": " + what, hint);
}

/// "; beside it: a.txt, b.txt", so that a mistyped name is seen.
std::string neighbours(const fs::path& file) {
  std::error_code ignored;
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(file.parent_path(), ignored)) {
    if (entry.path().extension() == file.extension()) names.push_back(entry.path().filename());
  }
  if (names.empty()) return {};
  std::sort(names.begin(), names.end());
  names.resize(std::min(names.size(), kListedNeighbours));
  std::string list = "; beside it: ";
  for (size_t i = 0; i < names.size(); ++i) list += (i ? ", " : "") + names[i];
  return list;
}

/// Length of the well-formed UTF-8 sequence at the front of `text`, 0 if there is none.
size_t sequence_length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  const bool overlong = (first == 0xE0 && byte(1) < 0xA0) || (first == 0xF0 && byte(1) < 0x90);
  const bool surrogate = first == 0xED && byte(1) >= 0xA0;
  return overlong || surrogate || (first == 0xF4 && byte(1) >= 0x90) ? 0 : length;
}

void take_lines(const fs::path& file, std::string_view content, const std::string& field,
                const std::function<void(std::string_view)>& take) {
  for (int64_t number = 1; !content.empty(); ++number) {
    const size_t end = std::min(content.find('\n'), content.size());
    const std::string_view line = content.substr(0, end);
    content.remove_prefix(std::min(end + 1, content.size()));
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const auto value = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    const std::string place = "line " + std::to_string(number);
    if (!value.is_object()) refuse(file, place + " is no JSON object", "one object per line");
    const auto text = value.find(field);
    if (text == value.end() || !text->is_string()) {
      std::string fields;
      for (const auto& [key, item] : value.items()) {
        if (item.is_string()) fields += (fields.empty() ? "" : ", ") + key;
      }
      refuse(file, place + " has no text in the field '" + field + "'",
             "set data.field; texts of this line: " + (fields.empty() ? "none" : fields));
    }
    const auto& document = text->get_ref<const std::string&>();
    if (!document.empty()) take(document);
  }
}

}  // namespace

void check_file(const fs::path& file) {
  std::error_code error;
  const fs::file_status status = fs::status(file, error);
  if (!fs::exists(status)) {
    refuse(file, "no such file", "a relative path starts at the study's folder" + neighbours(file));
  }
  if (fs::is_directory(status)) refuse(file, "is a folder", "name one file in it");
  if (fs::is_regular_file(status) && fs::file_size(file) == 0) {
    refuse(file, "is empty", "a corpus needs at least one row of tokens");
  }
}

void check_text(const fs::path& file, std::string_view text) {
  const std::string_view start = text.substr(0, 2);
  if (start == "\xFF\xFE" || start == "\xFE\xFF") {
    refuse(file, "is UTF-16 text", "convert it: iconv -f utf-16 -t utf-8");
  }
  if (const size_t nul = text.find('\0'); nul != std::string_view::npos) {
    refuse(file, "is binary: NUL at byte " + std::to_string(nul),
           "token ids need the ending .bin; text must be UTF-8");
  }
  int64_t bad = 0;
  size_t first_bad = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t length = sequence_length(text.substr(at, 4));
    if (length == 0 && bad++ == 0) first_bad = at;
    at += std::max<size_t>(length, 1);
  }
  if (bad * kBytesPerBadByte > static_cast<int64_t>(text.size())) {
    refuse(file,
           std::to_string(bad) + " of " + std::to_string(text.size()) +
               " bytes are no UTF-8, the first at byte " + std::to_string(first_bad),
           "convert it, such as: iconv -f latin1 -t utf-8");
  }
}

void for_each_document(const fs::path& file, std::string_view content, const std::string& field,
                       const std::string& separator,
                       const std::function<void(std::string_view)>& take) {
  if (file.extension() == ".jsonl") return take_lines(file, content, field, take);
  while (!content.empty()) {
    const size_t end = separator.empty() ? content.size() : content.find(separator);
    const std::string_view document = content.substr(0, end);
    if (!document.empty()) take(document);
    content.remove_prefix(document.size());
    content.remove_prefix(std::min(separator.size(), content.size()));
  }
}

}  // namespace assay::data
