// Files: atomic writes, reasons in errors, published hash vectors, the cache folder.
#include "core/base/files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>

#include "assay/error.h"
#include "core/base/clock.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

class Files : public testing::Test {
 protected:
  Files() : folder_(fs::path(testing::TempDir()) / ("assay_files_" + std::to_string(getpid()))) {
    fs::create_directories(folder_);
  }
  ~Files() override { fs::remove_all(folder_); }
  const fs::path folder_;
};

TEST_F(Files, AWriteReplacesTheWholeFileAndLeavesNothingBeside) {
  const fs::path file = folder_ / "a.txt";
  write_file_atomically(file, std::string("one\0two", 7));
  EXPECT_EQ(read_file(file), std::string("one\0two", 7));
  const std::string large(1'000'000, 'x');
  write_file_atomically(file, large);
  EXPECT_EQ(read_file(file), large);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1);
}

TEST_F(Files, ErrorsNameTheFileAndTheReason) {
  const auto message = [](auto call) -> std::string {
    try {
      call();
    } catch (const Error& e) {
      return e.what();
    }
    return "no error";
  };
  EXPECT_EQ(message([&] { read_file(folder_ / "none"); }),
            (folder_ / "none").string() + ": cannot open: No such file or directory");
  EXPECT_THAT(message([&] { write_file_atomically(folder_ / "no" / "x", ""); }),
              testing::HasSubstr("cannot create: No such file or directory"));
  fs::create_directory(folder_ / "taken");
  EXPECT_THAT(message([&] { write_file_atomically(folder_ / "taken", "x"); }),
              testing::HasSubstr("taken: cannot replace: Is a directory"));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1) << "no temporary is left";
}

TEST_F(Files, HashesAreThePublishedOnes) {
  EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(crc32c_hex("123456789"), "e3069283");
  write_file_atomically(folder_ / "abc", "abc");
  EXPECT_EQ(sha256_file(folder_ / "abc"), sha256("abc"));
}

TEST_F(Files, TheCacheFolderIsPrivate) {
  setenv("ASSAY_CACHE_DIR", (folder_ / "cache").c_str(), 1);
  const fs::path cache = cache_dir();
  unsetenv("ASSAY_CACHE_DIR");
  EXPECT_EQ(cache, folder_ / "cache");
  EXPECT_EQ(fs::status(cache).permissions(), fs::perms::owner_all);
}

TEST(Clock, KnowsTheTimeAndThisProcess) {
  EXPECT_GT(now_us(), int64_t{1'700'000'000} * 1'000'000);
  const double before = monotonic_s();
  EXPECT_GE(monotonic_s(), before);
  EXPECT_GE(thread_cpu_s(), 0);
  EXPECT_EQ(boot_id().size(), 36u);
  EXPECT_GT(process_start(getpid()), 0);
  EXPECT_GE(process_start(getpid()), process_start(getppid()));
  EXPECT_EQ(process_start(-5), 0);
}

}  // namespace
}  // namespace assay
