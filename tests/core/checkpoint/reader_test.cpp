// Reader: any box of a tensor whatever boxes it was stored in; reads by offset; damage has a name.
#include "core/checkpoint/reader.h"

#include <gtest/gtest.h>

#include <random>

#include "core/checkpoint/verify.h"
#include "tests/core/checkpoint/saved.h"

namespace assay::checkpoint {
namespace {

std::vector<float> read(Reader& reader, const std::string& name, const Region& box) {
  std::vector<float> values(static_cast<size_t>(volume(box)));
  reader.read(name, box, reinterpret_cast<std::byte*>(values.data()));
  return values;
}

// 7 rows over 3 ranks: 3, 3, 1; of 5 columns.
const Plan kRows{.name = "rows",
                 .shape = {7, 5},
                 .boxes = {{{0, 0}, {3, 5}}, {{3, 0}, {3, 5}}, {{6, 0}, {1, 5}}}};
// Columns 2, 3, and none.
const Plan kColumns{.name = "columns",
                    .shape = {7, 5},
                    .boxes = {{{0, 0}, {7, 2}}, {{0, 2}, {7, 3}}, {{0, 5}, {7, 0}}},
                    .first = 1000};
const Plan kScalar{.name = "optim/n/rows",
                   .shape = {},
                   .boxes = {{}, {{}, {}}, {{}, {}}},
                   .first = 42,
                   .kind = TensorKind::optimizer};

TEST(Reader, GivesAnyBoxOfAnyCut) {
  const TemporaryFolder folder;
  Reader reader(save(folder.path(), {kRows, kColumns}));
  std::mt19937 random(3);
  const auto number = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  for (int trial = 0; trial < 200; ++trial) {
    Region box;
    for (const int64_t n : kRows.shape) {
      box.begin.push_back(number(0, n - 1));
      box.size.push_back(number(0, n - box.begin.back()));
    }
    EXPECT_EQ(read(reader, "rows", box), numbered(kRows.shape, box, 0)) << print(box);
    EXPECT_EQ(read(reader, "columns", box), numbered(kRows.shape, box, 1000)) << print(box);
  }
}

TEST(Reader, GivesAScalar) {
  const TemporaryFolder folder;
  Plan scalar = kScalar;
  scalar.boxes = {{}};
  Reader reader(save(folder.path(), {scalar}));
  EXPECT_EQ(read(reader, "optim/n/rows", {}), std::vector<float>{42});
}

TEST(Reader, ReadsThePiecesThatItNeedsAndNoOthers) {
  const TemporaryFolder folder;
  const int64_t width = 1 << 10, rows = 2 << 10;  // 8 MiB in pieces of 1 MiB: 256 rows each
  const Plan large{.name = "w", .shape = {rows, width}, .boxes = {whole({rows, width})}};
  Reader reader(save(folder.path(), {large}));
  const Region box{{300, 0}, {100, width}};
  EXPECT_EQ(read(reader, "w", box), numbered(large.shape, box, 0));
  EXPECT_EQ(reader.bytes_read(), 1 << 20) << "rows 256 to 511";
  const Region across{{500, 3}, {20, 2}};
  EXPECT_EQ(read(reader, "w", across), numbered(large.shape, across, 0));
  EXPECT_EQ(reader.bytes_read(), 3 << 20) << "rows 256 to 767 more";
}

TEST(Reader, NamesAMissingTensorAndAGap) {
  const TemporaryFolder folder;
  Plan gap = kRows;
  gap.boxes[1] = {{3, 0}, {2, 5}};
  Reader reader(save(folder.path(), {gap}));
  EXPECT_NE(refusal([&] { read(reader, "row", {}); }).find("has no tensor 'row'"),
            std::string::npos);
  const std::string text = refusal([&] { read(reader, "rows", whole({7, 5})); });
  EXPECT_NE(text.find("'rows': its chunks hold 30 of the 35 elements"), std::string::npos) << text;
  EXPECT_EQ(read(reader, "rows", {{0, 0}, {5, 5}}), numbered({7, 5}, {{0, 0}, {5, 5}}, 0));
}

TEST(Reader, EveryFlippedByteOfTheDataIsFoundAndNamed) {
  const TemporaryFolder folder;
  const auto saved = save(folder.path(), {kRows, kColumns});
  const Manifest manifest = read_manifest(saved);
  ASSERT_TRUE(find_damage(saved).empty());
  for (const auto& [name, tensor] : manifest.tensors) {
    for (const Chunk& chunk : tensor.chunks) {
      for (int64_t byte = 0; byte < chunk_bytes(tensor, chunk); ++byte) {
        const auto at = chunk.offset + static_cast<uint64_t>(byte);
        flip(saved / chunk.file, at);
        const auto damage = find_damage(saved);
        ASSERT_EQ(damage.size(), 1u);
        EXPECT_EQ(damage[0].file, chunk.file);
        EXPECT_EQ(damage[0].tensor, name);
        EXPECT_EQ(damage[0].chunk, print(chunk.box));
        flip(saved / chunk.file, at);
      }
    }
  }
}

TEST(Reader, RefusesAFlippedByteOnlyWhereItReads) {
  const TemporaryFolder folder;
  const auto saved = save(folder.path(), {kRows});
  const Chunk last = read_manifest(saved).tensors.at("rows").chunks.back();
  flip(saved / last.file, last.offset);
  Reader reader(saved);
  EXPECT_EQ(read(reader, "rows", {{0, 0}, {6, 5}}), numbered({7, 5}, {{0, 0}, {6, 5}}, 0));
  const std::string text = refusal([&] { read(reader, "rows", {{5, 0}, {2, 5}}); });
  EXPECT_NE(text.find("[R-CKPT]"), std::string::npos) << text;
  EXPECT_NE(text.find("rank-00002.safetensors: 'rows', chunk [6:7, 0:5]: bytes "),
            std::string::npos)
      << text;
}

TEST(Reader, ATruncatedAndAMissingFileAreNamed) {
  const TemporaryFolder folder;
  const auto saved = save(folder.path(), {kRows, kColumns});
  const auto file = saved / "rank-00001.safetensors";
  std::filesystem::resize_file(file, std::filesystem::file_size(file) - 1);
  const auto short_by_one = find_damage(saved);
  ASSERT_EQ(short_by_one.size(), 1u);
  EXPECT_NE(print(short_by_one[0]).find("the file ends at byte "), std::string::npos);
  std::filesystem::remove(file);
  const auto gone = find_damage(saved);
  ASSERT_EQ(gone.size(), 2u) << "a chunk of each tensor";
  EXPECT_NE(gone[0].what.find("cannot open"), std::string::npos) << gone[0].what;
}

TEST(Reader, GapsAndOverlapsAreDamage) {
  const TemporaryFolder folder;
  Plan crooked = kRows;
  crooked.boxes[1] = {{2, 0}, {4, 5}};
  const auto damage = find_damage(save(folder.path(), {crooked}));
  ASSERT_EQ(damage.size(), 1u);
  EXPECT_NE(damage[0].what.find("it overlaps [0:3, 0:5]"), std::string::npos) << damage[0].what;
}

}  // namespace
}  // namespace assay::checkpoint
