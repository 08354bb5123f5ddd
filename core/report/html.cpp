// One page that needs no network and no script, filled from the model by a mustache template.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <kainjow/mustache.hpp>

#include "core/report/axis.h"
#include "core/report/bars.h"
#include "core/report/chart.h"
#include "core/report/formats.h"
#include "core/report/templates.h"
#include "core/report/verdicts.h"

namespace assay::report {
namespace {

using kainjow::mustache::data;
using kainjow::mustache::mustache;

template <class Range, class F>
data list(const Range& range, F&& make) {
  data result(data::type::list);
  for (const auto& item : range) result << make(item);
  return result;
}

data texts(const std::vector<std::string>& items) {
  return list(items, [](const std::string& item) { return data(item); });
}

data flag(bool value) { return data(value ? data::type::bool_true : data::type::bool_false); }

/// A section that is left out when the text is empty.
void set_text(data& out, const std::string& key, const std::string& text) {
  if (text.empty())
    out.set(key, flag(false));
  else
    out.set(key, text);
}

data figure_data(const Figure& figure) {
  data out;
  out.set("display", figure.display);
  const bool ranged = !figure.display_low.empty() && figure.low != figure.high;
  set_text(out, "range",
           ranged ? fmt::format("[{}, {}]", figure.display_low, figure.display_high) : "");
  return out;
}

data column_data(const Column& column) {
  data out;
  out.set("title", column.title);
  set_text(out, "unit", column.unit);
  return out;
}

data row_data(const Row& row, bool machines) {
  data out;
  out.set("label", row.label);
  out.set("base", flag(row.baseline));
  set_text(out, "machine_id", machines ? row.machine_id.substr(0, 12) : "");
  out.set("keys", texts(row.keys));
  out.set("figures", list(row.figures, figure_data));
  out.set("failed", flag(row.footnote > 0));
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

/// A sample of a mark for the legend: a line for strokes, a box for fills.
std::string swatch(const std::string& cls) {
  const bool line = cls.front() == 's' || cls == "rest";
  const bool cross = cls == "cross";
  const std::string mark =
      line
          ? fmt::format(R"(<path class="{} {}" d="M0,4.5h22"/>)", cls == "rest" ? "" : "curve", cls)
      : cross ? std::string(R"(<path class="cross" d="M7,1l7,7m0,-7l-7,7"/>)")
      : cls.front() == 'f' && cls.size() == 2
          ? fmt::format(R"(<rect class="{}" x="5" width="12" height="9" rx="2"/>)", cls)
          : fmt::format(R"(<circle class="{}" cx="11" cy="4.5" r="3.5"/>)", cls);
  return R"(<svg viewBox="0 0 22 9" aria-hidden="true">)" + mark + "</svg>";
}

data legend_data(const LegendItem& item) {
  data out;
  out.set("swatch", swatch(item.cls));
  out.set("text", item.text);
  return out;
}

data chart_data(const Chart& chart) {
  data out;
  out.set("title", chart.title);
  set_text(out, "subtitle", chart.subtitle);
  out.set("svg", chart.svg);
  out.set("wide", flag(chart.width > 1.3 * kChartWidth));
  const bool broad = chart.width > kChartWidth;  // scrolls on a phone, does not grow on a desk
  set_text(out, "min_width", broad ? fmt::format("{:.0f}", chart.width) : "");
  out.set("max_width", fmt::format("{:.0f}", 1.15 * chart.width));
  out.set("has_legend", flag(!chart.legend.empty()));
  out.set("legend", list(chart.legend, legend_data));
  out.set("has_notes", flag(!chart.notes.empty()));
  out.set("notes", texts(chart.notes));
  return out;
}

data verdict_data(const VerdictRow& row) {
  data out;
  out.set("text", verdict_sentence(row));
  out.set("labels", texts(row.labels));
  return out;
}

data entry_data(const KeyValue& entry) {
  data out;
  out.set("key", entry.first);
  out.set("value", entry.second);
  return out;
}

std::vector<Chart> charts_of(const Model& model) {
  std::vector<Chart> charts;
  const auto add = [&](std::optional<Chart> chart) {
    if (chart) charts.push_back(std::move(*chart));
  };
  const auto add_all = [&](std::vector<Chart> more) {
    std::move(more.begin(), more.end(), std::back_inserter(charts));
  };
  add(throughput_chart(model));
  add(pareto_chart(model));
  add(final_loss_chart(model));
  add_all(loss_charts(model));
  add_all(pair_charts(model));
  add(memory_chart(model));
  add(traffic_chart(model));
  add_all(matrix_charts(model));
  return charts;
}

std::string counted(size_t count, const char* noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

bool has_ranges(const Model& model) {
  return std::any_of(model.rows.begin(), model.rows.end(), [](const Row& row) {
    return std::any_of(row.figures.begin(), row.figures.end(),
                       [](const Figure& f) { return f.low && f.low != f.high; });
  });
}

/// Groups of digits stay on one line: "13 600".
std::string unbroken(const std::string& text) {
  constexpr const char* kNoBreakSpace = "\u00a0";
  const auto digit = [&](size_t i) {
    return i < text.size() && std::isdigit(static_cast<unsigned char>(text[i]));
  };
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == ' ' && i > 0 && digit(i - 1) && digit(i + 1)) {
      out += kNoBreakSpace;
    } else {
      out += text[i];
    }
  }
  return out;
}

data page_data(const Model& model) {
  data out;
  const auto ok = static_cast<size_t>(std::count_if(
      model.runs.begin(), model.runs.end(), [](const RunRow& run) { return run.state == "ok"; }));
  for (const auto& [key, value] :
       {KeyValue{"study", model.study},
        {"count", counted(model.rows.size(), "recipe") + " compared"},
        {"runs_text", fmt::format("{} of {} ended well", ok, counted(model.runs.size(), "run"))},
        {"created", model.created},
        {"sentence", unbroken(model.sentence)},
        {"verdict", model.verdict},
        {"verdict_command", model.verdict_command},
        {"database", model.database},
        {"assay", model.assay},
        {"next", model.next},
        {"run_count", std::to_string(model.runs.size())},
        {"style", page_style()}}) {
    out.set(key, value);
  }
  set_text(out, "machine", model.machine);
  const bool machines = several_machines(model);
  out.set("machines", flag(machines));
  out.set("has_verdicts", flag(!model.verdicts.empty()));
  out.set("verdicts", list(model.verdicts, verdict_data));
  out.set("keys", texts(model.keys));
  out.set("columns", list(model.columns, column_data));
  out.set("rows", list(model.rows, [&](const Row& row) { return row_data(row, machines); }));
  out.set("has_baseline", flag(!model.baseline.empty()));
  out.set("ranges", flag(has_ranges(model)));
  out.set("has_reasons", flag(!model.reasons.empty()));
  out.set("reasons", texts(model.reasons));
  const std::vector<Chart> charts = charts_of(model);
  out.set("has_charts", flag(!charts.empty()));
  out.set("charts", list(charts, chart_data));
  out.set("footnotes", texts(model.footnotes));
  out.set("runs", list(model.runs, [&](const RunRow& run) { return run_data(model, run); }));
  out.set("environment", list(model.environment, entry_data));
  return out;
}

}  // namespace

std::string html(const Model& model) {
  mustache page(page_template());
  page.set_custom_escape([](const std::string& text) { return xml_escaped(text); });
  return page.render(page_data(model));
}

}  // namespace assay::report
