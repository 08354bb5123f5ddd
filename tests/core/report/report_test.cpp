// One model, four formats: every format is read back and every value compared.
#include <csv.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <sstream>

#include "assay/error.h"
#include "core/base/files.h"
#include "core/report/formats.h"
#include "core/store/reader.h"
#include "tests/core/report/sample_report.h"

namespace assay::report {
namespace {

using Lines = std::vector<std::vector<std::string>>;

Lines parse_csv(const std::string& text) {
  struct State {
    Lines lines{{}};
  } state;
  csv_parser parser{};
  csv_init(&parser, 0);
  const auto field = [](void* data, size_t size, void* out) {
    static_cast<State*>(out)->lines.back().emplace_back(static_cast<const char*>(data), size);
  };
  const auto row = [](int, void* out) { static_cast<State*>(out)->lines.emplace_back(); };
  csv_parse(&parser, text.data(), text.size(), field, row, &state);
  csv_fini(&parser, field, row, &state);
  csv_free(&parser);
  state.lines.pop_back();
  return state.lines;
}

/// The cells of the Markdown table whose header starts with `first`.
Lines parse_markdown(const std::string& text, const std::string& first) {
  Lines lines;
  bool inside = false;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("| " + first + " |")) inside = true;
    if (inside && !line.starts_with("|")) break;
    if (!inside) continue;
    auto& cells = lines.emplace_back();
    std::string cell;
    for (size_t i = 1; i < line.size(); ++i) {
      if (line[i] == '\\' && i + 1 < line.size())
        cell += line[++i];
      else if (line[i] == '|')
        cells.push_back(std::exchange(cell, ""));
      else
        cell += line[i];
    }
    for (std::string& c : cells) {
      const size_t begin = c.find_first_not_of(' ');
      c = begin == c.npos ? "" : c.substr(begin, c.find_last_not_of(' ') - begin + 1);
    }
  }
  return lines;
}

/// The table of the terminal: columns end at two spaces or more.
Lines parse_terminal(const std::string& text) {
  Lines lines;
  std::istringstream in(text);
  bool inside = false;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("recipe ")) inside = true;
    if (inside && (line.empty() || line.starts_with("1) "))) break;
    if (!inside) continue;
    auto& cells = lines.emplace_back();
    for (size_t at = 0; at < line.size();) {
      const size_t end = std::min(line.find("  ", at), line.size());
      cells.push_back(line.substr(at, end - at));
      at = std::min(line.find_first_not_of(' ', end), line.size());
    }
  }
  return lines;
}

std::string shown(const Figure& f) {
  if (f.display_low.empty() || f.low == f.high) return f.display;
  return f.display + " [" + f.display_low + ", " + f.display_high + "]";
}

class ReportTest : public testing::Test {
 protected:
  Model model(ModelRequest request = {}) {
    return build_model(store::Reader(sample_.file()), request);
  }
  SampleReport sample_;
};

TEST_F(ReportTest, GroupsRunsToRecipesWithStates) {
  const Model m = model();
  ASSERT_EQ(m.rows.size(), 3u);
  EXPECT_EQ(m.rows[0].label, "bf16");
  EXPECT_TRUE(m.rows[0].baseline);
  EXPECT_EQ(m.rows[0].state, "ok");
  EXPECT_EQ(m.rows[1].state, "1/2 ok, FAIL");
  EXPECT_EQ(m.rows[2].state, "queued");
  EXPECT_EQ(m.rows[0].figures[0].runs.size(), 2u);
  EXPECT_LT(*m.rows[0].figures[0].low, *m.rows[0].figures[0].high);
  EXPECT_EQ(m.rows[2].figures[0].state, FigureState::failed);
  ASSERT_EQ(m.reasons.size(), 2u);
  EXPECT_NE(m.reasons[0].find("FAIL: optim/lion"), std::string::npos);
  EXPECT_NE(m.reasons[1].find("OOM: out of memory in backward"), std::string::npos);
  EXPECT_NE(m.reasons[1].find("assay log "), std::string::npos);
}

TEST_F(ReportTest, TheBaselineStandsFirst) {
  const Model m = model({.baseline = "float8"});
  EXPECT_EQ(m.rows[0].label, "float8");
  EXPECT_EQ(m.rows[1].label, "bf16");
  EXPECT_EQ(m.rows[0].footnote, 1);
  try {
    model({.baseline = "flaot8"});
    FAIL() << "an unknown baseline was taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.hint(), "did you mean 'float8'?");
  }
}

TEST_F(ReportTest, OnlyDifferingKeysUnlessAsked) {
  EXPECT_EQ(model().keys, (std::vector<std::string>{"mesh.tp", "precision.name"}));
  EXPECT_GT(model({.all_keys = true}).keys.size(), 10u);
}

TEST_F(ReportTest, MetricsCanBeAdded) {
  const Model m = model({.metrics = {"step_p90_s", "odd_ratio"}});
  EXPECT_EQ(m.columns.size(), 7u);
  EXPECT_EQ(m.rows[1].figures[6].nonfinite, "nan");
  EXPECT_THROW(model({.metrics = {"step_p99_s"}}), Error);
}

