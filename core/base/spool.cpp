// Spool lines: checksummed JSON rows, appended with bounded loss and read back exactly once.
#include "core/base/spool.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>

#include "assay/error.h"
#include "core/base/clock.h"
#include "core/base/files.h"

namespace assay {
namespace {

constexpr double kSyncSeconds = 2;
constexpr int64_t kSyncRows = 1000;
constexpr size_t kCrcDigits = 8;
constexpr std::streamsize kReadBytes = 1 << 20;
constexpr std::streamoff kLastRowsBytes = 4096;  // a close row is far shorter

[[noreturn]] void fail(const std::filesystem::path& file, const char* what, int error) {
  throw InfrastructureError(
      "cannot " + std::string(what) + " '" + file.string() + "': " + std::strerror(error),
      error == ENOSPC ? "free some space, then run: assay resume"
                      : "check the folder, then run: assay resume");
}

bool has_nonfinite(const nlohmann::json& value) {
  if (value.is_number_float()) return !std::isfinite(value.get<double>());
  if (!value.is_structured()) return false;
  for (const nlohmann::json& item : value) {
    if (has_nonfinite(item)) return true;
  }
  return false;
}

void name_nonfinite(nlohmann::json& value) {
  if (value.is_number_float() && !std::isfinite(value.get<double>())) {
    const double number = value.get<double>();
    value = std::isnan(number) ? "nan" : number > 0 ? "inf" : "-inf";
  } else if (value.is_structured()) {
    for (nlohmann::json& item : value) name_nonfinite(item);
  }
}

/// The JSON text of one line without its line feed; nothing if the checksum is another.
std::optional<std::string_view> checked(std::string_view line) {
  if (line.size() < kCrcDigits + 3 || line[kCrcDigits] != ' ') return std::nullopt;
  const std::string_view text = line.substr(kCrcDigits + 1);
  if (crc32c_hex(text) != line.substr(0, kCrcDigits)) return std::nullopt;
  return text;
}

/// A row's JSON; nothing if it is no object with a table name.
std::optional<nlohmann::json> parsed(std::string_view text) {
  nlohmann::json row = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!row.is_object() || !row.contains("t") || !row["t"].is_string()) return std::nullopt;
  return row;
}

int line_number(const std::filesystem::path& file, int64_t offset) {
  std::ifstream stream(file, std::ios::binary);
  int line = 1;
  for (int64_t i = 0; i < offset && stream; ++i) line += stream.get() == '\n';
  return line;
}

Diagnostic damaged(const std::filesystem::path& file, int64_t offset) {
  const int line = line_number(file, offset);
  return {
      .id = "H05",
      .place = file.string() + ":" + std::to_string(line),
      .text = "damaged spool row: the checksum does not match the text",
      .details = {"rows before line " + std::to_string(line) + " are kept, the rest is not read"},
      .hints = {"the run is repeated by: assay resume"}};
}

}  // namespace

std::filesystem::path spool_path(const std::filesystem::path& folder, int64_t attempt_id,
                                 int rank) {
  return folder / (std::to_string(attempt_id) + ".r" + std::to_string(rank) + ".jl");
}

std::string spool_line(const nlohmann::json& row) {
  std::string text;
  constexpr auto kReplace = nlohmann::json::error_handler_t::replace;  // a plugin's bad UTF-8
  if (has_nonfinite(row)) {
    nlohmann::json named = row;
    name_nonfinite(named);
    text = named.dump(-1, ' ', false, kReplace);
  } else {
    text = row.dump(-1, ' ', false, kReplace);
  }
  return crc32c_hex(text) + " " + text + "\n";
}

SpoolWriter::SpoolWriter(const std::filesystem::path& folder, const SpoolIdentity& identity)
    : path_(spool_path(folder, identity.attempt_id, identity.rank)) {
  std::filesystem::create_directories(folder);
  file_ = open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file_ < 0) fail(path_, "create the spool", errno);
  synced_s_ = monotonic_s();
  nlohmann::json row = identity.extra;
  row.update({{"t", "open"},
              {"schema", 1},
              {"attempt_id", identity.attempt_id},
              {"rank", identity.rank},
              {"cell_id", identity.cell_id}});
  append(row);
}

SpoolWriter::~SpoolWriter() {
  if (file_ >= 0) ::close(file_);
}

void SpoolWriter::append(const nlohmann::json& row) {
  const std::string line = spool_line(row);
  {
    const std::lock_guard lock(mutex_);
    write_line(line);
    ++rows_;
  }
  ++unsynced_;
  sync_if_due();
}

