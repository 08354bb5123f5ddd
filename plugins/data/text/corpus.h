// The cached corpus: a text is hashed, tokenised and written once, and mapped ever after.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "assay/options.h"
#include "token_file.h"

namespace assay::data {

struct TextOptions {
  std::filesystem::path path{};
  std::string tokenizer = "bytes";
  std::filesystem::path tokenizer_model{};
  int64_t vocab_size = 4096;
  Bytes sample{int64_t{2} << 20};
  bool add_bos = true;
  bool add_eos = true;
  int64_t pad_to = 16;
  std::string field = "text";
  std::string separator{};
  std::string dtype = "file";
  double validation = 0.02;
  std::string packing = "concat";
  std::string stride = "s";
  int64_t bins = 8;

  static void declare(OptionTable<TextOptions>& t);
};

/// Where the ids of a run come from.
struct Corpus {
  TokenFile tokens;
  std::string fingerprint{};  ///< 64 hex digits: the file's content and everything that made ids
  int64_t vocabulary = 0;     ///< padded
  int64_t bytes = 0;          ///< of the file
};

/// SHA-256 of a file, remembered under its path, size, time of change and inode.
std::string content_hash(const std::filesystem::path& file);

/// Opens the corpus of `options`, building the cached tokenizer and token file where they are
/// missing: one process builds, the others wait and read. Throws Error.
Corpus open_corpus(const TextOptions& options);

}  // namespace assay::data
