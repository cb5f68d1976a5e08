#include "apps/report.h"

#include <fmt/core.h>

#include <algorithm>

#include "apps/base64.h"
#include "apps/svg.h"
#include "apps/version.h"
#include "framework/text.h"

namespace twiddle {
namespace {

constexpr std::size_t most_classes_in_a_matrix = 40;

constexpr const char* style = R"(
:root { color-scheme: light dark; --line: #8884; --first: #1f6fb4; --second: #d2691e; --third: #2e8b57; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 1000px; margin: 2em auto; padding: 0 1em; }
h1 { font-size: 1.5em } h2 { font-size: 1.15em; margin-top: 2em }
table { border-collapse: collapse; font-variant-numeric: tabular-nums }
th, td { padding: .15em .6em; text-align: right; border-bottom: 1px solid var(--line) }
th { font-weight: 600 } td:first-child, th:first-child { text-align: left }
.facts td { text-align: left }
.charts { display: flex; flex-wrap: wrap; gap: 1em } .charts svg { width: 460px; max-width: 100% }
svg text { font-size: 11px; fill: currentColor } svg .title { font-size: 13px; font-weight: 600 }
svg .grid { stroke: var(--line) } polyline { fill: none; stroke-width: 1.8 }
.curve0 { stroke: var(--first) } .curve1 { stroke: var(--second) } .curve2 { stroke: var(--third) }
svg .label0, .dot0 { fill: var(--first) } svg .label1, .dot1 { fill: var(--second) } svg .label2, .dot2 { fill: var(--third) }
.matrix td { min-width: 1.6em; text-align: center; padding: .1em .3em }
.pictures { display: flex; flex-wrap: wrap; gap: .8em } figure { margin: 0; font-size: 13px; max-width: 150px }
.pictures img { image-rendering: pixelated; width: 96px; border: 1px solid var(--line) } .filters img { width: 48px }
)";

std::string section(const std::string& title, const std::string& body) {
  return "<h2>" + escape_html(title) + "</h2>\n" + body + "\n";
}

std::string row(const char* cell, const std::vector<std::string>& cells) {
  std::string html = "<tr>";
  for (const std::string& text : cells) html += fmt::format("<{0}>{1}</{0}>", cell, escape_html(text));
  return html + "</tr>\n";
}

std::string facts_table(const Report& report) {
  std::string html = "<table class=\"facts\">\n";
  for (const auto& [name, text] : report.facts) html += row("td", {name, text});
  return html + "</table>\n";
}

std::string charts(const History& history) {
  Curve steps{"training", {}}, rate{"learning rate", {}}, val_loss{"validation", {}};
  Curve top1{"top-1", {}}, top5{"top-5", {}};
  for (const StepReport& step : history.steps) {
    const auto at = static_cast<double>(step.step);
    steps.points.emplace_back(at, step.loss);
    rate.points.emplace_back(at, step.rate);
  }
  for (const EpochReport& epoch : history.epochs) {
    if (!epoch.has_validation) continue;
    const auto at = static_cast<double>(epoch.step);
    val_loss.points.emplace_back(at, epoch.val_loss);
    top1.points.emplace_back(at, 100 * epoch.val_top1);
    top5.points.emplace_back(at, 100 * epoch.val_top5);
  }
  std::string html = "<div class=\"charts\">\n" + line_chart("Loss", "step", {steps, val_loss}) + "\n";
  if (!top1.points.empty()) html += line_chart("Validation accuracy, %", "step", {top1, top5}) + "\n";
  return html + line_chart("Learning rate", "step", {rate}) + "\n</div>\n";
}

std::string pictures(const std::vector<Report::Picture>& all, const char* kind) {
  std::string html = fmt::format("<div class=\"pictures {}\">\n", kind);
  for (const Report::Picture& picture : all) {
    const std::string caption = escape_html(picture.caption);
    html += fmt::format("<figure><img alt=\"{}\" src=\"data:image/png;base64,{}\"/>", caption,
                        base64(encode_png(picture.image)));
    html += "<figcaption>" + caption + "</figcaption></figure>\n";
  }
  return html + "</div>\n";
}

std::string confusion_matrix(const Report& report) {
  const std::size_t classes = report.classes.size();
  std::string html = "<p>Rows: what it is. Columns: what the network says.</p>\n<table class=\"matrix\">\n";
  std::vector<std::string> header = report.classes;
  header.insert(header.begin(), "");
  html += row("th", header);
  for (std::size_t actual = 0; actual < classes; ++actual) {
    const auto begin = report.confusion.begin() + static_cast<std::ptrdiff_t>(actual * classes);
    double total = 0;
    for (auto count = begin; count != begin + static_cast<std::ptrdiff_t>(classes); ++count)
      total += static_cast<double>(*count);
    html += "<tr><th>" + escape_html(report.classes[actual]) + "</th>";
    for (std::size_t predicted = 0; predicted < classes; ++predicted) {
      const std::int64_t count = begin[static_cast<std::ptrdiff_t>(predicted)];
      const double share = total > 0 ? static_cast<double>(count) / total : 0;
      const char* colour = actual == predicted ? "46,139,87" : "210,60,30";
      html += fmt::format("<td style=\"background:rgba({},{:.2f})\">{}</td>", colour, 0.75 * share,
                          count > 0 ? std::to_string(count) : "");
    }
    html += "</tr>\n";
  }
  return html + "</table>\n";
}

// For many classes: the pairs most often taken for each other.
std::string confused_pairs(const Report& report) {
  const std::size_t classes = report.classes.size();
  std::vector<std::size_t> cells;
  for (std::size_t cell = 0; cell < report.confusion.size(); ++cell)
    if (cell / classes != cell % classes && report.confusion[cell] > 0) cells.push_back(cell);
  const std::size_t shown = std::min<std::size_t>(cells.size(), 20);
  std::partial_sort(cells.begin(), cells.begin() + static_cast<std::ptrdiff_t>(shown), cells.end(),
                    [&](std::size_t a, std::size_t b) { return report.confusion[a] > report.confusion[b]; });
  std::string html = "<table>\n" + row("th", {"what it is", "what the network says", "images"});
  for (std::size_t i = 0; i < shown; ++i)
    html += row("td", {report.classes[cells[i] / classes], report.classes[cells[i] % classes],
                       std::to_string(report.confusion[cells[i]])});
  return html + "</table>\n";
}

std::string layers_table(const std::vector<LayerFacts>& layers) {
  std::string html = "<table>\n" + row("th", {"layer", "kind", "input", "output", "parameters", "MFLOP/image"});
  for (const LayerFacts& layer : layers)
    html += row("td", {layer.name, layer.options.empty() ? layer.kind : layer.kind + " " + layer.options,
                       to_string(layer.input), to_string(layer.output), format_count(layer.parameters),
                       format_megaflops(layer.flops)});
  return html + "</table>\n";
}

}  // namespace

std::string report_html(const Report& report) {
  const std::string title = escape_html(report.title);
  std::string html = "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n<title>" + title +
                     "</title>\n<style>" + style + "</style>\n</head>\n<body>\n<h1>" + title + "</h1>\n";
  html += facts_table(report);
  html += section("Curves", charts(report.history));
  if (!report.mistakes.empty()) html += section("Surest mistakes", pictures(report.mistakes, "mistakes"));
  if (!report.confusion.empty() && report.confusion.size() == report.classes.size() * report.classes.size())
    html += section("Confusion", report.classes.size() <= most_classes_in_a_matrix ? confusion_matrix(report)
                                                                                   : confused_pairs(report));
  if (!report.filters.empty()) html += section("Filters of the first layer", pictures(report.filters, "filters"));
  html += section("Layers", layers_table(report.layers));
  return html + "<p>Twiddle " + version() + "</p>\n</body>\n</html>\n";
}

}  // namespace twiddle