TEST_F(ReportTest, VirtualTimeHasAColumnOfItsOwnAndSaysThatItIsEmulated) {
  EXPECT_EQ(terminal(model(), {}).find("emulated"), std::string::npos);
  const auto bf16 = sample_.sample().store.query(
      "SELECT attempt_id FROM attempts JOIN runs USING(run_id) JOIN study_cells USING(cell_id)"
      " WHERE slug='bf16' AND attempts.state='ok' ORDER BY attempt_id");
  const store::Metric step{
      .name = "virtual_step_s", .value = 0.25, .unit = "s", .formula_id = "virtual.v1"};
  sample_.sample().store.put_metrics(*store::integer(bf16.rows.at(0)[0]), {&step, 1});
  const Model m = model();
  EXPECT_EQ(heading(m.columns.back()), "virtual step, emulated (ms)");
  EXPECT_EQ(m.rows[0].figures.back().display, "250.0");
  EXPECT_EQ(m.rows[1].figures.back().state, FigureState::not_measured);
  for (const std::string& text : {terminal(m, {.width = 1000}), markdown(m), html(m)}) {
    EXPECT_NE(text.find("virtual step, emulated"), std::string::npos);
    EXPECT_NE(text.find("under thread-CPU time"), std::string::npos);
  }
}

TEST_F(ReportTest, SaysWhatWasLeftOutAndRepeated) {
  const Model m = model();
  std::string notes;
  for (const std::string& note : m.footnotes) notes += note + "\n";
  EXPECT_NE(notes.find("differs: mesh.tp, precision.name"), std::string::npos) << notes;
  EXPECT_NE(notes.find("used 84 of 120 train steps (36 warm-up"), std::string::npos) << notes;
  EXPECT_NE(notes.find("(2 attempts)"), std::string::npos) << notes;
  EXPECT_NE(notes.find("1 R-TPHEADS"), std::string::npos) << notes;
  EXPECT_NE(notes.find("tps.p50.v1"), std::string::npos) << notes;
}

TEST_F(ReportTest, TheSentenceHasRangesAndNoJudgement) {
  const Model m = model();
  EXPECT_NE(m.sentence.find("Measured over 3 of 6 runs: tokens/s from "), std::string::npos)
      << m.sentence;
  EXPECT_NE(m.sentence.find("(bf16) to"), std::string::npos);
  for (const char* word : {"better", "faster", "wins"}) {
    EXPECT_EQ(m.sentence.find(word), std::string::npos) << word;
  }
  EXPECT_NE(m.verdict.find("No verdict was asked for"), std::string::npos);
  EXPECT_EQ(m.verdict_command, "assay compare layouts --pairs 20");
}

TEST_F(ReportTest, EveryFormatHasTheSameValues) {
  const Model m = model({.metrics = {"odd_ratio"}, .samples = true});
  const auto document = nlohmann::json::parse(json(m).dump());
  const Lines csv_lines = parse_csv(csv(m));
  const Lines md = parse_markdown(markdown(m), "recipe");
  const Lines md_runs = parse_markdown(markdown(m), "run");
  const Lines table = parse_terminal(terminal(m, {.width = 200}));
  ASSERT_EQ(md.size(), m.rows.size() + 2);
  ASSERT_EQ(table.size(), m.rows.size() + 1);
  ASSERT_EQ(csv_lines.size(), m.runs.size() + 1);
  ASSERT_EQ(md_runs.size(), m.runs.size() + 2);
  const size_t before = 1 + m.keys.size();
  for (size_t r = 0; r < m.rows.size(); ++r) {
    const Row& row = m.rows[r];
    const auto& in_json = document["rows"][r];
    EXPECT_EQ(in_json["state"], row.state);
    for (size_t c = 0; c < m.columns.size(); ++c) {
      const Figure& figure = row.figures[c];
      EXPECT_EQ(md[r + 2][before + c], shown(figure));
      EXPECT_EQ(table[r + 1][before + c], shown(figure));
      const auto& value = in_json["figures"][m.columns[c].name];
      EXPECT_EQ(value["display"], figure.display);
      EXPECT_EQ(value["value"], figure.value ? nlohmann::json(*figure.value) : nlohmann::json());
      EXPECT_EQ(value.value("nonfinite", ""), figure.nonfinite);
    }
    for (size_t k = 0; k < m.keys.size(); ++k) {
      EXPECT_EQ(md[r + 2][1 + k], row.keys[k]);
      EXPECT_EQ(table[r + 1][1 + k], row.keys[k]);
    }
  }
  for (size_t r = 0; r < m.runs.size(); ++r) {
    const RunRow& run = m.runs[r];
    const auto& in_json = document["runs"][r];
    const auto field = [&](const std::string& name) {
      const auto found = std::find(csv_lines[0].begin(), csv_lines[0].end(), name);
      EXPECT_NE(found, csv_lines[0].end()) << name;
      return csv_lines[r + 1][static_cast<size_t>(found - csv_lines[0].begin())];
    };
    EXPECT_EQ(field("run_id"), std::to_string(run.run_id));
    EXPECT_EQ(field("state"), run.state);
    EXPECT_EQ(field("reason"), run.reason);
    EXPECT_EQ(md_runs[r + 2][0], std::to_string(run.run_id));
    for (const Column& column : known_columns()) {
      const Figure* figure = run.figure(column.name);
      const std::string text = field(column.csv);
      if (figure == nullptr) {
        EXPECT_EQ(text, "") << column.csv;
        EXPECT_FALSE(in_json["metrics"].contains(column.name));
        continue;
      }
      EXPECT_EQ(std::stod(text), *figure->value) << column.csv;
      EXPECT_EQ(in_json["metrics"][column.name]["value"].get<double>(), *figure->value);
    }
    if (const Figure* odd = run.figure("odd_ratio")) {
      EXPECT_EQ(field("odd_ratio"), odd->nonfinite);
      EXPECT_TRUE(in_json["metrics"]["odd_ratio"]["value"].is_null());
    }
  }
}

