// assay schedule: the drawing, the JSON and the files hold what the simulation says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "assay/files.h"
#include "core/cli/schedule_view.h"
#include "tests/core/cli/command.h"

namespace assay::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;

Answer run(std::vector<std::string> words) {
  words.insert(words.begin(), "schedule");
  return assay_command(std::move(words));
}

ScheduleView view_of(const std::string& name, const PipelineShape& shape,
                     const ChunkTimes& times = {}) {
  ScheduleView view{.name = name, .shape = shape, .times = times};
  view.lists = generate(name, shape);
  view.rank_of_stage = ranks_of_stages(pipeline_schedule(name).placement, shape);
  view.line = simulate(view.lists, view.rank_of_stage, shape.microbatches, times);
  return view;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

size_t count(const std::string& text, const std::string& what) {
  size_t found = 0;
  for (size_t at = text.find(what); at != text.npos; at = text.find(what, at + 1)) ++found;
  return found;
}

TEST(Picture, OfOneBandHasARowPerRankAndAColumnPerTime) {
  EXPECT_EQ(picture_text(view_of("1f1b", {2, 1, 4}), {.width = 80}),
            "time    0         5         10\n"
            "rank 0  0 1 . . B0- 2 B1- 3 B2- . B3-\n"
            "rank 1  . 0 B0- 1 B1- 2 B2- 3 B3- . .\n");
}

TEST(Picture, NeverLeavesItsWidth) {
  for (const char* name : {"gpipe", "interleaved_1f1b", "interleaved_zb", "zbv", "dualpipev"}) {
    const PipelineShape shape{4, pipeline_schedule(name).default_chunks, 12};
    for (const int width : {80, 100, 160}) {
      for (const std::string& line :
           lines_of(picture_text(view_of(name, shape), {.width = width}))) {
        EXPECT_LE(line.size(), static_cast<size_t>(width)) << name;
      }
    }
  }
}

TEST(Picture, ShowsEveryActionOnceHoweverItIsCut) {
  const ScheduleView view = view_of("dualpipev", {3, 2, 7});
  for (const int width : {60, 97, 400}) {
    const std::string text = picture_text(view, {.width = width});
    for (size_t rank = 0; rank < view.lists.size(); ++rank) {
      for (const Span& span : view.line.ranks[rank]) {
        const auto unit = std::span(view.lists[rank]).subspan(span.index, span.size);
        const std::string label = unit_label(view, unit);
        EXPECT_EQ(count(text, " " + label + " ") + count(text, " " + label + "-") +
                      count(text, " " + label + "\n"),
                  1U)
            << label << " at width " << width << "\n"
            << text;
      }
    }
  }
}

TEST(Picture, InColourIsTheSameText) {
  for (const char* name : {"1f1b", "interleaved_zb", "dualpipev"}) {
    const PipelineShape shape{2, pipeline_schedule(name).default_chunks, 4};
    const ScheduleView view = view_of(name, shape);
    const std::string plain = picture_text(view, {});
    const std::string colored = picture_text(view, {.color = true});
    EXPECT_NE(plain, colored);
    std::string stripped = std::regex_replace(colored, std::regex("\x1b\\[[0-9;]*m"), "");
    stripped = std::regex_replace(stripped, std::regex(" +\n"), "\n");
    EXPECT_EQ(stripped, plain);
    EXPECT_TRUE(std::all_of(plain.begin(), plain.end(), [](unsigned char c) { return c < 0x80; }));
  }
}

TEST(Picture, KeepsProportionsOfUnequalTimes) {
  const ScheduleView view = view_of("1f1b", {2, 1, 2}, {.forward = 2, .input = 3, .weight = 1});
  EXPECT_EQ(picture_text(view, {.width = 80}),
            "time    0         5         10        15\n"
            "rank 0  0-- 1-- . . . . B0----- . . B1-----\n"
            "rank 1  . . 0-- B0----- 1-- B1----- . . . .\n");
}

TEST(Picture, OfTooManyColumnsIsLeftOut) {
  EXPECT_THAT(picture_text(view_of("gpipe", {2, 1, 1000}), {}),
              HasSubstr("no picture: it would have 3003 columns"));
}

TEST(Drawing, HoldsEveryActionWithItsTime) {
  const ScheduleView view = view_of("zbv", {3, 2, 6});
  const std::string svg = picture_svg(view);
  for (size_t rank = 0; rank < view.lists.size(); ++rank) {
    for (const Span& span : view.line.ranks[rank]) {
      const std::string title = "<title>" + print(view.lists[rank][span.index]) + ": " +
                                print_time(span.start) + " to " + print_time(span.end) + "</title>";
      EXPECT_EQ(count(svg, title), 1U) << title;
    }
  }
}

TEST(Drawing, IsWellFormedAndServesLightDarkAndPrint) {
  ScheduleView view = view_of("dualpipev", {4, 2, 10});
  view.name = "a<b>&c.csv";
  const std::string svg = picture_svg(view);
  EXPECT_THAT(svg, HasSubstr("a&lt;b&gt;&amp;c.csv"));
  EXPECT_THAT(svg, HasSubstr("prefers-color-scheme: dark"));
  EXPECT_THAT(svg, HasSubstr("@media print"));
  std::vector<std::string> open;
  const std::regex tag("<(/?)([a-z]+)[^>]*?(/?)>");
  for (std::sregex_iterator it(svg.begin(), svg.end(), tag), end; it != end; ++it) {
    if ((*it)[1].length() > 0) {
      ASSERT_FALSE(open.empty());
      EXPECT_EQ(open.back(), (*it)[2]);
      open.pop_back();
    } else if ((*it)[3].length() == 0) {
      open.push_back((*it)[2]);
    }
  }
  EXPECT_TRUE(open.empty());
}

TEST(ScheduleCommand, WritesJsonThatAgreesWithItself) {
  const Answer answer =
      run({"show", "dualpipev", "--pp", "2", "--microbatches", "5", "--lowered", "--json"});
  ASSERT_EQ(answer.code, 0) << answer.err;
  const json document = json::parse(answer.out);
  EXPECT_EQ(document["schedule"], "dualpipev");
  EXPECT_EQ(document["closed_form"]["makespan"], nullptr);
  EXPECT_EQ(document["closed_form"]["peak_chunks"], (std::vector<int>{5, 5}));
  EXPECT_EQ(document["rank_of_stage"], (std::vector<int>{0, 1, 1, 0}));
  double latest = 0;
  for (const json& rank : document["ranks"]) {
    double busy = 0;
    for (const json& action : rank["actions"]) {
      busy += action["end"].get<double>() - action["start"].get<double>();
      latest = std::max(latest, action["end"].get<double>());
    }
    EXPECT_EQ(busy, rank["busy"].get<double>());
    EXPECT_THAT(rank["lowered"].get<std::string>(), HasSubstr("REDUCE_GRAD"));
  }
  EXPECT_EQ(latest, document["makespan"].get<double>());
}

class ScheduleFiles : public testing::Test {
 protected:
  void SetUp() override { fs::create_directories(folder); }
  void TearDown() override { fs::remove_all(folder); }
  const fs::path folder =
      fs::temp_directory_path() / ("assay_schedule_" + std::to_string(::getpid()));
};

TEST_F(ScheduleFiles, WrittenAreReadBackAsTheSameSchedule) {
  for (const bool lowered : {false, true}) {
    const std::string csv = (folder / "z.csv").string();
    std::vector<std::string> words = {"show",           "zbv", "--pp",  "3",
                                      "--microbatches", "6",   "--csv", csv};
    if (lowered) words.push_back("--lowered");
    const Answer written = run(words);
    ASSERT_EQ(written.code, 0) << written.err;
    EXPECT_EQ(written.err, "wrote " + csv + "\n");
    const Answer known = run({"show", "zbv", "--pp", "3", "--microbatches", "6", "--json"});
    const Answer read = run({"show", csv, "--json"});
    ASSERT_EQ(read.code, 0) << read.err;
    EXPECT_EQ(json::parse(read.out)["ranks"], json::parse(known.out)["ranks"]);
    const Answer checked = run({"check", csv, "--pp", "3", "--microbatches", "6"});
    EXPECT_EQ(checked.code, 0) << checked.err;
    EXPECT_THAT(checked.out, HasSubstr(lowered ? "lowered, complete" : "compute-only, complete"));
  }
}

TEST_F(ScheduleFiles, DrawnAreSvg) {
  const fs::path svg = folder / "g.svg";
  const Answer answer =
      run({"show", "gpipe", "--pp", "2", "--microbatches", "3", "--svg", svg.string()});
  ASSERT_EQ(answer.code, 0) << answer.err;
  EXPECT_EQ(read_file(svg), picture_svg(view_of("gpipe", {2, 1, 3})));
}

TEST(Color, FollowsTheFlagAndNoColor) {
  Context context = default_context();
  const std::ostringstream elsewhere;
  EXPECT_FALSE(context.colored(elsewhere));
  ::setenv("NO_COLOR", "1", 1);
  EXPECT_FALSE(context.colored(*context.out));
  context.color = Color::always;
  EXPECT_TRUE(context.colored(elsewhere)) << "the flag is stronger than the environment";
  ::unsetenv("NO_COLOR");
}

}  // namespace
}  // namespace assay::cli
