// The spool keeps every row through cuts and damage, and never gives one twice.
#include "core/base/spool.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <random>
#include <thread>

#include "assay/error.h"
#include "core/base/files.h"

namespace assay {
namespace {

using nlohmann::json;

class Spool : public testing::Test {
 protected:
  Spool()
      : folder_(std::filesystem::temp_directory_path() /
                ("assay-spool-" + std::to_string(getpid()))) {
    std::filesystem::remove_all(folder_);
  }
  ~Spool() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path write(int rows, bool close = true) {
    SpoolWriter writer(folder_, {.attempt_id = 17, .rank = 1, .cell_id = "c"});
    for (int i = 0; i < rows; ++i)
      writer.append({{"t", "samples"}, {"step", i}, {"value", i / 3.0}});
    if (close) writer.close("ok");
    return writer.path();
  }
  void replace(const std::filesystem::path& file, const std::string& bytes) {
    std::ofstream(file, std::ios::binary | std::ios::trunc) << bytes;
  }
  const std::filesystem::path folder_;
};

TEST_F(Spool, RoundTrip) {
  const auto file = write(3);
  EXPECT_EQ(file.filename(), "17.r1.jl");
  const SpoolChunk chunk = read_spool(file, 0);
  ASSERT_EQ(chunk.rows.size(), 5u);
  EXPECT_EQ(
      chunk.rows[0],
      (json{{"t", "open"}, {"schema", 1}, {"attempt_id", 17}, {"rank", 1}, {"cell_id", "c"}}));
  EXPECT_EQ(chunk.rows[3]["value"].get<double>(), 2 / 3.0);
  EXPECT_EQ(chunk.rows[4], (json{{"t", "close"}, {"rows", 4}, {"outcome", "ok"}}));
  EXPECT_TRUE(chunk.closed());
  EXPECT_EQ(chunk.next_offset, static_cast<int64_t>(std::filesystem::file_size(file)));
  EXPECT_EQ(spool_outcome(file), "ok");
}

TEST_F(Spool, LineHasTheStatedForm) {
  EXPECT_EQ(spool_line({{"t", "x"}}), crc32c_hex(R"({"t":"x"})") + " {\"t\":\"x\"}\n");
}

TEST_F(Spool, NonFiniteNumbersTravelAsText) {
  const double inf = std::numeric_limits<double>::infinity();
  const std::string line = spool_line({{"t", "x"}, {"a", std::nan("")}, {"b", {inf, -inf, 1.5}}});
  EXPECT_EQ(line.substr(9), R"({"a":"nan","b":["inf","-inf",1.5],"t":"x"})"
                            "\n");
  EXPECT_TRUE(std::isnan(*nonfinite("nan")));
  EXPECT_EQ(nonfinite("-inf"), -inf);
  EXPECT_EQ(nonfinite("other"), std::nullopt);
}

TEST_F(Spool, BadUtf8IsReplacedNotThrown) {
  EXPECT_NE(spool_line({{"t", "x"}, {"text", "\xff\xfe"}}), "");
}

/// Property: cut at any byte, the reader gives exactly the whole lines, and the rest once it is
/// there.
TEST_F(Spool, CutAnywhereThenCompleted) {
  const auto file = write(6);
  const std::string whole = read_file(file);
  const auto all = read_spool(file, 0).rows;
  for (size_t cut = 0; cut <= whole.size(); ++cut) {
    replace(file, whole.substr(0, cut));
    const SpoolChunk first = read_spool(file, 0);
    ASSERT_FALSE(first.corrupt) << "cut at " << cut;
    EXPECT_EQ(first.torn, cut > 0 && whole[cut - 1] != '\n') << "cut at " << cut;
    replace(file, whole);
    const SpoolChunk rest = read_spool(file, first.next_offset);
    auto joined = first.rows;
    joined.insert(joined.end(), rest.rows.begin(), rest.rows.end());
    ASSERT_EQ(joined, all) << "cut at " << cut;
  }
}

/// Property: any changed byte is found, named by line, and rows before it are kept.
TEST_F(Spool, AnyDamagedByteIsReportedWithItsLine) {
  const auto file = write(4);
  const std::string whole = read_file(file);
  std::mt19937_64 random(7);
  for (int trial = 0; trial < 200; ++trial) {
    std::string damaged = whole;
    const size_t at = random() % whole.size();
    if (whole[at] == '\n') continue;  // two lines become one: found as well, but on the first
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << (random() % 7)));
    if (damaged[at] == '\n') continue;
    replace(file, damaged);
    const SpoolChunk chunk = read_spool(file, 0);
    const auto line = 1 + std::count(whole.begin(), whole.begin() + static_cast<long>(at), '\n');
    ASSERT_TRUE(chunk.corrupt) << "byte " << at;
    EXPECT_EQ(chunk.corrupt->id, "H05");
    EXPECT_EQ(chunk.corrupt->place, file.string() + ":" + std::to_string(line));
    EXPECT_EQ(static_cast<long>(chunk.rows.size()), line - 1);
  }
}

