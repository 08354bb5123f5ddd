// Formats for other programs: JUnit XML, GitHub's summary and annotations, MLflow's folders.
#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include <boost/property_tree/ptree.hpp>
#include <boost/property_tree/xml_parser.hpp>
#include <map>
#include <sstream>

#include "core/report/formats.h"
#include "core/store/reader.h"
#include "tests/core/report/sample_report.h"

namespace assay::report {
namespace {

using boost::property_tree::ptree;

class CiFormats : public testing::Test {
 protected:
  CiFormats() : model_(build_model(store::Reader(sample_.file()), {.samples = true})) {}
  SampleReport sample_;
  Model model_;
};

VerdictRow verdict(const std::string& name, const std::string& metric = "step_time") {
  return {.candidate = "float8",
          .baseline = "bf16",
          .metric = metric,
          .verdict = name,
          .reason = "not_significant",
          .change = measured(-4.5, -4.7, -4.3, 1),
          .unit = "%",
          .level = 0.995,
          .mde = "1.1",
          .used = 20};
}

ptree parse_xml(const std::string& text) {
  std::istringstream in(text);
  ptree tree;
  read_xml(in, tree);
  return tree;
}

std::string kind_of(const ptree& item) {
  for (const char* kind : {"failure", "error", "skipped"}) {
    if (item.count(kind) > 0) return kind;
  }
  return "passed";
}

TEST_F(CiFormats, JunitHasACasePerRun) {
  const ptree suite = parse_xml(junit(model_)).get_child("testsuites.testsuite");
  EXPECT_EQ(suite.get<int>("<xmlattr>.tests"), 6);
  EXPECT_EQ(suite.get<int>("<xmlattr>.failures"), 1);
  EXPECT_EQ(suite.get<int>("<xmlattr>.errors"), 0);
  EXPECT_EQ(suite.get<int>("<xmlattr>.skipped"), 2);
  std::vector<std::string> kinds;
  std::string failure;
  for (const auto& [name, item] : suite) {
    if (name != "testcase") continue;
    kinds.push_back(kind_of(item));
    failure += item.get("failure.<xmlattr>.message", "");
  }
  EXPECT_EQ(kinds, (std::vector<std::string>{"passed", "passed", "passed", "failure", "skipped",
                                             "skipped"}));
  EXPECT_NE(failure.find("threw | \"bad\" <value>"), std::string::npos) << failure;
}

TEST_F(CiFormats, JunitTellsRegressionsFromOpenQuestions) {
  const std::pair<const char*, const char*> expected[] = {
      {"FASTER", "passed"},      {"SLOWER", "failure"},    {"SAME", "passed"},
      {"UNRESOLVED", "skipped"}, {"INVALID", "error"},     {"PARITY", "passed"},
      {"NO_PARITY", "failure"},  {"NOT_SHOWN", "skipped"}, {"WORSE", "failure"}};
  for (const auto& [name, kind] : expected) {
    model_.verdicts = {verdict(name)};
    const ptree suites = parse_xml(junit(model_)).get_child("testsuites");
    const ptree& first = suites.find("testsuite")->second;
    EXPECT_EQ(first.get<std::string>("<xmlattr>.name"), "layouts.verdicts");
    EXPECT_EQ(kind_of(first.get_child("testcase")), kind) << name;
  }
}

TEST_F(CiFormats, JunitIsXmlWhateverAPluginSaid) {
  model_.runs[3].reason = "bad \x01\x1b[31m & <tag> ]]> \"quoted\"";
  const ptree suite = parse_xml(junit(model_)).get_child("testsuites.testsuite");
  EXPECT_EQ(suite.get<int>("<xmlattr>.tests"), 6);
}

TEST_F(CiFormats, AnnotationsAreFewEscapedAndErrorsFirst) {
  const auto lines = github_annotations(model_);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_TRUE(lines[0].starts_with("::error::float8: FAIL: optim/lion")) << lines[0];
  EXPECT_TRUE(lines[1].starts_with("::warning::float8-tp2: OOM")) << lines[1];
  model_.reasons[0] = "100 %\nnext";
  EXPECT_TRUE(github_annotations(model_)[0].ends_with("100 %25%0Anext"));
  model_.verdicts.assign(30, verdict("SLOWER"));
  const auto many = github_annotations(model_);
  ASSERT_EQ(many.size(), 10u);
  EXPECT_EQ(many.back(), "::warning::23 more are in the summary");
}

TEST_F(CiFormats, TheSummaryMayBeLongerThanAComment) {
  const RunRow run = model_.runs[0];
  for (int i = 0; i < 3000; ++i) model_.runs.push_back(run);
  EXPECT_LT(markdown(model_).size(), 65000u);
  EXPECT_GT(github_summary(model_).size(), 65000u);
  for (int i = 0; i < 20000; ++i) model_.runs.push_back(run);
  EXPECT_LT(github_summary(model_).size(), size_t{1} << 20);
}

TEST_F(CiFormats, MlflowLayoutHasAllFiguresInFullPrecision) {
  std::map<std::string, std::string> files;
  for (const ReportFile& file : mlflow(model_, "/there/mlruns")) files[file.path] = file.content;
  const std::string experiment = files.begin()->first.substr(0, 18);
  EXPECT_EQ(experiment.find_first_not_of("0123456789"), std::string::npos) << experiment;
  const YAML::Node meta = YAML::Load(files.at(experiment + "/meta.yaml"));
  EXPECT_EQ(meta["name"].as<std::string>(), "layouts");
  EXPECT_EQ(meta["experiment_id"].as<std::string>(), experiment);
  EXPECT_EQ(meta["lifecycle_stage"].as<std::string>(), "active");
  size_t runs = 0;
  for (const auto& [path, text] : files) {
    if (!path.ends_with("/meta.yaml") || path == experiment + "/meta.yaml") continue;
    ++runs;
    const YAML::Node run = YAML::Load(text);
    const std::string id = run["run_id"].as<std::string>();
    const std::string folder = experiment + "/" + id;
    EXPECT_EQ(path, folder + "/meta.yaml");
    EXPECT_EQ(id.size(), 32u);
    const RunRow& row = model_.runs.at(std::stoul(files.at(folder + "/tags/assay.run_id")) - 1);
    const int status = row.state == "ok" ? 3 : row.state == "queued" ? 2 : 4;
    EXPECT_EQ(run["status"].as<int>(), status) << row.state;
    for (const auto& [name, figure] : row.figures) {
      std::istringstream line(files.at(folder + "/metrics/" + name));
      std::string ms, value, step;
      line >> ms >> value >> step;
      if (figure.value)
        EXPECT_EQ(std::stod(value), *figure.value) << name;
      else
        EXPECT_EQ(value, figure.nonfinite);
    }
    EXPECT_EQ(files.at(folder + "/params/model.name"), "llama3");
    for (const char* needed : {"artifacts", "metrics", "params"}) {
      EXPECT_TRUE(files.contains(folder + "/" + needed + "/")) << row.state;
    }
  }
  EXPECT_EQ(runs, model_.runs.size());
}

TEST_F(CiFormats, MlflowNamesHaveOnlyCharactersThatItAccepts) {
  model_.runs[0].figures.emplace_back("op_s.Node<assay::(anonymous namespace)::F>",
                                      Figure{.value = 1.5});
  model_.runs[0].figures.emplace_back("op_s.Node(assay::<anonymous namespace>::F)",
                                      Figure{.value = 2.5});
  std::string names;
  for (const ReportFile& file : mlflow(model_, "/there")) names += file.path;
  EXPECT_EQ(names.find_first_of("<>()"), std::string::npos);
  EXPECT_NE(names.find("op_s.Node_assay::_anonymous namespace_::F_"), std::string::npos);
  EXPECT_NE(names.find("op_s.Node_assay::_anonymous namespace_::F__"), std::string::npos);
}

}  // namespace
}  // namespace assay::report
