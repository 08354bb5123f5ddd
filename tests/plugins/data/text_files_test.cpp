// Files that data/text refuses, token-id files, and SentencePiece.
#include <gtest/gtest.h>

#include <cstring>

#include "documents.h"
#include "scratch.h"
#include "text.h"
#include "tokenizer.h"

namespace assay::data {
namespace {

class TextFiles : public Scratch {
 protected:
  std::string opening(const std::string& name) const {
    TextOptions options;
    options.path = folder() / name;
    return refusal([&] { Text text(options); });
  }
};

/// 40,000 bytes of lines with a vocabulary of a few hundred words, digits, accents and an emoji.
std::string sample_text() {
  std::string text;
  for (int i = 0; text.size() < 40'000; ++i) {
    text += "word" + std::to_string(i * 7919 % 211) + " caf\xC3\xA9 and  two spaces ";
    text += i % 5 == 0 ? "\xF0\x9F\x99\x82\n" : "again\n";
  }
  return text;
}

template <class Id>
std::string raw(const std::vector<Id>& ids) {
  return {reinterpret_cast<const char*>(ids.data()), ids.size() * sizeof(Id)};
}

}  // namespace

TEST_F(TextFiles, AMissingFileIsRefusedWithItsNeighbours) {
  write("gcide.txt", "text");
  EXPECT_EQ(opening("gcid.txt"),
            "gcid.txt: no such file | a relative path starts at the study's folder; "
            "beside it: gcide.txt");
}

TEST_F(TextFiles, FilesThatAreNoTextAreRefused) {
  write("empty.txt", "");
  EXPECT_EQ(opening("empty.txt"),
            "empty.txt: is empty | a corpus needs at least one row of tokens");
  std::filesystem::create_directory(folder() / "folder.txt");
  EXPECT_EQ(opening("folder.txt"), "folder.txt: is a folder | name one file in it");
  write("zeros.txt", std::string("ab\0cd", 5));
  EXPECT_EQ(opening("zeros.txt"),
            "zeros.txt: is binary: NUL at byte 2 | token ids need the ending .bin; text "
            "must be UTF-8");
  write("latin1.txt", "caf\xE9 " + std::string(90, 'x'));
  EXPECT_EQ(opening("latin1.txt"),
            "latin1.txt: 1 of 95 bytes are no UTF-8, the first at byte 3 | convert it, "
            "such as: iconv -f latin1 -t utf-8");
  write("wide.txt", std::string("\xFF\xFE\x61\x00", 4));
  EXPECT_EQ(opening("wide.txt"), "wide.txt: is UTF-16 text | convert it: iconv -f utf-16 -t utf-8");
}

TEST_F(TextFiles, AFewBadBytesAreKept) {
  const auto file = write("mixed.txt", "caf\xE9 " + std::string(2000, 'x'));
  EXPECT_EQ(opening("mixed.txt"), "accepted");
  EXPECT_EQ(Text({.path = file}).sample(Split::train, 0, 8).tokens[4], 0xE9);
}

TEST_F(TextFiles, BadJsonLinesNameTheLine) {
  write("a.jsonl", "{\"text\": \"x\"}\n{\"text\": \n");
  EXPECT_EQ(opening("a.jsonl"), "a.jsonl: line 2 is no JSON object | one object per line");
  write("b.jsonl", "{\"id\": 1, \"body\": \"x\"}\n");
  EXPECT_EQ(opening("b.jsonl"),
            "b.jsonl: line 1 has no text in the field 'text' | set data.field; texts of "
            "this line: body");
}

TEST_F(TextFiles, RawIdsNeedTheirWidth) {
  write("ids.bin", raw<uint16_t>({5, 6, 7, 300, 5, 6}));
  EXPECT_NE(opening("ids.bin").find("too short for a token file"), std::string::npos);
  TextOptions options;
  options.path = folder() / "ids.bin";
  options.dtype = "uint16";
  options.validation = 0;
  const Text text(options);
  EXPECT_EQ(text.vocabulary(), 304);  // largest id 300, up to a multiple of 16
  EXPECT_EQ(text.sample(Split::train, 0, 4).labels, (std::vector<int64_t>{6, 7, 300, 5}));
  EXPECT_EQ(text.sample(Split::train, 0, 4).label_bytes, 0);  // nobody knows
  options.path = write("odd.bin", "abc");
  EXPECT_NE(refusal([&] { Text odd(options); }).find("3 bytes are no whole number of 2-byte ids"),
            std::string::npos);
}

TEST_F(TextFiles, ATokenFileKeepsWideIdsAndDocuments) {
  const auto file = folder() / "own.bin";
  TokenFileWriter writer(file, 100'000);
  const std::vector<uint32_t> ids = {1, 99'999, 3};
  writer.begin_document();
  writer.append(ids);
  writer.begin_document();
  writer.append(ids);
  writer.finish(42, 7, {});
  const TokenFile tokens(file);
  EXPECT_EQ(tokens.tokens(), 6);
  EXPECT_EQ(tokens.token(4), 99'999);
  EXPECT_EQ(tokens.starts()[1], 3U);
  EXPECT_EQ(tokens.text_bytes(), 42);
  EXPECT_EQ(tokens.pad_id(), 7);
  EXPECT_EQ(Text({.path = file, .validation = 0}).rows(Split::train, 5), 1);
}

TEST_F(TextFiles, ADamagedTokenFileIsRefused) {
  const auto file = folder() / "own.bin";
  TokenFileWriter writer(file, 10);
  writer.begin_document();
  writer.append(std::vector<uint32_t>{1, 2, 3});
  writer.finish(3, 0, {});
  std::filesystem::resize_file(file, std::filesystem::file_size(file) - 8);
  EXPECT_NE(opening("own.bin").find("which its head does not allow"), std::string::npos);
  write("other.bin", std::string(64, 'x'));
  EXPECT_NE(opening("other.bin").find("does not begin with ASSAYTOK"), std::string::npos);
}

TEST_F(TextFiles, AnUnfinishedTokenFileLeavesNothing) {
  { TokenFileWriter writer(folder() / "half.bin", 10); }
  EXPECT_TRUE(std::filesystem::is_empty(folder()));
}

TEST_F(TextFiles, SentencePieceLosesNothing) {
  const std::string text = sample_text();
  const auto tokenizer = make_sentencepiece(train_sentencepiece(text, 400, 1 << 20), "own", 16);
  EXPECT_EQ(tokenizer->vocabulary(), 400);
  std::vector<uint32_t> ids;
  const std::string unseen = " leading, trailing \xE6\xBC\xA2 \xF0\x9F\x9A\x80  \n\nlast";
  for (const std::string& sample : {text.substr(0, 5000), unseen}) {
    ids.clear();
    tokenizer->encode(sample, ids);
    EXPECT_EQ(tokenizer->decode(ids), sample);
    const auto counts = tokenizer->byte_counts();
    int64_t bytes = 0;
    for (const uint32_t id : ids) bytes += counts[id];
    EXPECT_EQ(bytes, static_cast<int64_t>(sample.size()));
  }
}

TEST_F(TextFiles, SentencePieceCorporaAreShorterAndRepeatable) {
  TextOptions options;
  options.path = write("a.txt", sample_text());
  const int64_t bytes = Text(options).tokens(Split::train);
  options.tokenizer = "sentencepiece";
  options.vocab_size = 400;
  const Text text(options);
  EXPECT_LT(text.tokens(Split::train), bytes / 2);
  EXPECT_EQ(text.vocabulary(), 400);
  std::filesystem::remove_all(folder() / "cache");
  const Text again(options);
  EXPECT_EQ(again.fingerprint(), text.fingerprint());
  EXPECT_EQ(again.sample(Split::train, 3, 64).tokens, text.sample(Split::train, 3, 64).tokens);
}

TEST_F(TextFiles, AVocabularyThatTheTextCannotFillIsRefused) {
  write("tiny.txt", "ab ab ab\n");
  TextOptions options;
  options.path = folder() / "tiny.txt";
  options.tokenizer = "sentencepiece";
  const std::string text = refusal([&] { Text tiny(options); });
  EXPECT_NE(text.find("cannot train a SentencePiece model of 4096 ids"), std::string::npos) << text;
  EXPECT_NE(text.find("lower data.vocab_size"), std::string::npos) << text;
}

}  // namespace assay::data
