// Markdown for a pull request comment, filled from the model by a mustache template.
#include <fmt/format.h>

#include <algorithm>
#include <kainjow/mustache.hpp>

#include "core/report/formats.h"
#include "core/report/verdicts.h"

namespace assay::report {
namespace {

using kainjow::mustache::data;
using kainjow::mustache::mustache;

constexpr const char* kTemplate = R"(### {{study}}: {{heading}}

{{{verdicts}}}{{sentence}}

{{{question}}}| recipe |{{#keys}} {{.}} |{{/keys}}{{#columns}} {{.}} |{{/columns}} state |
|---|{{#keys}}---|{{/keys}}{{#columns}}---:|{{/columns}}---|
{{#rows}}
| {{label}} |{{#keys}} {{.}} |{{/keys}}{{#figures}} {{.}} |{{/figures}} {{state}} |
{{/rows}}

{{#reasons}}
{{.}}

{{/reasons}}
<details><summary>Notes</summary>

{{#footnotes}}
- {{.}}
{{/footnotes}}

</details>
<details><summary>Runs</summary>

| run | recipe | slot | state | attempts | used steps |{{#run_columns}} {{.}} |{{/run_columns}}
|---:|---|---:|---|---:|---|{{#run_columns}}---:|{{/run_columns}}
{{#runs}}
| {{id}} | {{cell}} | {{slot}} | {{state}} | {{attempts}} | {{steady}} |{{#figures}} {{.}} |{{/figures}}
{{/runs}}

</details>
<details><summary>Environment</summary>

{{#environment}}
- {{key}}: `{{{value}}}`
{{/environment}}
- database: `{{{database}}}`
- study planned: {{created}}, {{assay}}

</details>
)";

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '|' || c == '*' || c == '_' || c == '`' || c == '\\' || c == '[' || c == ']')
      out += '\\';
    if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else
      out += c == '\n' || c == '\r' ? ' ' : c;
  }
  return out;
}

template <class Range, class F>
data list(const Range& range, F&& make) {
  data result(data::type::list);
  for (const auto& item : range) result << make(item);
  return result;
}

data texts(const std::vector<std::string>& items) {
  return list(items, [](const std::string& item) { return data(item); });
}

data row_data(const Row& row) {
  data out;
  out.set("label", row.label + (row.baseline ? " (baseline)" : ""));
  out.set("keys", texts(row.keys));
  out.set("figures", list(row.figures, [](const Figure& f) { return data(with_range(f)); }));
  out.set("state", row.footnote == 0 ? row.state : fmt::format("{} {})", row.state, row.footnote));
  return out;
}

data run_data(const Model& model, const RunRow& run) {
  data out;
  out.set("id", std::to_string(run.run_id));
  out.set("cell", run.slug);
  out.set("slot", std::to_string(run.slot));
  out.set("state", run.state);
  out.set("attempts", std::to_string(run.attempts));
  out.set("steady", run.steady.empty() ? "-" : run.steady);
  out.set("figures", list(model.columns, [&](const Column& column) {
            const Figure* figure = run.figure(column.name);
            return data(figure == nullptr ? std::string("-") : figure->display);
          }));
  return out;
}

data environment_data(const KeyValue& entry) {
  data out;
  out.set("key", entry.first);
  out.set("value", entry.second);
  return out;
}

/// One line per verdict with its labels, then an empty one.
std::string verdict_lines(const Model& model) {
  std::string lines;
  for (const VerdictRow& row : model.verdicts) {
    lines += "- " + escaped(verdict_sentence(row));
    for (const std::string& label : row.labels) lines += " **" + escaped(label) + "**";
    lines += "\n";
  }
  return lines.empty() ? lines : lines + "\n";
}

std::string question(const Model& model) {
  if (!model.verdicts.empty()) return "";
  return fmt::format("{} For one: `{}`\n\n", escaped(model.verdict), model.verdict_command);
}

data model_data(const Model& model) {
  data out;
  for (const auto& [key, value] : {KeyValue{"study", model.study},
                                   {"sentence", model.sentence},
                                   {"database", model.database},
                                   {"created", model.created},
                                   {"assay", model.assay}}) {
    out.set(key, value);
  }
  out.set("heading", model.verdicts.empty() ? "measured ranges, no verdict"
                                            : verdict_sentence(model.verdicts.front()));
  out.set("verdicts", verdict_lines(model));
  out.set("question", question(model));
  const data titles = list(model.columns, [](const Column& c) { return data(heading(c)); });
  out.set("keys", texts(model.keys));
  out.set("columns", titles);
  out.set("run_columns", titles);
  out.set("rows", list(model.rows, row_data));
  std::vector<std::string> numbered;
  for (const std::string& reason : model.reasons) {
    numbered.push_back(fmt::format("{}) {}", numbered.size() + 1, reason));
  }
  out.set("reasons", texts(numbered));
  out.set("footnotes", texts(model.footnotes));
  out.set("runs", list(model.runs, [&](const RunRow& run) { return run_data(model, run); }));
  out.set("environment", list(model.environment, environment_data));
  return out;
}

/// Cuts at a line and says how much is missing.
std::string cut(std::string text, size_t longest) {
  if (text.size() < longest) return text;
  constexpr size_t kRoomForNote = 200;
  const size_t end = text.rfind('\n', longest - kRoomForNote) + 1;
  const auto lines = std::count(text.begin() + static_cast<std::ptrdiff_t>(end), text.end(), '\n');
  text.resize(end);
  return text + fmt::format(
                    "\n{} more lines were cut: the whole report is longer than a comment may be.\n",
                    lines);
}

}  // namespace

std::string markdown(const Model& model, size_t longest) {
  mustache page(kTemplate);
  page.set_custom_escape(escaped);
  return cut(page.render(model_data(model)), longest);
}

}  // namespace assay::report
