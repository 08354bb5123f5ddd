// data/text: rows, splits, packing and fingerprints of byte tokens.
#include "text.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <numeric>

#include "scratch.h"

namespace assay::data {
namespace {

constexpr int64_t kBos = 256, kEos = 257, kPad = 258;

class TextTest : public Scratch {
 protected:
  TextOptions options_for(const std::string& name, const std::string& content) const {
    TextOptions options;
    options.path = write(name, content);
    options.validation = 0;
    return options;
  }
};

/// The stream: tokens of all rows, then the last row's last label.
std::vector<int64_t> stream_of(const Text& text, int64_t seq_len) {
  std::vector<int64_t> stream;
  Sample row;
  for (int64_t i = 0; i < text.rows(Split::train, seq_len); ++i) {
    row = text.sample(Split::train, i, seq_len);
    stream.insert(stream.end(), row.tokens.begin(), row.tokens.end());
  }
  stream.push_back(row.labels.back());
  return stream;
}

std::vector<int64_t> bytes_of(const std::string& text) {
  std::vector<int64_t> ids = {kBos};
  for (const char c : text) ids.push_back(static_cast<unsigned char>(c));
  ids.push_back(kEos);
  return ids;
}

}  // namespace

TEST_F(TextTest, RowsAreTheStreamAndLabelsItsShift) {
  const std::string content = "The quick brown fox, \xC3\xA9t\xC3\xA9!\n";  // 28 bytes, 30 tokens
  const Text text(options_for("a.txt", content));
  EXPECT_EQ(text.vocabulary(), 272);
  EXPECT_EQ(text.tokens(Split::train), static_cast<int64_t>(content.size()) + 2);
  EXPECT_EQ(text.rows(Split::train, 5), (text.tokens(Split::train) - 1) / 5);
  const std::vector<int64_t> whole = bytes_of(content), stream = stream_of(text, 5);
  EXPECT_TRUE(std::equal(stream.begin(), stream.end(), whole.begin()));
  const Sample row = text.sample(Split::train, 2, 5);
  for (size_t i = 0; i < 5; ++i) EXPECT_EQ(row.labels[i], whole[10 + i + 1]);
}

TEST_F(TextTest, RowsDoNotDependOnTheOrderOfCalls) {
  const TextOptions options = options_for("a.txt", std::string(100, 'x') + "abcdefghij");
  const Text forward(options), backward(options);
  std::vector<Sample> rows;
  for (int64_t i = 0; i < 8; ++i) rows.push_back(forward.sample(Split::train, i, 13));
  for (int64_t i = 7; i >= 0; --i) {
    EXPECT_EQ(backward.sample(Split::train, i, 13).tokens, rows[static_cast<size_t>(i)].tokens);
  }
}

TEST_F(TextTest, LabelBytesCountTextOnly) {
  const Text text(options_for("a.txt", "abcd"));              // bos a b c d eos
  EXPECT_EQ(text.sample(Split::train, 0, 5).label_bytes, 4);  // a b c d, not eos
}

TEST_F(TextTest, SplitsShareNoToken) {
  TextOptions options = options_for("a.txt", std::string(98, 'a'));  // 100 tokens
  options.validation = 0.2;
  const Text text(options);
  EXPECT_EQ(text.tokens(Split::train), 80);
  EXPECT_EQ(text.tokens(Split::validation), 20);
  EXPECT_EQ(text.rows(Split::train, 10), 7);
  EXPECT_EQ(text.rows(Split::validation, 10), 1);
  EXPECT_EQ(text.sample(Split::validation, 0, 19).labels.back(), kEos);
}

TEST_F(TextTest, StrideOfOneMoreDropsATokenPerRow) {
  TextOptions options = options_for("a.txt", "abcdefghijklmnopqrstuvwxyz");  // 28 tokens
  options.stride = "s+1";
  const Text text(options);
  EXPECT_EQ(text.rows(Split::train, 6), 4);
  EXPECT_EQ(text.sample(Split::train, 1, 6).tokens.front(), 'g');
}

TEST_F(TextTest, DocumentsStartWhereTheyDo) {
  TextOptions options = options_for("a.txt", "aaa\n--\nbb\n--\n\n--\nc");
  options.separator = "\n--\n";  // the third document is empty
  const Text text(options);
  // bos a a a eos | bos b b eos | bos c eos
  EXPECT_EQ(text.tokens(Split::train), 12);
  EXPECT_EQ(text.sample(Split::train, 0, 11).document_starts, (std::vector<int64_t>{0, 5, 9}));
  EXPECT_EQ(text.sample(Split::train, 1, 5).document_starts, (std::vector<int64_t>{0, 4}));
}

TEST_F(TextTest, JsonLinesGiveTheirField) {
  TextOptions options = options_for(
      "a.jsonl", "{\"body\": \"ab\", \"id\": 1}\n\n{\"id\": 2, \"body\": \"\\u00e9\"}\n");
  options.field = "body";
  options.add_bos = false;
  const Text text(options);
  EXPECT_EQ(stream_of(text, 5), (std::vector<int64_t>{'a', 'b', kEos, 0xC3, 0xA9, kEos}));
}

TEST_F(TextTest, FirstFitPacksWholeDocuments) {
  TextOptions options = options_for("a.txt", "aaaa|bb|cccccccccccc|d|ee");
  options.separator = "|";
  options.add_bos = false;
  options.packing = "first_fit";
  const Text text(options);  // pairs: 4, 2, 12 (dropped), 1, 2
  ASSERT_EQ(text.rows(Split::train, 6), 2);
  const Sample first = text.sample(Split::train, 0, 6), second = text.sample(Split::train, 1, 6);
  EXPECT_EQ(first.tokens, (std::vector<int64_t>{'a', 'a', 'a', 'a', 'b', 'b'}));
  EXPECT_EQ(first.labels, (std::vector<int64_t>{'a', 'a', 'a', kEos, 'b', kEos}));
  EXPECT_EQ(first.document_starts, (std::vector<int64_t>{0, 4}));
  EXPECT_EQ(second.tokens, (std::vector<int64_t>{'d', 'e', 'e', kPad, kPad, kPad}));
  EXPECT_EQ(second.labels, (std::vector<int64_t>{kEos, 'e', kEos, -100, -100, -100}));
  EXPECT_EQ(second.document_starts, (std::vector<int64_t>{0, 1, 3}));
}

TEST_F(TextTest, FingerprintsFollowContentAndTokenizer) {
  const TextOptions options = options_for("a.txt", "some text");
  TextOptions copy = options, other = options, padded = options;
  copy.path = write("b.txt", "some text");
  other.path = write("c.txt", "some texT");
  padded.pad_to = 64;
  const std::string fingerprint = Text(options).fingerprint();
  EXPECT_EQ(fingerprint.size(), 64U);
  EXPECT_EQ(Text(copy).fingerprint(), fingerprint);
  EXPECT_NE(Text(other).fingerprint(), fingerprint);
  EXPECT_NE(Text(padded).fingerprint(), fingerprint);
  EXPECT_EQ(Text(padded).vocabulary(), 320);
}

TEST_F(TextTest, AChangedFileIsTokenisedAgain) {
  const TextOptions options = options_for("a.txt", "first text");
  EXPECT_EQ(Text(options).sample(Split::train, 0, 4).labels[0], 'f');
  write("a.txt", "other words");
  EXPECT_EQ(Text(options).sample(Split::train, 0, 4).labels[0], 'o');
}

TEST_F(TextTest, ASecondConstructionReadsTheCacheOnly) {
  const TextOptions options = options_for("a.txt", "some text to cache");
  const std::string fingerprint = Text(options).fingerprint();
  std::filesystem::path cached;
  for (const auto& entry : std::filesystem::directory_iterator(folder() / "cache" / "corpora")) {
    if (entry.path().extension() == ".tokens") cached = entry.path();
  }
  EXPECT_EQ(cached.stem().string(), fingerprint);
  const auto written = std::filesystem::last_write_time(cached);
  Text again(options);
  EXPECT_EQ(std::filesystem::last_write_time(cached), written);
}

TEST_F(TextTest, ProcessesThatStartTogetherShareOneCache) {
  const TextOptions options = options_for("a.txt", std::string(200'000, 'q'));
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i) {
    children.push_back(::fork());
    if (children.back() == 0) {
      const Text text(options);
      ::_exit(text.rows(Split::train, 100) == 2000 &&
                      text.sample(Split::train, 7, 100).labels[3] == 'q'
                  ? 0
                  : 1);
    }
  }
  for (const pid_t child : children) {
    int status = 1;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  int64_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder() / "cache" / "corpora")) {
    files += entry.path().extension() != ".lock";
  }
  EXPECT_EQ(files, 1);
}

TEST_F(TextTest, TooShortTextsAreRefusedWithAWayOut) {
  TextOptions options = options_for("a.txt", "short");
  options.validation = 0.3;
  const Text text(options);
  EXPECT_EQ(refusal([&] { text.rows(Split::train, 256); }),
            "data/text: a.txt: the training part of 5 tokens has no row of seq_len 256 | "
            "lower model.seq_len, or name a larger corpus");
  EXPECT_EQ(refusal([&] { text.rows(Split::validation, 4); }),
            "data/text: a.txt: the validation part of 2 tokens has no row of seq_len 4 | "
            "raise data.validation (0: none is held out), or lower model.seq_len");
}

}  // namespace assay::data