TEST_F(ReportTest, JsonHasRawSamples) {
  const auto document = json(model({.samples = true}));
  EXPECT_EQ(document["schema_version"], 1);
  EXPECT_EQ(document["runs"][0]["steps"]["wall_s"].size(), 41u);
  EXPECT_EQ(document["runs"][0]["steps"]["loss"][40].get<double>(), 3.25);
  EXPECT_TRUE(document["verdict"].is_null());
}

TEST_F(ReportTest, FailedCellsShowNoNumber) {
  const std::string table = terminal(model(), {.width = 200});
  const Lines rows = parse_terminal(table);
  for (size_t c = 3; c + 1 < rows[3].size(); ++c) EXPECT_EQ(rows[3][c], "-");
  EXPECT_NE(table.find("2) OOM: out of memory"), std::string::npos) << table;
}

TEST_F(ReportTest, NarrowTerminalsLoseKeyColumnsFirst) {
  const Model m = model();
  const auto widest = [](const std::string& text) {
    size_t width = 0;
    for (const auto& line : parse_terminal(text)) width = std::max(width, line.size());
    return width;
  };
  EXPECT_EQ(widest(terminal(m, {.width = 200})), 3 + m.columns.size() + 1);
  EXPECT_EQ(widest(terminal(m, {.width = 60})), 1 + m.columns.size() + 1);
  EXPECT_EQ(terminal(m).find('\x1b'), std::string::npos);
  EXPECT_NE(terminal(m, {.color = true}).find('\x1b'), std::string::npos);
}

TEST_F(ReportTest, MarkdownEscapesAndFitsAComment) {
  const std::string page = markdown(model());
  EXPECT_NE(page.find("threw \\| \"bad\" &lt;value&gt;"), std::string::npos) << page;
  Model huge = model();
  const RunRow run = huge.runs[0];
  for (int i = 0; i < 3000; ++i) huge.runs.push_back(run);
  const std::string cut = markdown(huge);
  EXPECT_LT(cut.size(), 65000u);
  EXPECT_NE(cut.find("more lines were cut"), std::string::npos);
}

/// What differs between machines and days.
std::string masked(std::string text, const std::string& database) {
  for (size_t at; (at = text.find(database)) != text.npos;)
    text.replace(at, database.size(), "<db>");
  return std::regex_replace(text, std::regex(R"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC)"), "<time>");
}

TEST_F(ReportTest, GoldenTexts) {
  const auto folder = std::filesystem::path(ASSAY_TEST_DATA) / "report";
  const std::string database = sample_.file().string();
  const Model m = model();
  const std::pair<const char*, std::string> texts[] = {
      {"compare.txt", masked(terminal(m, {.width = 120}), database)},
      {"report.md", masked(markdown(m), database)},
      {"report.json", masked(json(m).dump(1) + "\n", database)}};
  for (const auto& [name, text] : texts) {
    // startup_s compares a fixed step with the clock of this test; everything else is fixed.
    const std::regex clock(R"re("startup_s": \{[^}]*\})re");
    const std::string stable = std::regex_replace(text, clock, R"("startup_s": {})");
    if (std::getenv("ASSAY_UPDATE_CASES") != nullptr) write_file_atomically(folder / name, stable);
    EXPECT_EQ(stable, read_file(folder / name)) << name;
  }
}

TEST(EmptyReport, APlannedStudyHasRowsWithoutNumbers) {
  store::TempFolder folder;
  store::Store store(folder / "a.db");
  store.add_study(store::sample_study());
  const Model m = build_model(store::Reader(folder / "a.db"), {});
  ASSERT_EQ(m.rows.size(), 3u);
  EXPECT_EQ(m.rows[0].state, "queued");
  EXPECT_NE(m.sentence.find("Nothing was measured yet"), std::string::npos);
  EXPECT_FALSE(terminal(m).empty());
  EXPECT_EQ(parse_csv(csv(m)).size(), 1u);
}

}  // namespace
}  // namespace assay::report