void SpoolWriter::write_line(const std::string& line) {
  ASSAY_CHECK(file_ >= 0, "a row was appended to the closed spool '" + path_.string() + "'");
  for (size_t done = 0; done < line.size();) {
    const ssize_t n = write(file_, line.data() + done, line.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(path_, "append to the spool", errno);
    done += static_cast<size_t>(n);
  }
}

void SpoolWriter::sync_if_due() {
  const int64_t waiting = unsynced_;
  if (waiting == 0) return;
  if (waiting >= kSyncRows || monotonic_s() - synced_s_ >= kSyncSeconds) sync();
}

void SpoolWriter::sync() {
  const std::lock_guard lock(sync_mutex_);
  if (file_ < 0) return;
  unsynced_ = 0;  // before the call: rows that arrive meanwhile count for the next one
  synced_s_ = monotonic_s();
  if (fdatasync(file_) != 0) fail(path_, "sync the spool", errno);
}

void SpoolWriter::close(std::string_view outcome) {
  const std::lock_guard lock(mutex_);
  write_line(spool_line({{"t", "close"}, {"rows", rows_.load()}, {"outcome", outcome}}));
  sync();
  const std::lock_guard sync_lock(sync_mutex_);
  ::close(file_);
  file_ = -1;
}

SpoolText read_spool_text(const std::filesystem::path& file, int64_t offset, size_t max_rows) {
  SpoolText text{.next_offset = offset};
  std::ifstream stream(file, std::ios::binary);
  if (!stream) {
    if (!std::filesystem::exists(file)) return text;
    throw Error("cannot read the spool '" + file.string() + "': " + std::strerror(errno));
  }
  stream.seekg(offset);
  std::vector<char>& bytes = text.bytes;
  std::vector<std::pair<size_t, size_t>> lines;  // places: bytes move while they grow
  size_t start = 0, searched = 0;
  while (lines.size() < max_rows && !text.corrupt) {
    const size_t before = bytes.size();
    bytes.resize(before + kReadBytes);
    stream.read(bytes.data() + before, kReadBytes);
    bytes.resize(before + static_cast<size_t>(stream.gcount()));
    if (stream.gcount() == 0) break;
    while (lines.size() < max_rows) {
      const void* end = std::memchr(bytes.data() + searched, '\n', bytes.size() - searched);
      if (end == nullptr) break;
      const size_t size = static_cast<size_t>(static_cast<const char*>(end) - bytes.data()) - start;
      const auto row = checked({bytes.data() + start, size});
      if (!row) {
        text.corrupt = damaged(file, text.next_offset);
        break;
      }
      lines.emplace_back(start + size - row->size(), row->size());
      searched = start += size + 1;
      text.next_offset = offset + static_cast<int64_t>(start);
    }
    if (lines.size() < max_rows) searched = bytes.size();
  }
  text.torn = !text.corrupt && lines.size() < max_rows && start < bytes.size();
  for (const auto& [at, size] : lines) text.rows.emplace_back(bytes.data() + at, size);
  return text;
}

SpoolChunk read_spool(const std::filesystem::path& file, int64_t offset, size_t max_rows) {
  SpoolText text = read_spool_text(file, offset, max_rows);
  SpoolChunk chunk{
      .next_offset = text.next_offset, .torn = text.torn, .corrupt = std::move(text.corrupt)};
  int64_t place = offset;
  for (const std::string_view json : text.rows) {
    auto row = parsed(json);
    if (!row) {
      chunk.next_offset = place;
      chunk.torn = false;
      chunk.corrupt = damaged(file, place);
      break;
    }
    chunk.rows.push_back(std::move(*row));
    place += static_cast<int64_t>(kCrcDigits + 1 + json.size() + 1);
  }
  return chunk;
}

std::optional<std::string> spool_outcome(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary | std::ios::ate);
  if (!stream) return std::nullopt;
  const std::streamoff size = stream.tellg();
  const std::streamoff start = std::max<std::streamoff>(0, size - kLastRowsBytes);
  stream.seekg(start);
  std::string text(static_cast<size_t>(size - start), '\0');
  stream.read(text.data(), size - start);
  if (!text.ends_with('\n')) return std::nullopt;
  text.pop_back();
  const size_t line = text.rfind('\n');
  const auto last =
      checked(std::string_view(text).substr(line == std::string::npos ? 0 : line + 1));
  const auto row = last ? parsed(*last) : std::nullopt;
  if (!row || (*row)["t"] != "close") return std::nullopt;
  return row->value("outcome", "");
}

std::optional<double> nonfinite(std::string_view text) {
  if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (text == "inf") return std::numeric_limits<double>::infinity();
  if (text == "-inf") return -std::numeric_limits<double>::infinity();
  return std::nullopt;
}

}  // namespace assay
