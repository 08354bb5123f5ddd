// Byte tokens.
#include "tokenizer.h"

#include <algorithm>

namespace assay::data {
namespace {

constexpr uint32_t kBytes = 256;
constexpr uint32_t kBos = 256, kEos = 257, kPad = 258;
constexpr int64_t kVocabulary = 259;

class ByteTokenizer final : public Tokenizer {
 public:
  explicit ByteTokenizer(int64_t pad_to) : vocabulary_(padded_vocabulary(kVocabulary, pad_to)) {}

  int64_t vocabulary() const override { return vocabulary_; }
  uint32_t bos() const override { return kBos; }
  uint32_t eos() const override { return kEos; }
  uint32_t pad() const override { return kPad; }
  void encode(std::string_view text, std::vector<uint32_t>& ids) const override {
    for (const char byte : text) ids.push_back(static_cast<unsigned char>(byte));
  }
  std::string decode(const std::vector<uint32_t>& ids) const override {
    std::string text;
    for (const uint32_t id : ids) {
      if (id < kBytes) text += static_cast<char>(id);
    }
    return text;
  }
  std::vector<uint16_t> byte_counts() const override {
    std::vector<uint16_t> counts(static_cast<size_t>(vocabulary_), 0);
    std::fill_n(counts.begin(), kBytes, 1);
    return counts;
  }

 private:
  const int64_t vocabulary_;
};

}  // namespace

int64_t padded_vocabulary(int64_t vocabulary, int64_t multiple) {
  return (vocabulary + multiple - 1) / multiple * multiple;
}

std::unique_ptr<Tokenizer> make_byte_tokenizer(int64_t pad_to) {
  return std::make_unique<ByteTokenizer>(pad_to);
}

}  // namespace assay::data
