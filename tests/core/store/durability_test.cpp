// Many spools, one writer, a reader throughout; copies of the files as a power cut leaves them.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <fstream>
#include <random>
#include <thread>

#include "core/base/spool.h"
#include "core/store/check.h"
#include "core/store/reader.h"
#include "core/store/spool_import.h"
#include "tests/core/store/sample_study.h"

namespace assay::store {
namespace {

namespace fs = std::filesystem;

constexpr int kSpools = 64;
constexpr int64_t kSteps = 200;

/// One spool per attempt, written in small pieces so that reads meet torn lines.
void write_spool(const fs::path& file, int64_t attempt_id) {
  std::ofstream out(file, std::ios::binary);
  std::vector<nlohmann::json> rows = {open_row(attempt_id)};
  for (int64_t step = 1; step <= kSteps; ++step) rows.push_back(step_row(step));
  rows.push_back({{"t", "close"}, {"rows", kSteps + 1}, {"outcome", "ok"}});
  for (const auto& row : rows) {
    const std::string line = spool_line(row);
    out << line.substr(0, line.size() / 2) << std::flush << line.substr(line.size() / 2);
  }
}

TEST(Durability, SixtyFourSpoolsWrittenWhileImportedLoseNothing) {
  TempFolder folder;
  const auto file = folder / "a.db";
  SampleStore sample(file);
  std::vector<Claim> claims;
  for (int64_t slot = 2; claims.size() < kSpools; ++slot) {
    sample.store.ensure_run(id64('a'), kMachine, "measure", 0, slot);
    claims.push_back(sample.claim().value());
  }
  const auto spool = [&](size_t i) { return folder / (std::to_string(i) + ".jl"); };
  std::vector<std::thread> writers;
  std::atomic<bool> stop = false;
  std::atomic<int> reads = 0, read_errors = 0;
  std::thread reading([&] {
    const Reader reader(file);
    int64_t seen = 0;
    while (!stop) {
      try {
        const int64_t count = *integer(reader.query("SELECT count(*) FROM steps").rows[0][0]);
        if (count < seen) ++read_errors;
        seen = count;
        ++reads;
      } catch (const std::exception&) {
        ++read_errors;
      }
    }
  });
  for (size_t i = 0; i < claims.size(); ++i) {
    writers.emplace_back([&, i] { write_spool(spool(i), claims[i].attempt_id); });
  }
  size_t complete = 0;
  while (complete < claims.size()) {  // the supervisor's loop: whatever is there, again and again
    complete = 0;
    for (size_t i = 0; i < claims.size(); ++i) {
      const SpoolImport import = import_spool(sample.store, claims[i].attempt_id, 0, spool(i));
      EXPECT_FALSE(import.corrupt);
      complete += import.position.complete() || import.corrupt;
    }
  }
  for (std::thread& writer : writers) writer.join();
  stop = true;
  reading.join();
  EXPECT_EQ(integer(sample.store.query("SELECT count(*) FROM steps").rows[0][0]), kSpools * kSteps);
  EXPECT_GT(reads, 0);
  EXPECT_EQ(read_errors, 0);
  EXPECT_TRUE(find_damage(file).empty());
}

/// Copies what is on disk at this moment: first the log, as its frames come before checkpoints.
void copy_as_cut(const fs::path& from, const fs::path& to, std::mt19937_64& random) {
  for (const char* tail : {"", "-wal"}) {
    const fs::path source = from.string() + tail;
    if (fs::exists(source)) fs::copy_file(source, to.string() + tail);
  }
  const fs::path wal = to.string() + "-wal";
  if (fs::exists(wal) && fs::file_size(wal) > 0) {
    fs::resize_file(wal, random() % (fs::file_size(wal) + 1));  // the tail never reached the disk
  }
}

TEST(Durability, APowerCutAtAnyMomentLeavesASoundFileWithWholeBatches) {
  TempFolder folder;
  const auto file = folder / "a.db";
  SampleStore sample(file);
  sample.store.checkpoint();
  sample.store.query("PRAGMA wal_autocheckpoint=0");  // the database file itself stays still
  const Claim claim = sample.claim().value();
  std::mt19937_64 random(7);
  int64_t step = 1;
  for (int cut = 0; cut < 40; ++cut) {
    for (int batch = 0; batch < 3; ++batch) {
      std::vector<nlohmann::json> rows;
      for (int i = 0; i < 10; ++i) rows.push_back(step_row(step++));
      sample.store.import_rows(claim.attempt_id, 0, "spool", rows, step * 100);
    }
    const fs::path copy = folder / (std::to_string(cut) + ".db");
    copy_as_cut(file, copy, random);
    Store reopened(copy);  // recovers the log
    EXPECT_TRUE(find_damage(copy).empty()) << "cut " << cut;
    const int64_t kept = *integer(reopened.query("SELECT count(*) FROM steps").rows[0][0]);
    EXPECT_EQ(kept % 10, 0) << "half a batch after cut " << cut;
    const auto bytes = reopened.spool(claim.attempt_id, 0).bytes_imported;
    EXPECT_EQ(bytes, kept == 0 ? 0 : (kept + 1) * 100) << "rows and offset disagree, cut " << cut;
  }
}

/// Imports batches of 10 steps for ever, telling of each through `out` before it starts.
[[noreturn]] void import_for_ever(const fs::path& file, int64_t attempt_id, int out) {
  Store store(file);
  store.query("PRAGMA wal_autocheckpoint=8");  // so that cuts meet checkpoints as well
  int64_t step = store.spool(attempt_id, 0).bytes_imported / 100;
  for (;;) {
    if (write(out, ".", 1) != 1) _exit(1);
    std::vector<nlohmann::json> rows;
    for (int i = 0; i < 10; ++i) rows.push_back(step_row(++step));
    store.import_rows(attempt_id, 0, "spool", rows, step * 100);
  }
}

/// Kills a writing process after so many batches have started; the files are then as it left them.
void write_and_kill(const fs::path& file, int64_t attempt_id, int batches) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    import_for_ever(file, attempt_id, ends[1]);
  }
  close(ends[1]);
  char byte = 0;
  for (int i = 0; i < batches; ++i) ASSERT_EQ(read(ends[0], &byte, 1), 1);
  kill(child, SIGKILL);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  close(ends[0]);
}

