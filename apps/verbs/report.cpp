#include "apps/verbs/report.h"

#include <fmt/core.h>

#include "apps/report/confusion_html.h"
#include "apps/report/html.h"
#include "apps/report/run_charts.h"
#include "apps/report/svg.h"
#include "apps/version.h"
#include "framework/text.h"

namespace twiddle {
namespace {

// Wide tables scroll within their frames on screen and shrink in print. Text is left-aligned, numbers are
// right-aligned.
constexpr const char* style = R"(
:root { color-scheme: light dark; --line: #8884 }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 1000px; margin: 2em auto; padding: 0 1em }
h1 { font-size: 1.6em; margin-bottom: 0 } h2 { font-size: 1.2em; margin-top: 2em } h3 { font-size: 1em }
h1 + p { font-size: 1.15em; margin-top: 0 } .aside { opacity: .7; font-weight: normal }
table { border-collapse: collapse; font-variant-numeric: tabular-nums }
th, td { padding: .15em .6em; text-align: right; border-bottom: 1px solid var(--line) }
th { font-weight: 600 } td:first-child, th:first-child { text-align: left; padding-left: 0 }
.names :is(td, th):nth-child(2) { text-align: left }
.facts { width: 100% } .facts td { text-align: left; vertical-align: top } .facts td:first-child { opacity: .7 }
.facts span { display: inline-block; margin-right: 2em; overflow-wrap: anywhere }
pre { overflow-x: auto; padding: .8em; border: 1px solid var(--line); font-size: 13px; line-height: 1.4 }
summary { cursor: pointer; margin-top: 1em }
.scroll { overflow-x: auto } .columns { display: flex; flex-wrap: wrap; gap: 0 3em }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(400px, 100%), 1fr)); gap: 1em }
.charts svg { max-width: 480px; width: 100% }
.matrix td { min-width: 1.6em; text-align: center; padding: .1em .25em }
.matrix th { text-align: center; padding: .1em .25em }
.matrix th:first-child { position: sticky; left: 0; background: Canvas; text-align: left; padding: .1em .6em .1em 0 }
.matrix td:last-child { padding-left: .8em; text-align: right } .matrix td:first-child { text-align: center }
.turned th { vertical-align: bottom } .turned span { writing-mode: vertical-rl; transform: rotate(180deg) }
.pictures { display: flex; flex-wrap: wrap; gap: .8em } figure { margin: 0; font-size: 13px; max-width: 150px }
.pictures img { image-rendering: pixelated; width: 96px; border: 1px solid var(--line) } .filters img { width: 48px }
.restored { gap: .3em; margin-bottom: .8em; flex-wrap: nowrap } .restored figure { max-width: 96px }
footer { margin-top: 3em; opacity: .7 }
@media print {
  body { margin: 0 } .scroll { overflow: visible } .charts { grid-template-columns: 1fr 1fr }
  svg, figure, tr { break-inside: avoid } h2, h3, h2 + p { break-after: avoid }
  .matrix { font-size: min(1em, calc(900px / (var(--classes) + 6) / 2.4)); print-color-adjust: exact }
  .matrix th:first-child { position: static }
}
)";

std::string section(const std::string& title, const std::string& aside, const std::string& body) {
  const std::string small = aside.empty() ? "" : " <span class=\"aside\">" + escape_html(aside) + "</span>";
  return "<h2>" + escape_html(title) + small + "</h2>\n" + body + "\n";
}

std::string facts_table(const Report& report) {
  std::string html = "<table class=\"facts\">\n";
  for (const auto& [name, parts] : report.facts) {
    html += "<tr><td>" + escape_html(name) + "</td><td>";
    for (const std::string& part : parts) html += "<span>" + escape_html(part) + "</span> ";
    html += "</td></tr>\n";
  }
  return html + "</table>\n";
}

std::string folded(const std::string& title, const std::string& text) {
  return "<details><summary>" + escape_html(title) + "</summary><pre>" + escape_html(text) + "</pre></details>\n";
}

std::string charts(const History& history) {
  std::string html = "<div class=\"charts\">\n";
  for (const std::string& chart : run_charts(history)) html += chart + "\n";
  return html + "</div>\n";
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

std::string rows_of_pictures(const std::vector<std::vector<Report::Picture>>& rows) {
  std::string html = "<div class=\"columns\">\n";
  for (const std::vector<Report::Picture>& row : rows) html += pictures(row, "restored");
  return html + "</div>\n";
}

std::string layers_table(const std::vector<LayerFacts>& layers) {
  std::string html = "<div class=\"scroll\"><table class=\"names\">\n" +
                     html_row("th", {"layer", "kind", "input", "output", "parameters", "MFLOP/image"});
  for (const LayerFacts& layer : layers)
    html += html_row("td", {layer.name, layer.options.empty() ? layer.kind : layer.kind + " " + layer.options,
                            to_string(layer.input), to_string(layer.output), format_count(layer.parameters),
                            format_megaflops(layer.flops)});
  return html + "</table></div>\n";
}

}  // namespace

std::string report_html(const Report& report) {
  const std::string title = escape_html(report.title);
  std::string html =
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n<title>" +
      title + "</title>\n<style>" + style + chart_style() + "</style>\n</head>\n<body>\n";
  html += "<h1>" + title + "</h1>\n<p>" + escape_html(report.summary) + "</p>\n" + facts_table(report);
  if (!report.config.empty()) html += folded("config.yaml", report.config);
  html += section("Curves", "", charts(report.history));
  if (!report.mistakes.empty())
    html += section("Most confident mistakes", report.examined, pictures(report.mistakes, "mistakes"));
  if (!report.worst.empty()) html += section("Worst images", report.examined, pictures(report.worst, "mistakes"));
  if (!report.restored.empty()) html += section("Made of images", report.examined, rows_of_pictures(report.restored));
  if (report.validation && report.validation->target == TargetKind::label)
    html += section("Confusion", report.examined, confusion_html(report.classes, report.validation->confusion));
  if (!report.filters.empty()) html += section("Filters of the first layer", "", pictures(report.filters, "filters"));
  html += section("Layers", "", layers_table(report.layers));
  return html + "<footer>Twiddle " + version() + "</footer>\n</body>\n</html>\n";
}

}  // namespace twiddle
