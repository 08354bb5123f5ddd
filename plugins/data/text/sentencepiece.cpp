// SentencePiece tokens: lossless settings (identity normaliser, byte fallback), training, encoding.
#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

#include <algorithm>
#include <unordered_map>

#include "assay/error.h"
#include "tokenizer.h"

namespace assay::data {
namespace {

constexpr std::string_view kSpace = "\xE2\x96\x81";  // U+2581 stands for a space in pieces
constexpr size_t kMaxSentence = 4096;                // bytes, of training lines
constexpr int64_t kUnkPiece = 0, kBosPiece = 1, kEosPiece = 2, kPadPiece = 3;

/// Bytes of text of a piece: each U+2581 is one space.
uint16_t byte_count(std::string_view piece) {
  size_t bytes = piece.size();
  for (size_t at = piece.find(kSpace); at != std::string_view::npos;
       at = piece.find(kSpace, at + kSpace.size())) {
    bytes -= kSpace.size() - 1;
  }
  return static_cast<uint16_t>(bytes);
}

class SentencePieceTokenizer final : public Tokenizer {
 public:
  SentencePieceTokenizer(const std::string& model, const std::string& name, int64_t pad_to) {
    if (const auto status = processor_.LoadFromSerializedProto(model); !status.ok()) {
      throw Error(name + ": no SentencePiece model: " + status.ToString());
    }
    vocabulary_ = padded_vocabulary(processor_.GetPieceSize(), pad_to);
    if (!processor_.IsByte(processor_.PieceToId("<0x00>"))) {
      throw Error("[R-SPM] " + name + " has no byte pieces: unknown characters are lost",
                  "train it with byte_fallback, or leave data.tokenizer_model out");
    }
    newline_ = static_cast<uint32_t>(processor_.PieceToId("<0x0A>"));
  }

  int64_t vocabulary() const override { return vocabulary_; }
  uint32_t bos() const override { return id(processor_.bos_id(), "bos"); }
  uint32_t eos() const override { return id(processor_.eos_id(), "eos"); }
  uint32_t pad() const override {
    return processor_.pad_id() < 0 ? eos() : static_cast<uint32_t>(processor_.pad_id());
  }

  void encode(std::string_view text, std::vector<uint32_t>& ids) const override {
    std::vector<int> line_ids;
    while (!text.empty()) {
      const std::string_view line = text.substr(0, text.find('\n'));
      processor_.Encode({line.data(), line.size()}, &line_ids).IgnoreError();
      ids.insert(ids.end(), line_ids.begin(), line_ids.end());
      text.remove_prefix(line.size());
      if (text.empty()) return;
      ids.push_back(newline_);
      text.remove_prefix(1);
    }
  }

  std::string decode(const std::vector<uint32_t>& ids) const override {
    std::string text;
    processor_.Decode(std::vector<int>(ids.begin(), ids.end()), &text).IgnoreError();
    return text;
  }

  std::vector<uint16_t> byte_counts() const override {
    std::vector<uint16_t> counts(static_cast<size_t>(vocabulary_), 0);
    for (int i = 0; i < processor_.GetPieceSize(); ++i) {
      if (processor_.IsControl(i)) continue;
      counts[static_cast<size_t>(i)] =
          processor_.IsByte(i) ? 1 : byte_count(processor_.IdToPiece(i));
    }
    return counts;
  }

 private:
  uint32_t id(int value, const char* what) const {
    if (value < 0) throw Error(std::string("the SentencePiece model has no ") + what);
    return static_cast<uint32_t>(value);
  }

  sentencepiece::SentencePieceProcessor processor_;
  int64_t vocabulary_ = 0;
  uint32_t newline_ = 0;
};

/// Every k-th line of a text, long ones cut, so that about `budget` bytes are seen.
class SpreadLines final : public sentencepiece::SentenceIterator {
 public:
  SpreadLines(std::string_view text, int64_t budget)
      : rest_(text), stride_(1 + static_cast<int64_t>(text.size()) / std::max<int64_t>(budget, 1)) {
    read();
  }
  bool done() const override { return line_.empty() && rest_.empty(); }
  void Next() override {
    for (int64_t skipped = 1; skipped < stride_ && !rest_.empty(); ++skipped) read();
    read();
  }
  const std::string& value() const override { return line_; }
  sentencepiece::util::Status status() const override { return {}; }

 private:
  void read() {
    line_.clear();
    while (line_.empty() && !rest_.empty()) {
      size_t end = std::min({rest_.find('\n'), rest_.size(), kMaxSentence});
      while (end > 1 && end < rest_.size() && (rest_[end] & 0xC0) == 0x80)
        --end;  // whole characters
      line_.assign(rest_.substr(0, end));
      rest_.remove_prefix(end);
      if (!rest_.empty() && rest_[0] == '\n') rest_.remove_prefix(1);
    }
  }

  std::string_view rest_;
  const int64_t stride_;
  std::string line_;
};

}  // namespace

std::unique_ptr<Tokenizer> make_sentencepiece(const std::string& model, const std::string& name,
                                              int64_t pad_to) {
  return std::make_unique<SentencePieceTokenizer>(model, name, pad_to);
}

std::string train_sentencepiece(std::string_view text, int64_t vocabulary, int64_t sample_bytes) {
  SpreadLines lines(text, sample_bytes);
  std::string model;
  const std::unordered_map<std::string, std::string> settings = {
      {"model_type", "bpe"},
      {"vocab_size", std::to_string(vocabulary)},
      {"byte_fallback", "true"},
      {"normalization_rule_name", "identity"},
      {"remove_extra_whitespaces", "false"},
      {"add_dummy_prefix", "false"},
      {"character_coverage", "0.9995"},
      {"max_sentence_length", std::to_string(2 * kMaxSentence)},
      {"num_threads", "1"},  // the same model on every machine
      {"minloglevel", "2"},
      {"unk_id", std::to_string(kUnkPiece)},
      {"bos_id", std::to_string(kBosPiece)},
      {"eos_id", std::to_string(kEosPiece)},
      {"pad_id", std::to_string(kPadPiece)},
  };
  const auto status = sentencepiece::SentencePieceTrainer::Train(settings, &lines, &model);
  if (!status.ok()) {
    throw Error("cannot train a SentencePiece model of " + std::to_string(vocabulary) +
                    " ids: " + status.ToString(),
                "lower data.vocab_size, raise data.sample, or use tokenizer: bytes");
  }
  return model;
}

}  // namespace assay::data
