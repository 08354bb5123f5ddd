// The page: the model's figures, every reason, well-formed pictures, no network, bounded size.
#include <gtest/gtest.h>

#include <boost/property_tree/ptree.hpp>
#include <boost/property_tree/xml_parser.hpp>
#include <regex>
#include <sstream>

#include "core/report/chart.h"
#include "core/report/formats.h"
#include "core/store/reader.h"
#include "tests/core/report/large_study.h"
#include "tests/core/report/sample_report.h"

namespace assay::report {
namespace {

using Lines = std::vector<std::vector<std::string>>;
using boost::property_tree::ptree;

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != text.npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
  return text;
}

std::string unescaped(std::string text) {
  text = replaced(text, "<small>", " ");
  text = std::regex_replace(text, std::regex("<[^>]*>"), "");
  for (const auto& [from, to] :
       {std::pair("&lt;", "<"), {"&gt;", ">"}, {"&quot;", "\""}, {"&amp;", "&"}}) {
    text = replaced(text, from, to);
  }
  return text;
}

/// Cells of the body of the table with this id.
Lines table_of(const std::string& page, const std::string& id) {
  const size_t table = page.find("<table id=\"" + id + "\">");
  const size_t begin = page.find("<tbody>", table), end = page.find("</tbody>", begin);
  std::istringstream body(page.substr(begin, end - begin));
  const std::regex cell("<t[hd][^>]*>(.*?)</t[hd]>");
  Lines lines;
  for (std::string line; std::getline(body, line);) {
    if (!line.starts_with("<tr")) continue;
    auto& cells = lines.emplace_back();
    for (std::sregex_iterator i(line.begin(), line.end(), cell), last; i != last; ++i) {
      cells.push_back(unescaped((*i)[1]));
    }
  }
  return lines;
}

std::vector<std::string> pictures_of(const std::string& page) {
  std::vector<std::string> pictures;
  for (size_t at = 0; (at = page.find("<svg viewBox", at)) != page.npos; ++at) {
    size_t end = at, depth = 0;
    do {  // a clip is a picture inside of another
      const size_t open = page.find("<svg ", end), close = page.find("</svg>", end);
      if (open < close) {
        ++depth;
        end = open + 5;
      } else {
        --depth;
        end = close + 6;
      }
    } while (depth > 0);
    pictures.push_back(page.substr(at, end - at));
    at = end;
  }
  return pictures;
}

class HtmlTest : public testing::Test {
 protected:
  Model model(ModelRequest request = {.samples = true}) {
    return build_model(store::Reader(sample_.file()), request);
  }
  SampleReport sample_;
};

TEST_F(HtmlTest, TablesHaveTheFiguresOfTheModel) {
  const Model m = model({.metrics = {"odd_ratio"}, .samples = true});
  const std::string page = html(m);
  const Lines rows = table_of(page, "recipes"), runs = table_of(page, "runs");
  ASSERT_EQ(rows.size(), m.rows.size());
  for (size_t r = 0; r < rows.size(); ++r) {
    ASSERT_EQ(rows[r].size(), 1 + m.keys.size() + m.columns.size() + 1);
    EXPECT_EQ(rows[r][0], m.rows[r].label);
    for (size_t k = 0; k < m.keys.size(); ++k) EXPECT_EQ(rows[r][1 + k], m.rows[r].keys[k]);
    for (size_t c = 0; c < m.columns.size(); ++c) {
      EXPECT_EQ(rows[r][1 + m.keys.size() + c], with_range(m.rows[r].figures[c]));
    }
  }
  ASSERT_EQ(runs.size(), m.runs.size());
  for (size_t r = 0; r < runs.size(); ++r) {
    EXPECT_EQ(runs[r][0], std::to_string(m.runs[r].run_id));
    for (size_t c = 0; c < m.columns.size(); ++c) {
      const Figure* figure = m.runs[r].figure(m.columns[c].name);
      EXPECT_EQ(runs[r][6 + c], figure ? figure->display : "-");
    }
  }
}

TEST_F(HtmlTest, EveryReasonIsThereAndEscaped) {
  const std::string page = html(model());
  EXPECT_NE(page.find("threw | &quot;bad&quot; &lt;value&gt;"), std::string::npos);
  EXPECT_NE(page.find("OOM: out of memory in backward"), std::string::npos);
  EXPECT_NE(page.find("R-TPHEADS"), std::string::npos);
}

TEST_F(HtmlTest, NeedsNoNetworkAndNoScript) {
  const std::string page = html(model());
  for (const char* word : {"http:", "https:", "<script", "<link", "src=", "url(", "@import"}) {
    EXPECT_EQ(page.find(word), std::string::npos) << word;
  }
  EXPECT_TRUE(page.starts_with("<!DOCTYPE html>"));
  EXPECT_NE(page.find("prefers-color-scheme: dark"), std::string::npos);
  EXPECT_NE(page.find("@media print"), std::string::npos);
}

TEST_F(HtmlTest, AVerdictLeadsAndItsLabelsStandBesideIt) {
  Model m = model();
  m.verdicts = {{.candidate = "float8",
                 .baseline = "bf16",
                 .metric = "step_time",
                 .verdict = "FASTER",
                 .change = measured(-4.5, -4.7, -4.3, 1),
                 .unit = "%",
                 .level = 0.995,
                 .used = 20,
                 .labels = {"L05 allowed: short run"},
                 .pairs = {{.index = 0, .change_pct = -4.4},
                           {.index = 1, .baseline_first = false, .change_pct = -4.6},
                           {.index = 2, .change_pct = 3, .discarded = true}}}};
  const std::string page = html(m);
  EXPECT_NE(page.find("FASTER, -4.50 % (99.5 % CI -4.70 to -4.30, n = 20)"), std::string::npos);
  EXPECT_NE(page.find("<span class=\"label\">L05 allowed: short run</span>"), std::string::npos);
  EXPECT_EQ(page.find("No verdict was asked for"), std::string::npos);
  EXPECT_NE(page.find("pair 2 (AB): +3 %, discarded"), std::string::npos);
  EXPECT_NE(markdown(m).find("FASTER, -4.50 %"), std::string::npos);
}

TEST(EmptyPage, APlannedStudyHasATableAndNoPictures) {
  store::TempFolder folder;
  store::Store store(folder / "a.db");
  store.add_study(store::sample_study());
  const std::string page = html(build_model(store::Reader(folder / "a.db"), {.samples = true}));
  EXPECT_EQ(table_of(page, "recipes").size(), 3u);
  EXPECT_TRUE(pictures_of(page).empty());
}

class LargePage : public testing::Test {
 protected:
  Model model(const LargeStudyShape& shape) {
    const LargeStudy study(folder_ / "a.db", shape);
    return build_model(store::Reader(folder_ / "a.db"), {.samples = true});
  }
  store::TempFolder folder_;
};

TEST_F(LargePage, PicturesAreWellFormedAndInsideTheirFrame) {
  const Model m = model({.seeds = 5});
  const auto pictures = pictures_of(html(m));
  ASSERT_GE(pictures.size(), 10u);
  for (const std::string& picture : pictures) {
    std::istringstream in(picture);
    ptree tree;
    ASSERT_NO_THROW(read_xml(in, tree)) << picture.substr(0, 200);
    std::istringstream box(tree.get<std::string>("svg.<xmlattr>.viewBox"));
    double x, y, width, height;
    box >> x >> y >> width >> height;
    for (const auto& [name, mark] : tree.get_child("svg")) {
      if (name == "circle" || name == "rect" || name == "text") {
        const char* key = name == "circle" ? "<xmlattr>.cx" : "<xmlattr>.x";
        const auto at = mark.get<double>(key);
        EXPECT_GE(at, -0.5) << name;
        EXPECT_LE(at, width + 0.5) << name;
      }
    }
    EXPECT_EQ(picture.find("nan"), std::string::npos);
    EXPECT_EQ(picture.find("inf"), std::string::npos);
  }
}

TEST_F(LargePage, EveryQuestionHasItsPicture) {
  const Model m = model({.seeds = 5});
  EXPECT_TRUE(throughput_chart(m));
  EXPECT_TRUE(final_loss_chart(m));
  EXPECT_TRUE(memory_chart(m));
  EXPECT_TRUE(traffic_chart(m));
  EXPECT_TRUE(pair_charts(m).empty());
  const auto losses = loss_charts(m);
  ASSERT_EQ(losses.size(), 3u);
  EXPECT_EQ(losses[0].title, "Validation loss over tokens");
  EXPECT_NE(losses[0].subtitle.find("95 % simultaneous band over 5 seeds"), std::string::npos);
  EXPECT_NE(losses[0].svg.find("class=\"band"), std::string::npos);
  EXPECT_EQ(losses[1].title, "Validation loss over training time");
  EXPECT_EQ(losses[2].title, "Validation loss minus that of opt0_tp1_keep0");
  const auto pareto = pareto_chart(m);
  ASSERT_TRUE(pareto);
  EXPECT_NE(pareto->svg.find("class=\"front\""), std::string::npos);
  EXPECT_NE(pareto->svg.find("OOM, out of memory in backward"), std::string::npos);
}

TEST_F(LargePage, TheMatrixNamesEveryHole) {
  const Model m = model({});
  EXPECT_EQ(m.axes, (std::vector<std::string>{"optim", "layout", "memory"}));
  ASSERT_EQ(m.holes.size(), 2u);
  EXPECT_EQ(m.holes[0].labels, (std::vector<std::string>{"opt0", "tp3", "keep1"}));
  const auto maps = matrix_charts(m);
  ASSERT_EQ(maps.size(), 3u);
  size_t refused = 0;
  for (size_t at = 0; (at = maps[0].svg.find(">R-TPHEADS<", at)) != std::string::npos; ++at) {
    ++refused;
  }
  EXPECT_EQ(refused, 2u);
  EXPECT_NE(maps[0].svg.find(">OOM<"), std::string::npos);
  EXPECT_NE(maps[0].svg.find("opt0_tp3_keep1: 2 heads do not divide by tp 3"), std::string::npos);
  ASSERT_EQ(maps[0].notes.size(), 1u);
  EXPECT_EQ(maps[0].notes[0],
            "R-TPHEADS: 2 heads do not divide by tp 3 (opt0_tp3_keep1, opt1_tp3_keep1)");
}

TEST_F(LargePage, AThousandCellsStayUnderFiveMegabytes) {
  const Model m = model({.optimizers = 10, .layouts = 10, .policies = 10});
  ASSERT_EQ(m.rows.size() + m.holes.size(), 1000u);
  const std::string page = html(m);
  EXPECT_LT(page.size(), 5'000'000u);
  EXPECT_EQ(table_of(page, "recipes").size(), m.rows.size());
}

}  // namespace
}  // namespace assay::report
