// Tokenizer: text to ids. Bytes, or SentencePiece BPE trained on the corpus.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace assay::data {

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  virtual int64_t vocabulary() const = 0;  ///< padded; the extra ids are never produced
  virtual uint32_t bos() const = 0;
  virtual uint32_t eos() const = 0;
  virtual uint32_t pad() const = 0;
  /// Appends the ids of `text`; texts are cut at line ends, so no id spans two lines.
  virtual void encode(std::string_view text, std::vector<uint32_t>& ids) const = 0;
  /// The text of `ids`; special ids stand for nothing.
  virtual std::string decode(const std::vector<uint32_t>& ids) const = 0;
  /// Bytes of text that each id stands for; `vocabulary` of them.
  virtual std::vector<uint16_t> byte_counts() const = 0;
};

/// Rounds a vocabulary up to a multiple, for kernels and vocabulary-parallel heads.
int64_t padded_vocabulary(int64_t vocabulary, int64_t multiple);

/// Byte tokens as in ByT5, arXiv:2105.13626: 0..255 bytes, 256 bos, 257 eos, 258 pad.
std::unique_ptr<Tokenizer> make_byte_tokenizer(int64_t pad_to);

/// SentencePiece, arXiv:1808.06226, from a serialized model. Throws Error [R-SPM] unless it can
/// spell every byte (byte_fallback), so that no text is lost; `name` is for the text of errors.
std::unique_ptr<Tokenizer> make_sentencepiece(const std::string& model, const std::string& name,
                                              int64_t pad_to);

/// Trains BPE, arXiv:1508.07909, with byte fallback on lines spread evenly over `text`, about
/// `sample_bytes` in all. Throws Error if the text is too small for the vocabulary.
std::string train_sentencepiece(std::string_view text, int64_t vocabulary, int64_t sample_bytes);

}  // namespace assay::data
