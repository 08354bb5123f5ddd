// Reading and writing of token files, every size checked against the file's.
#include "token_file.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "assay/error.h"

namespace assay::data {
namespace {

constexpr uint64_t kShortIds = 1 << 16;  // ids below it fit two bytes

uint64_t padded(uint64_t bytes) { return (bytes + 7) / 8 * 8; }

[[noreturn]] void refuse(const std::filesystem::path& file, const std::string& what) {
  throw Error(file.string() + ": " + what,
              "write it in the format of token_file.h, or set data.dtype for a file of ids alone");
}

/// Bytes that a file with this head must have; 0 if the head cannot be right.
uint64_t expected_bytes(const TokenFileHead& head, uint64_t limit) {
  const bool sane = head.tokens <= limit && head.documents <= limit && head.byte_counts <= limit;
  if (!sane || (head.token_bytes != 2 && head.token_bytes != 4)) return 0;
  return sizeof head + padded(head.tokens * head.token_bytes) + 8 * head.documents +
         2 * head.byte_counts;
}

}  // namespace

TokenFile::TokenFile(const std::filesystem::path& file) : file_(file) {
  const std::string_view bytes = file_.bytes();
  if (bytes.size() < sizeof head_) refuse(file, "too short for a token file");
  std::memcpy(&head_, bytes.data(), sizeof head_);
  const TokenFileHead right{};
  if (std::memcmp(head_.magic, right.magic, sizeof right.magic) != 0) {
    refuse(file, "no token file: it does not begin with ASSAYTOK");
  }
  if (head_.version != right.version) {
    refuse(file, "token file of version " + std::to_string(head_.version) + "; 1 is known");
  }
  if (expected_bytes(head_, bytes.size()) != bytes.size()) {
    refuse(file, "has " + std::to_string(bytes.size()) + " bytes, which its head does not allow");
  }
  const char* at = bytes.data() + sizeof head_;
  ids16_ = reinterpret_cast<const uint16_t*>(at);
  ids32_ = reinterpret_cast<const uint32_t*>(at);
  at += padded(head_.tokens * head_.token_bytes);
  starts_ = {reinterpret_cast<const uint64_t*>(at), head_.documents};
  at += 8 * head_.documents;
  byte_counts_ = {reinterpret_cast<const uint16_t*>(at), head_.byte_counts};
}

TokenFile::TokenFile(const std::filesystem::path& file, uint32_t token_bytes, int64_t vocabulary)
    : file_(file), own_starts_{0} {
  const std::string_view bytes = file_.bytes();
  if (bytes.size() % token_bytes != 0) {
    refuse(file, std::to_string(bytes.size()) + " bytes are no whole number of " +
                     std::to_string(token_bytes) + "-byte ids");
  }
  head_.token_bytes = token_bytes;
  head_.tokens = bytes.size() / token_bytes;
  head_.documents = 1;
  ids16_ = reinterpret_cast<const uint16_t*>(bytes.data());
  ids32_ = reinterpret_cast<const uint32_t*>(bytes.data());
  starts_ = own_starts_;
  int64_t largest = -1;
  for (int64_t i = 0; i < tokens(); ++i) largest = std::max(largest, token(i));
  head_.vocabulary = static_cast<uint64_t>(vocabulary > 0 ? vocabulary : largest + 1);
  if (largest >= this->vocabulary()) {
    refuse(file, "holds id " + std::to_string(largest) + ", but data.vocab_size is " +
                     std::to_string(vocabulary));
  }
}

TokenFileWriter::TokenFileWriter(std::filesystem::path file, int64_t vocabulary)
    : file_(std::move(file)), temporary_(file_.string() + ".XXXXXX"), out_(nullptr, &std::fclose) {
  const int descriptor = ::mkstemp(temporary_.data());
  if (descriptor >= 0) out_.reset(::fdopen(descriptor, "wb"));
  if (!out_) throw Error("cannot create " + temporary_ + ": " + std::strerror(errno));
  head_.vocabulary = static_cast<uint64_t>(vocabulary);
  head_.token_bytes = head_.vocabulary <= kShortIds ? 2 : 4;
  write(&head_, sizeof head_);  // its place; finish() writes the counts
}

TokenFileWriter::~TokenFileWriter() {
  if (out_) ::unlink(temporary_.c_str());
}

void TokenFileWriter::write(const void* data, size_t bytes) {
  if (bytes > 0 && std::fwrite(data, 1, bytes, out_.get()) != bytes) {
    throw Error("cannot write " + temporary_ + ": " + std::strerror(errno),
                "free some disk space, or set ASSAY_CACHE_DIR to a folder elsewhere");
  }
}

void TokenFileWriter::append(std::span<const uint32_t> ids) {
  if (head_.token_bytes == 2) {
    const std::vector<uint16_t> narrow(ids.begin(), ids.end());
    write(narrow.data(), 2 * narrow.size());
  } else {
    write(ids.data(), ids.size_bytes());
  }
  head_.tokens += ids.size();
}

void TokenFileWriter::finish(int64_t text_bytes, int64_t pad_id,
                             std::span<const uint16_t> byte_counts) {
  constexpr char kZeros[8] = {};
  const uint64_t id_bytes = head_.tokens * head_.token_bytes;
  write(kZeros, padded(id_bytes) - id_bytes);
  write(starts_.data(), 8 * starts_.size());
  write(byte_counts.data(), byte_counts.size_bytes());
  head_.documents = starts_.size();
  head_.text_bytes = static_cast<uint64_t>(text_bytes);
  head_.pad_id = static_cast<uint64_t>(pad_id);
  head_.byte_counts = byte_counts.size();
  std::rewind(out_.get());
  write(&head_, sizeof head_);
  const bool durable = std::fflush(out_.get()) == 0 && ::fsync(::fileno(out_.get())) == 0;
  if (!durable || ::rename(temporary_.c_str(), file_.c_str()) != 0) {
    throw Error("cannot finish " + file_.string() + ": " + std::strerror(errno));
  }
  out_.reset();
}

}  // namespace assay::data
