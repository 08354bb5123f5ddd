// TensorBoard records, read back by a reader of their own: lengths, checksums, fields.
#include "core/report/event_file.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <map>

#include "core/base/files.h"
#include "core/report/formats.h"
#include "core/store/reader.h"
#include "tests/core/report/sample_report.h"

namespace assay::report {
namespace {

template <class T>
T take(const std::string& bytes, size_t& at) {
  T value{};
  std::memcpy(&value, bytes.data() + at, sizeof value);
  at += sizeof value;
  return value;
}

/// Payloads of the records; fails on a wrong checksum or a torn end.
std::vector<std::string> records_of(const std::string& bytes) {
  std::vector<std::string> records;
  for (size_t at = 0; at < bytes.size();) {
    const std::string length_bytes = bytes.substr(at, 8);
    const auto length = take<uint64_t>(bytes, at);
    EXPECT_EQ(take<uint32_t>(bytes, at), masked_crc(length_bytes));
    records.push_back(bytes.substr(at, length));
    at += length;
    EXPECT_EQ(take<uint32_t>(bytes, at), masked_crc(records.back()));
  }
  return records;
}

struct Scalar {
  double wall_time = 0;
  int64_t step = 0;
  std::string version{}, tag{};
  float value = 0;
};

/// The fields that scalars use; a field of another kind fails.
void read_message(const std::string& bytes, Scalar& out, int depth = 0) {
  for (size_t at = 0; at < bytes.size();) {
    const auto key = static_cast<unsigned char>(bytes[at++]);
    const int field = key >> 3, type = key & 7;
    if (type == 1) {
      out.wall_time = take<double>(bytes, at);
    } else if (type == 5) {
      out.value = take<float>(bytes, at);
    } else {
      uint64_t number = 0;
      for (int shift = 0;; shift += 7) {
        const auto byte = static_cast<unsigned char>(bytes.at(at++));
        number |= uint64_t{byte & 0x7Fu} << shift;
        if (byte < 0x80) break;
      }
      if (type == 0) {
        out.step = static_cast<int64_t>(number);
        continue;
      }
      ASSERT_EQ(type, 2);
      const std::string inner = bytes.substr(at, number);
      at += number;
      if (depth == 0 && field == 3)
        out.version = inner;
      else if (depth == 2 && field == 1)
        out.tag = inner;
      else
        read_message(inner, out, depth + 1);
    }
  }
}

TEST(EventFile, MaskedChecksumOfTheKnownVector) {
  EXPECT_EQ(crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(masked_crc("123456789"), 0xc78ab0e5u);
}

TEST(EventFile, StartsWithItsVersionAndKeepsScalars) {
  EventFile file(1.5);
  file.add(2.5, 300, "train/loss", 0.1);
  file.add(3.5, 301, "train/loss", std::nan(""));
  const auto records = records_of(file.bytes());
  ASSERT_EQ(records.size(), 3u);
  Scalar version, scalar, odd;
  read_message(records[0], version);
  EXPECT_EQ(version.version, "brain.Event:2");
  EXPECT_EQ(version.wall_time, 1.5);
  read_message(records[1], scalar);
  EXPECT_EQ(scalar.tag, "train/loss");
  EXPECT_EQ(scalar.step, 300);
  EXPECT_EQ(scalar.wall_time, 2.5);
  EXPECT_EQ(scalar.value, 0.1f);
  read_message(records[2], odd);
  EXPECT_TRUE(std::isnan(odd.value));
}

TEST(TensorBoard, HasEveryStepAndFigureOfEveryRun) {
  SampleReport sample;
  const Model model = build_model(store::Reader(sample.file()), {.samples = true});
  const auto files = tensorboard(model);
  ASSERT_EQ(files.size(), 3u);  // runs with steps
  EXPECT_TRUE(files[0].path.starts_with("bf16/run1/events.out.tfevents.")) << files[0].path;
  EXPECT_TRUE(files[0].path.ends_with(".bench1"));
  std::map<std::string, std::map<int64_t, float>> series;
  for (const std::string& record : records_of(files[0].content)) {
    Scalar scalar;
    read_message(record, scalar);
    series[scalar.tag][scalar.step] = scalar.value;
  }
  const RunRow& run = model.runs[0];
  EXPECT_EQ(series["train/loss"].size(), 40u);
  for (const StepSample& step : run.steps) {
    const char* tag = step.kind == "eval" ? "validation/loss" : "train/loss";
    EXPECT_EQ(series[tag][step.step], static_cast<float>(*step.loss)) << step.step;
  }
  for (const auto& [name, figure] : run.figures) {
    ASSERT_EQ(series["figure/" + name].size(), figure.value ? 1u : 0u) << name;
    if (figure.value) {
      EXPECT_EQ(series["figure/" + name].begin()->second, static_cast<float>(*figure.value));
    }
  }
}

}  // namespace
}  // namespace assay::report
