// TokenFile: a corpus as token ids, memory-mapped; the format of the cache and of `.bin` corpora.
#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "mapped_file.h"

namespace assay::data {

/// Head of a token file, little endian, 64 bytes. It is followed by the ids (uint16 or uint32),
/// padding to a multiple of 8, the start of each document (uint64, ascending, first 0), and the
/// bytes of text that each id stands for (uint16; `byte_counts` of them: the vocabulary, or 0
/// where nobody knows).
struct TokenFileHead {
  char magic[8] = {'A', 'S', 'S', 'A', 'Y', 'T', 'O', 'K'};
  uint32_t version = 1;
  uint32_t token_bytes = 2;  ///< 2 or 4
  uint64_t vocabulary = 0;   ///< ids are below it
  uint64_t tokens = 0;
  uint64_t documents = 0;
  uint64_t text_bytes = 0;  ///< of the text it was made from; 0: unknown
  uint64_t byte_counts = 0;
  uint64_t pad_id = 0;  ///< fills rows of the first_fit packing
};
static_assert(sizeof(TokenFileHead) == 64);

/// An open token file. Construction costs no pass over the ids.
class TokenFile {
 public:
  /// Throws Error naming the file for a wrong head or size.
  explicit TokenFile(const std::filesystem::path& file);
  /// A file of ids alone, one document. vocabulary 0: the largest id + 1, found by one pass.
  TokenFile(const std::filesystem::path& file, uint32_t token_bytes, int64_t vocabulary);

  int64_t tokens() const { return static_cast<int64_t>(head_.tokens); }
  int64_t vocabulary() const { return static_cast<int64_t>(head_.vocabulary); }
  int64_t text_bytes() const { return static_cast<int64_t>(head_.text_bytes); }
  int64_t pad_id() const { return static_cast<int64_t>(head_.pad_id); }
  std::span<const uint64_t> starts() const { return starts_; }
  int64_t token(int64_t i) const { return head_.token_bytes == 2 ? ids16_[i] : ids32_[i]; }
  /// Bytes of text of one id; 0 where unknown.
  int64_t bytes_of(int64_t id) const { return byte_counts_.empty() ? 0 : byte_counts_[id]; }

 private:
  MappedFile file_;
  TokenFileHead head_{};
  const uint16_t* ids16_ = nullptr;
  const uint32_t* ids32_ = nullptr;
  std::vector<uint64_t> own_starts_;  ///< of a file without head
  std::span<const uint64_t> starts_;
  std::span<const uint16_t> byte_counts_;
};

/// Writes a token file beside its place and renames it when finished, so that it is whole or
/// absent.
class TokenFileWriter {
 public:
  TokenFileWriter(std::filesystem::path file, int64_t vocabulary);
  TokenFileWriter(const TokenFileWriter&) = delete;
  TokenFileWriter& operator=(const TokenFileWriter&) = delete;
  ~TokenFileWriter();

  void begin_document() { starts_.push_back(head_.tokens); }
  void append(std::span<const uint32_t> ids);
  void finish(int64_t text_bytes, int64_t pad_id, std::span<const uint16_t> byte_counts);

 private:
  void write(const void* data, size_t bytes);

  std::filesystem::path file_;
  std::string temporary_;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> out_;
  TokenFileHead head_{};
  std::vector<uint64_t> starts_;
};

}  // namespace assay::data
