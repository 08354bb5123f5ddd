// JUnit XML: one test case per recipe, and one per comparison and metric.
#include <fmt/format.h>

#include <boost/property_tree/ptree.hpp>
#include <boost/property_tree/xml_parser.hpp>
#include <sstream>

#include "core/report/formats.h"
#include "core/report/verdicts.h"

namespace assay::report {
namespace {

using boost::property_tree::ptree;

enum class Outcome { passed, failure, error, skipped };

struct Case {
  std::string name{};
  Outcome outcome = Outcome::passed;
  std::string message{};
};

/// XML 1.0 has no place for control characters, and write_xml() would pass them.
std::string printable(std::string text) {
  for (char& c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte < 0x20 && c != '\n' && c != '\t') || byte == 0x7F) c = ' ';
  }
  return text;
}

/// Out of memory is a result, not a broken test; what did not run is skipped.
Outcome outcome_of(const std::string& state) {
  if (state == "ok") return Outcome::passed;
  if (state == "fail" || state == "timeout" || state == "invalid") return Outcome::failure;
  if (state == "infra" || state == "killed") return Outcome::error;
  return Outcome::skipped;
}

std::string message_of(const RunRow& run) {
  const std::string reason = run.reason.empty() ? "no reason was recorded" : run.reason;
  return fmt::format("{}: {} (assay log {})", run.state, reason, run.run_id);
}

Case case_of(const Model& model, const RunRow& run) {
  Case result{.name = fmt::format("{} run {}", run.slug, run.slot),
              .outcome = outcome_of(run.state)};
  if (result.outcome != Outcome::passed) result.message = message_of(run);
  for (const Column& column : model.columns) {
    const Figure* figure = run.figure(column.name);
    if (result.outcome != Outcome::passed || figure == nullptr) continue;
    result.message += fmt::format("{}{} {}", result.message.empty() ? "" : "\n", heading(column),
                                  figure->display);
  }
  return result;
}

Case case_of(const VerdictRow& row) {
  Case result{.name = fmt::format("{} against {}: {}", row.candidate, row.baseline, row.metric),
              .message = verdict_sentence(row)};
  const std::string& v = row.verdict;
  if (v == "SLOWER" || v == "WORSE" || v == "NO_PARITY") result.outcome = Outcome::failure;
  if (v == "UNRESOLVED" || v == "NOT_SHOWN") result.outcome = Outcome::skipped;
  if (v == "INVALID") result.outcome = Outcome::error;
  return result;
}

const char* element_of(Outcome outcome) {
  return outcome == Outcome::failure ? "failure" : outcome == Outcome::error ? "error" : "skipped";
}

ptree case_tree(const std::string& suite, const Case& item) {
  ptree tree;
  tree.put("<xmlattr>.classname", printable(suite));
  tree.put("<xmlattr>.name", printable(item.name));
  if (item.outcome == Outcome::passed) {
    if (!item.message.empty()) tree.put("system-out", printable(item.message));
    return tree;
  }
  ptree inside;
  inside.put("<xmlattr>.message", printable(item.message));
  tree.add_child(element_of(item.outcome), inside);
  return tree;
}

void add_suite(ptree& suites, const std::string& name, const std::vector<Case>& cases) {
  if (cases.empty()) return;
  size_t counts[4] = {};
  for (const Case& item : cases) ++counts[static_cast<size_t>(item.outcome)];
  ptree suite;
  suite.put("<xmlattr>.name", printable(name));
  suite.put("<xmlattr>.tests", cases.size());
  suite.put("<xmlattr>.failures", counts[static_cast<size_t>(Outcome::failure)]);
  suite.put("<xmlattr>.errors", counts[static_cast<size_t>(Outcome::error)]);
  suite.put("<xmlattr>.skipped", counts[static_cast<size_t>(Outcome::skipped)]);
  for (const Case& item : cases) suite.add_child("testcase", case_tree(name, item));
  suites.add_child("testsuite", suite);
}

}  // namespace

std::string junit(const Model& model) {
  std::vector<Case> runs, verdicts;
  for (const RunRow& run : model.runs) runs.push_back(case_of(model, run));
  for (const VerdictRow& row : model.verdicts) {
    if (is_claim(row)) verdicts.push_back(case_of(row));
  }
  ptree suites;
  suites.put("<xmlattr>.name", printable(model.study));
  add_suite(suites, model.study + ".verdicts", verdicts);
  add_suite(suites, model.study + ".runs", runs);
  ptree root;
  root.add_child("testsuites", suites);
  std::ostringstream out;
  write_xml(out, root, boost::property_tree::xml_writer_make_settings<std::string>(' ', 1));
  return out.str() + "\n";
}

}  // namespace assay::report