TEST(Durability, AWriterKilledAtAnyMomentLeavesASoundFileAndGoesOnWhereItStopped) {
  TempFolder folder;
  const auto file = folder / "a.db";
  int64_t attempt_id = 0;
  {
    SampleStore sample(file);
    attempt_id = sample.claim().value().attempt_id;
  }
  std::mt19937_64 random(11);
  int64_t before = 0;
  for (int cut = 0; cut < 30; ++cut) {
    write_and_kill(file, attempt_id, 1 + static_cast<int>(random() % 12));
    const fs::path copy = folder / ("cut" + std::to_string(cut) + ".db");
    for (const char* tail : {"", "-wal"}) {
      if (fs::exists(file.string() + tail))
        fs::copy_file(file.string() + tail, copy.string() + tail);
    }
    Store reopened(copy);
    EXPECT_TRUE(find_damage(copy).empty()) << "cut " << cut;
    const int64_t kept = *integer(reopened.query("SELECT count(*) FROM steps").rows[0][0]);
    EXPECT_EQ(kept % 10, 0) << "half a batch after cut " << cut;
    EXPECT_GE(kept, before) << "committed rows were lost by cut " << cut;
    EXPECT_EQ(reopened.spool(attempt_id, 0).bytes_imported, kept * 100) << "cut " << cut;
    before = kept;
  }
  EXPECT_GT(before, 300);
}

}  // namespace
}  // namespace assay::store
