// Caches of data/text below cache_dir(): hashes/, tokenizers/ and corpora/, each file named by the
// hash of what it was made from, written once under a lock and never changed.
#include "corpus.h"

#include <sys/stat.h>

#include <nlohmann/json.hpp>

#include "assay/error.h"
#include "assay/files.h"
#include "documents.h"
#include "tokenizer.h"

namespace assay::data {
namespace fs = std::filesystem;
namespace {

constexpr const char* kFormat = "data/text 1";  // a new number when ids of the same text change
constexpr size_t kPieceBytes = size_t{1} << 16;

fs::path cache_file(const char* folder, const std::string& name) {
  const fs::path directory = cache_dir() / folder;
  fs::create_directories(directory);
  return directory / name;
}

/// Makes `file` with `build` unless it is there; at most one process builds at a time.
template <class Build>
void make_once(const fs::path& file, Build build) {
  if (fs::exists(file)) return;
  const FileLock lock(file.string() + ".lock");
  if (!fs::exists(file)) build();
}

/// What a stored hash belongs to.
nlohmann::json identity(const fs::path& file) {
  struct stat status {};
  if (::stat(file.c_str(), &status) != 0) throw Error("cannot read " + file.string());
  return {status.st_size, status.st_mtim.tv_sec, status.st_mtim.tv_nsec, status.st_dev,
          status.st_ino};
}

nlohmann::json tokenizer_recipe(const TextOptions& o) {
  nlohmann::json recipe = {{"name", o.tokenizer}, {"pad_to", o.pad_to}};
  if (o.tokenizer == "bytes") return recipe;
  if (!o.tokenizer_model.empty()) {
    check_file(o.tokenizer_model);
    recipe["model"] = content_hash(o.tokenizer_model);
  } else {
    recipe["vocab_size"] = o.vocab_size;
    recipe["sample"] = o.sample.value;
  }
  return recipe;
}

/// `key` is the hash of corpus and settings.
std::unique_ptr<Tokenizer> make_tokenizer(const TextOptions& o, const std::string& key,
                                          std::string_view text) {
  if (o.tokenizer == "bytes") return make_byte_tokenizer(o.pad_to);
  if (!o.tokenizer_model.empty()) {
    return make_sentencepiece(read_file(o.tokenizer_model), o.tokenizer_model.string(), o.pad_to);
  }
  const fs::path file = cache_file("tokenizers", key + ".model");
  make_once(file, [&] {
    write_file_atomically(file, train_sentencepiece(text, o.vocab_size, o.sample.value));
  });
  return make_sentencepiece(read_file(file), file.string(), o.pad_to);
}

/// Pieces of about kPieceBytes that end with a line, so that encoding needs little memory.
template <class Take>
void for_each_piece(std::string_view text, Take take) {
  while (!text.empty()) {
    const size_t line_end = text.find('\n', std::min(kPieceBytes, text.size()));
    const size_t size = line_end == std::string_view::npos ? text.size() : line_end + 1;
    take(text.substr(0, size));
    text.remove_prefix(size);
  }
}

void write_tokens(const TextOptions& o, const Tokenizer& tokenizer, std::string_view text,
                  const fs::path& target) {
  TokenFileWriter writer(target, tokenizer.vocabulary());
  std::vector<uint32_t> ids;
  int64_t text_bytes = 0;
  const auto append = [&] {
    writer.append(ids);
    ids.clear();
  };
  for_each_document(o.path, text, o.field, o.separator, [&](std::string_view document) {
    writer.begin_document();
    text_bytes += static_cast<int64_t>(document.size());
    if (o.add_bos) ids.push_back(tokenizer.bos());
    for_each_piece(document, [&](std::string_view piece) {
      tokenizer.encode(piece, ids);
      append();
    });
    if (o.add_eos) ids.push_back(tokenizer.eos());
    append();
  });
  writer.finish(text_bytes, tokenizer.pad(), tokenizer.byte_counts());
}

Corpus open_text(const TextOptions& o, const std::string& content) {
  const nlohmann::json tokenizer = tokenizer_recipe(o);
  const nlohmann::json recipe = {kFormat,   content,     tokenizer, o.add_bos,
                                 o.add_eos, o.separator, o.field,   o.path.extension().string()};
  const std::string fingerprint = sha256(recipe.dump());
  const fs::path file = cache_file("corpora", fingerprint + ".tokens");
  make_once(file, [&] {
    const MappedFile source(o.path);
    check_text(o.path, source.bytes());
    const std::string key = sha256(content + tokenizer.dump());
    write_tokens(o, *make_tokenizer(o, key, source.bytes()), source.bytes(), file);
  });
  TokenFile tokens(file);
  const int64_t vocabulary = tokens.vocabulary();
  return {std::move(tokens), fingerprint, vocabulary};
}

Corpus open_ids(const TextOptions& o, const std::string& content) {
  const bool with_head = o.dtype == "file";
  TokenFile tokens =
      with_head ? TokenFile(o.path) : TokenFile(o.path, o.dtype == "uint16" ? 2 : 4, 0);
  const int64_t vocabulary = padded_vocabulary(tokens.vocabulary(), o.pad_to);
  const nlohmann::json recipe = {kFormat, content, o.dtype, o.pad_to};
  return {std::move(tokens), sha256(recipe.dump()), vocabulary};
}

}  // namespace

std::string content_hash(const fs::path& file) {
  const nlohmann::json now = identity(file);
  const fs::path note =
      cache_file("hashes", sha256(fs::absolute(file).lexically_normal().string()) + ".json");
  if (fs::exists(note)) {
    const auto stored = nlohmann::json::parse(read_file(note), nullptr, false);
    if (stored.is_object() && stored.value("file", nlohmann::json()) == now) {
      return stored.at("sha256");
    }
  }
  const std::string hash = sha256_file(file);
  write_file_atomically(note, nlohmann::json{{"file", now}, {"sha256", hash}}.dump());
  return hash;
}

Corpus open_corpus(const TextOptions& options) {
  check_file(options.path);
  const std::string content = content_hash(options.path);
  Corpus corpus =
      options.path.extension() == ".bin" ? open_ids(options, content) : open_text(options, content);
  corpus.bytes = static_cast<int64_t>(fs::file_size(options.path));
  return corpus;
}

void TextOptions::declare(OptionTable<TextOptions>& t) {
  using enum Affects;
  using O = TextOptions;
  t.add(&O::path, "path", numerics, "text, JSON lines (.jsonl) or token ids (.bin)").required =
      true;
  t.add(&O::tokenizer, "tokenizer", numerics, {"bytes", "sentencepiece"},
        "bytes: 256 bytes and 3 marks; sentencepiece: BPE trained on this corpus");
  t.add(&O::tokenizer_model, "tokenizer_model", numerics,
        "SentencePiece .model to use instead of training one");
  t.add(&O::vocab_size, "vocab_size", numerics, {260, 1 << 20}, "ids of a trained tokenizer");
  t.add(&O::sample, "sample", numerics, {1024, 1e12}, "text that a tokenizer is trained on");
  t.add(&O::add_bos, "add_bos", numerics, "a mark before each document");
  t.add(&O::add_eos, "add_eos", numerics, "a mark after each document");
  t.add(&O::pad_to, "pad_to", numerics, {1, 4096}, "the vocabulary is rounded up to a multiple");
  t.add(&O::field, "field", numerics, "JSON lines: the field that holds the text");
  t.add(&O::separator, "separator", numerics, "text between documents; empty: one document");
  t.add(&O::dtype, "dtype", numerics, {"file", "uint16", "uint32"},
        ".bin: as its head says, or ids without a head");
  t.add(&O::validation, "validation", numerics, {0, 0.5}, "share held out, at the end");
  t.add(&O::packing, "packing", numerics, {"concat", "first_fit"},
        "rows cut from the stream, or whole documents packed into rows");
  t.add(&O::stride, "stride", numerics, {"s", "s+1"},
        "concat: s uses every token as a label, s+1 drops one per row");
  t.add(&O::bins, "bins", numerics, {1, 1024}, "first_fit: rows open at a time");
}

}  // namespace assay::data
