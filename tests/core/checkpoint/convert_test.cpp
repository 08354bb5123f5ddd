// convert: weights of a cut checkpoint as one file; casts against values that were worked out.
#include "core/checkpoint/convert.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "core/checkpoint/safetensors.h"
#include "tests/core/checkpoint/saved.h"

namespace assay::checkpoint {
namespace {

const Plan kWeight{.name = "w", .shape = {5, 3}, .boxes = {{{0, 0}, {3, 3}}, {{3, 0}, {2, 3}}}};
const Plan kMoment{.name = "optim/m/w",
                   .shape = {5, 3},
                   .boxes = kWeight.boxes,
                   .first = 50,
                   .kind = TensorKind::optimizer};

template <class T>
std::vector<T> values(const std::filesystem::path& file, const FileTensor& place) {
  std::vector<T> out((place.end - place.begin) / sizeof(T));
  InputFile(file).read(place.begin, reinterpret_cast<std::byte*>(out.data()),
                       place.end - place.begin);
  return out;
}

/// One tensor of these numbers.
std::filesystem::path save_numbers(const std::filesystem::path& folder,
                                   const std::vector<float>& numbers) {
  const auto temporary = temporary_folder(folder, 1);
  const Shape shape{static_cast<int64_t>(numbers.size())};
  write_shard(temporary, 0,
              {{.name = "x",
                .dtype = "F32",
                .shape = shape,
                .box = whole(shape),
                .data = reinterpret_cast<const std::byte*>(numbers.data())}});
  Manifest manifest{.step = 1};
  const std::atomic<bool> abandoned = false;
  manifest.tensors = join_shards(temporary, 1, 1, abandoned);
  commit(folder, manifest);
  return folder / step_name(1);
}

TEST(Convert, JoinsTheBoxesOfTheWeightsAndLeavesTheOptimizerOut) {
  const TemporaryFolder folder;
  Reader reader(save(folder.path(), {kWeight, kMoment}));
  const auto out = folder.path() / "model.safetensors";
  const Converted done = convert(reader, out);
  EXPECT_EQ(done.tensors, 1);
  EXPECT_EQ(done.bytes, 15 * 4);
  const FileTensors header = read_header(out);
  ASSERT_EQ(header.size(), 1u);
  EXPECT_EQ(header.at("w").shape, (Shape{5, 3}));
  EXPECT_EQ(values<float>(out, header.at("w")), numbered({5, 3}, whole({5, 3}), 0));
}

TEST(Convert, RoundsToBfloat16ToNearestEven) {
  const TemporaryFolder folder;
  const float ulp = 0x1p-7f;  // of bfloat16 at 1
  Reader reader(
      save_numbers(folder.path(), {1 + ulp / 2, 1 + 3 * ulp / 2, 1 + ulp / 2 + 0x1p-20f,
                                   -1 - ulp / 4, 3e38f, 3.4e38f, std::nanf(""), INFINITY}));
  const auto out = folder.path() / "bf16.safetensors";
  convert(reader, out, "BF16");
  const auto x = values<uint16_t>(out, read_header(out).at("x"));
  const std::vector<uint16_t> expected = {0x3F80, 0x3F82, 0x3F81, 0xBF80,
                                          0x7F62, 0x7F80, 0x7FC0, 0x7F80};
  EXPECT_EQ(x, expected);
}

TEST(Convert, WideningIsExact) {
  const TemporaryFolder folder;
  const std::vector<float> numbers = {0.1f, -0x1p-149f, 3.4e38f};
  Reader reader(save_numbers(folder.path(), numbers));
  const auto out = folder.path() / "f64.safetensors";
  convert(reader, out, "F64");
  const auto x = values<double>(out, read_header(out).at("x"));
  EXPECT_EQ(x, std::vector<double>(numbers.begin(), numbers.end()));
}

TEST(Convert, RefusesAnotherDtypeAndDamageAndLeavesNoFile) {
  const TemporaryFolder folder;
  const auto saved = save(folder.path(), {kWeight});
  const auto out = folder.path() / "model.safetensors";
  Reader reader(saved);
  EXPECT_NE(refusal([&] { convert(reader, out, "F8_E4M3"); }).find("no conversion"),
            std::string::npos);
  const Chunk chunk = reader.manifest().tensors.at("w").chunks[0];
  flip(saved / chunk.file, chunk.offset + 1);
  EXPECT_NE(refusal([&] { convert(reader, out); }).find("[R-CKPT]"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(out));
}

}  // namespace
}  // namespace assay::checkpoint