TEST_F(Spool, TextAndParsedRowsAreTheSame) {
  const auto file = write(25);
  const SpoolChunk chunk = read_spool(file, 0, 9);
  SpoolText text = read_spool_text(file, 0, 9);
  const SpoolText moved = std::move(text);
  ASSERT_EQ(moved.rows.size(), 9u);
  EXPECT_EQ(moved.next_offset, chunk.next_offset);
  EXPECT_FALSE(moved.torn);
  for (size_t i = 0; i < 9; ++i) EXPECT_EQ(nlohmann::json::parse(moved.rows[i]), chunk.rows[i]);
}

TEST_F(Spool, AGoodChecksumOverNoRowIsDamageAsWell) {
  const auto file = write(2, false);
  const std::string good = read_file(file);
  replace(file, good + crc32c_hex("[1]") + " [1]\n");
  const SpoolChunk chunk = read_spool(file, 0);
  ASSERT_TRUE(chunk.corrupt);
  EXPECT_EQ(chunk.next_offset, static_cast<int64_t>(good.size()));
  EXPECT_FALSE(read_spool_text(file, 0).corrupt);  // an import says what is wrong with it
}

TEST_F(Spool, ReadsInBatchesFromOffsets) {
  const auto file = write(25);
  int64_t offset = 0;
  size_t rows = 0;
  for (;;) {
    const SpoolChunk chunk = read_spool(file, offset, 4);
    if (chunk.rows.empty()) break;
    EXPECT_LE(chunk.rows.size(), 4u);
    EXPECT_FALSE(chunk.torn);
    rows += chunk.rows.size();
    offset = chunk.next_offset;
  }
  EXPECT_EQ(rows, 27u);
}

TEST_F(Spool, AMissingFileHasNoRows) {
  EXPECT_TRUE(read_spool(folder_ / "none.jl", 0).rows.empty());
  EXPECT_EQ(spool_outcome(folder_ / "none.jl"), std::nullopt);
}

TEST_F(Spool, WithoutCloseThereIsNoOutcome) {
  EXPECT_EQ(spool_outcome(write(2, false)), std::nullopt);
}

TEST_F(Spool, AnExistingFileIsNeverOverwritten) {
  write(1);
  EXPECT_THROW(write(1), InfrastructureError);
}

TEST_F(Spool, ThreadsNeverMixLines) {
  SpoolWriter writer(folder_, {.attempt_id = 1, .rank = 0, .cell_id = "c"});
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&writer, t] {
      for (int i = 0; i < 300; ++i) writer.append({{"t", "samples"}, {"thread", t}, {"step", i}});
    });
  }
  for (std::thread& thread : threads) thread.join();
  writer.close("ok");
  const SpoolChunk chunk = read_spool(writer.path(), 0);
  EXPECT_FALSE(chunk.corrupt);
  EXPECT_EQ(chunk.rows.size(), 1202u);
  EXPECT_EQ(chunk.rows.back()["rows"], 1201);
}

TEST(FullDisk, NamesTheFileAndTheReason) {
  // /dev/full fails every write with ENOSPC; the spool is a link to it.
  const auto folder =
      std::filesystem::temp_directory_path() / ("assay-full-" + std::to_string(getpid()));
  SpoolWriter writer(folder, {.attempt_id = 3, .rank = 0, .cell_id = "c"});
  const int full = open("/dev/full", O_WRONLY);
  ASSERT_GE(full, 0);
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    if (std::filesystem::read_symlink(entry, gone) != writer.path()) continue;
    dup2(full, std::stoi(entry.path().filename()));
    break;
  }
  close(full);
  try {
    writer.append({{"t", "samples"}});
    ADD_FAILURE() << "the write to a full disk went through";
  } catch (const InfrastructureError& e) {
    EXPECT_EQ(std::string(e.what()), "cannot append to the spool '" + writer.path().string() +
                                         "': No space left on device");
    EXPECT_EQ(e.hint(), "free some space, then run: assay resume");
  }
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace assay
