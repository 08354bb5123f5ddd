// Folders of checkpoints: what is found, what is kept, and manifests that vouch for themselves.
#include "core/checkpoint/folder.h"

#include <gtest/gtest.h>

#include "assay/error.h"
#include "core/checkpoint/safetensors.h"
#include "tests/core/checkpoint/saved.h"

namespace assay::checkpoint {
namespace {

namespace fs = std::filesystem;

const Plan kVector{.name = "v", .shape = {6}, .boxes = {{{0}, {4}}, {{4}, {2}}}};

std::vector<int64_t> steps_in(const fs::path& folder) {
  std::vector<int64_t> steps;
  for (const SavedStep& s : saved_steps(folder)) steps.push_back(s.step);
  return steps;
}

TEST(Folder, AManifestComesBackAsItWasWritten) {
  const TemporaryFolder folder;
  const Manifest m = read_manifest(save(folder.path(), {kVector}));
  EXPECT_EQ(m.step, 3);
  EXPECT_EQ(m.seed, 7u);
  EXPECT_EQ(m.world, 2);
  EXPECT_EQ(m.data.next_sample, 24);
  EXPECT_EQ(m.data.global_batch, 8);
  EXPECT_EQ(m.data.seq_len, 16);
  EXPECT_EQ(m.config.at("seed"), 7);
  EXPECT_EQ(m.bytes(), 6 * 4);
  const TensorEntry& v = m.tensors.at("v");
  EXPECT_EQ(v.dtype, "F32");
  ASSERT_EQ(v.chunks.size(), 2u);
  EXPECT_EQ(v.chunks[1].box, (Region{{4}, {2}}));
  EXPECT_EQ(v.chunks[1].file, "rank-00001.safetensors");
}

TEST(Folder, ShardsAreSafetensorsFilesOfTheirOwn) {
  const TemporaryFolder folder;
  const auto saved = save(folder.path(), {kVector});
  const FileTensors header = read_header(saved / "rank-00001.safetensors");
  ASSERT_EQ(header.size(), 1u);
  EXPECT_EQ(header.at("v").shape, Shape{2});
  EXPECT_EQ(header.at("v").begin, read_manifest(saved).tensors.at("v").chunks[1].offset);
}

TEST(Folder, EveryFlippedByteOfAManifestIsFound) {
  const TemporaryFolder folder;
  const fs::path file = save(folder.path(), {kVector}) / kManifestName;
  const std::string whole = read_file(file);
  for (size_t i = 0; i + 1 < whole.size(); ++i) {
    std::string changed = whole;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    if (nlohmann::json::parse(changed, nullptr, false) == nlohmann::json::parse(whole)) continue;
    std::ofstream(file, std::ios::binary) << changed;
    EXPECT_NE(refusal([&] { read_manifest(file.parent_path()); }), "nothing")
        << "byte " << i << ": " << whole.substr(i, 20);
  }
}

TEST(Folder, ANewerFormatIsRefusedByItsNumber) {
  const TemporaryFolder folder;
  const fs::path saved = save(folder.path(), {kVector});
  auto document = nlohmann::json::parse(read_file(saved / kManifestName));
  document["version"] = 2;
  std::ofstream(saved / kManifestName) << document.dump();
  const std::string text = refusal([&] { read_manifest(saved); });
  EXPECT_NE(text.find("format version 2; this assay reads 1"), std::string::npos) << text;
}

TEST(Folder, TheNewestIsFoundFromTheRunsFolderDown) {
  const TemporaryFolder run;
  const fs::path folder = run.path() / kFolderName;
  save(folder, {kVector}, 5);
  const fs::path newest = save(folder, {kVector}, 10);
  EXPECT_EQ(read_file(folder / "latest"), "step-00000010\n");
  EXPECT_EQ(find_checkpoint(newest), newest);
  EXPECT_EQ(find_checkpoint(folder), newest);
  EXPECT_EQ(find_checkpoint(run.path()), newest);
  EXPECT_EQ(find_checkpoint(run.path(), 5), folder / "step-00000005");
  const std::string text = refusal([&] { find_checkpoint(run.path(), 7); });
  EXPECT_NE(text.find("no checkpoint of step 7"), std::string::npos) << text;
  EXPECT_NE(text.find("steps: 5, 10"), std::string::npos) << text;
}

TEST(Folder, AStaleLatestGivesTheNewestThatIsThere) {
  const TemporaryFolder folder;
  const fs::path older = save(folder.path(), {kVector}, 5);
  fs::remove_all(save(folder.path(), {kVector}, 10));
  EXPECT_EQ(find_checkpoint(folder.path()), older);
  std::ofstream(folder.path() / "latest") << "../elsewhere\n";
  EXPECT_EQ(find_checkpoint(folder.path()), older);
}

TEST(Folder, WithoutACheckpointThePathIsNamed) {
  const TemporaryFolder folder;
  fs::create_directories(temporary_folder(folder.path(), 5));
  const std::string text = refusal([&] { find_checkpoint(folder.path()); });
  EXPECT_NE(text.find("no checkpoint in '" + folder.path().string()), std::string::npos) << text;
}

TEST(Folder, TheNewestAreKept) {
  const TemporaryFolder folder;
  for (const int64_t step : {1, 2, 3, 12}) save(folder.path(), {kVector}, step);
  keep_newest(folder.path(), 0);
  EXPECT_EQ(steps_in(folder.path()), (std::vector<int64_t>{1, 2, 3, 12}));
  keep_newest(folder.path(), 2);
  EXPECT_EQ(steps_in(folder.path()), (std::vector<int64_t>{3, 12}));
  keep_newest(folder.path(), 5);
  EXPECT_EQ(steps_in(folder.path()), (std::vector<int64_t>{3, 12}));
}

TEST(Folder, LeftoversGoAndCheckpointsStay) {
  const TemporaryFolder folder;
  save(folder.path(), {kVector}, 5);
  fs::create_directories(temporary_folder(folder.path(), 6) / "x");
  fs::create_directories(folder.path() / ".old-step-00000004");
  remove_leftovers(folder.path());
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), {}), 2) << "step-5 and latest";
  EXPECT_EQ(steps_in(folder.path()), std::vector<int64_t>{5});
}

TEST(Folder, AStepThatIsSavedAgainReplacesTheOld) {
  const TemporaryFolder folder;
  save(folder.path(), {kVector}, 5);
  Plan other = kVector;
  other.name = "w";
  const Manifest m = read_manifest(save(folder.path(), {other}, 5));
  EXPECT_TRUE(m.tensors.contains("w"));
  EXPECT_FALSE(m.tensors.contains("v"));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), {}), 2);
}

TEST(Folder, ARankThatNeverComesIsNamed) {
  const TemporaryFolder folder;
  const auto temporary = temporary_folder(folder.path(), 5);
  write_shard(temporary, 0, {});
  const std::atomic<bool> going = false, abandoned = true;
  const std::string late = refusal([&] { join_shards(temporary, 2, 0.0, going); });
  EXPECT_NE(late.find("rank 1 wrote no part of"), std::string::npos) << late;
  const std::string ended = refusal([&] { join_shards(temporary, 2, 1e9, abandoned); });
  EXPECT_NE(ended.find("given up"), std::string::npos) << ended;
}

TEST(Folder, AFullOrReadOnlyDiskIsTheMachinesFault) {
  const TemporaryFolder folder;
  std::ofstream(folder.path() / "file") << "x";
  const auto write = [&] { write_shard(folder.path() / "file" / "below", 0, {}); };
  EXPECT_THROW(write(), InfrastructureError);
}

}  // namespace
}  // namespace assay::checkpoint
