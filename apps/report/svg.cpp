#include "apps/report/svg.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "apps/report/html.h"
#include "framework/text.h"

namespace twiddle {
namespace {

constexpr double left_margin = 58, right_margin = 20, top_margin = 44, bottom_margin = 40;
constexpr double plot_width = Chart::width - left_margin - right_margin,
                 plot_height = Chart::height - top_margin - bottom_margin;

// Colors of the curves, on light and on dark pages.
constexpr const char* light_colours[] = {"#1f6fb4", "#d2561e", "#2e8b57", "#8e5bb5", "#a87b00", "#c2407c", "#158a99"};
constexpr const char* dark_colours[] = {"#6cb2f0", "#ff9a66", "#62c68f", "#c49ce6", "#dcb648", "#f08cb9", "#4fc6d6"};

// One axis: its range of values and its position on the chart.
struct Axis {
  double from, to;  // on the chart
  double low = std::numeric_limits<double>::infinity(), high = -low;
  double step = 1;  // between two ticks

  void include(double value) { low = std::min(low, value), high = std::max(high, value); }

  // Sets the step to 1, 2 or 5 times a power of ten, for about `count` steps of at least `least`.
  void choose_step(double count, double least) {
    const double rough = std::max(least, (high - low) / count), magnitude = std::pow(10, std::floor(std::log10(rough)));
    for (const double factor : {1.0, 2.0, 5.0, 10.0})
      if ((step = factor * magnitude) >= rough * (1 - 1e-9)) break;
  }

  // Widens the range to whole steps. If all values are equal, extends it to zero.
  void widen_to_steps() {
    if (!(low <= high)) low = 0, high = 1;
    if (high - low < 1e-12 * std::max(1.0, std::abs(high))) low = std::min(low, 0.0), high = std::max(high, 0.0);
    if (low == high) high = 1;
    choose_step(5, 0);
    low = std::floor(low / step + 1e-9) * step;
    high = std::ceil(high / step - 1e-9) * step;
  }

  // Leaves the range unchanged, so that a curve fills the chart.
  void take_whole_steps() {
    if (!(low <= high)) low = 0, high = 1;
    if (low == high) low -= 0.5, high += 0.5;
    choose_step(6, 1);
  }

  double place(double value) const { return from + (value - low) / (high - low) * (to - from); }

  std::vector<double> ticks() const {
    std::vector<double> values;
    for (double i = std::ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; ++i) values.push_back(i * step);
    return values;
  }
};

// Formats without rounding error: 0.3, not 0.30000000000000004.
std::string tick_name(double value) {
  if (value == std::floor(value) && std::abs(value) < 1e9) return format_count(std::llround(value));
  return format_number(std::strtod(fmt::format("{:.6g}", value).c_str(), nullptr));
}

std::string axis_lines(const Chart& chart, const Axis& x, const Axis& y) {
  std::string svg;
  for (const double value : y.ticks()) {
    svg += fmt::format("<line class=\"grid\" x1=\"{0}\" x2=\"{1}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\"/>", left_margin,
                       left_margin + plot_width, y.place(value));
    svg += fmt::format("<text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>", left_margin - 6, y.place(value) + 4,
                       tick_name(value));
  }
  for (const double value : x.ticks())
    svg += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>", x.place(value),
                       top_margin + plot_height + 16, tick_name(value));
  if (chart.mark)
    svg += fmt::format(
        "<line class=\"mark\" x1=\"{0}\" x2=\"{1}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\"/><text x=\"{3}\" "
        "y=\"{4:.1f}\">{5}</text>",
        left_margin, left_margin + plot_width, y.place(*chart.mark), left_margin + plot_width + 5,
        y.place(*chart.mark) + 4, tick_name(*chart.mark));
  svg += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>", left_margin + plot_width / 2,
                     Chart::height - 8, escape_html(chart.x_title));
  if (!chart.y_title.empty())
    svg += fmt::format("<text x=\"14\" y=\"{0}\" transform=\"rotate(-90 14 {0})\" text-anchor=\"middle\">{1}</text>",
                       top_margin + plot_height / 2, escape_html(chart.y_title));
  return svg;
}

bool is_finite(const std::pair<double, double>& point) {
  return std::isfinite(point.first) && std::isfinite(point.second);
}

std::string draw(const Curve& curve, std::size_t colour, const Axis& x, const Axis& y) {
  std::string points;
  std::pair<double, double> last;
  std::size_t count = 0;
  for (const auto& point : curve.points) {
    if (!is_finite(point)) continue;
    last = {x.place(point.first), y.place(point.second)};
    points += fmt::format("{:.1f},{:.1f} ", last.first, last.second);
    ++count;
  }
  if (curve.pale)  // a nested <svg> clips curves at its border
    return fmt::format(
        "<svg x=\"{0}\" y=\"{1}\" width=\"{2}\" height=\"{3}\" viewBox=\"{0} {1} {2} {3}\">"
        "<polyline class=\"curve{4} pale\" points=\"{5}\"/></svg>",
        left_margin, top_margin, plot_width, plot_height, colour, points);
  if (count == 1)
    return fmt::format("<circle class=\"dot{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\"/>", colour, last.first,
                       last.second);
  return fmt::format("<polyline class=\"curve{}\" points=\"{}\"/>", colour, points);
}

// Draws the curves and their names above them. A curve without points still uses up its color, so that adjacent charts
// use the same colors.
std::string draw_all(const std::vector<Curve>& curves, const Axis& x, const Axis& y) {
  std::string svg;
  double name_at = left_margin;
  std::size_t number = 0;
  for (const Curve& curve : curves) {
    const std::size_t colour = number % std::size(light_colours);
    if (!curve.pale) ++number;
    if (curve.points.empty()) continue;
    svg += draw(curve, colour, x, y);
    if (curve.pale) continue;
    svg += fmt::format("<text class=\"label{}\" x=\"{}\" y=\"33\">{}</text>", colour, name_at, escape_html(curve.name));
    name_at += 14 + 6.5 * static_cast<double>(curve.name.size());
  }
  return svg;
}

}  // namespace

std::string Chart::svg() const {
  Axis x{left_margin, left_margin + plot_width}, y{top_margin + plot_height, top_margin};
  for (const Curve& curve : curves)
    for (const auto& point : curve.points)
      if (is_finite(point)) {
        x.include(point.first);
        if (!curve.pale) y.include(point.second);
      }
  if (x_span) x.low = x_span->first, x.high = x_span->second;
  if (mark) y.include(*mark);
  if (from_zero) y.include(0);
  x.take_whole_steps();
  y.widen_to_steps();
  return fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">", width, height, escape_html(title)) +
         fmt::format("<text class=\"title\" x=\"{}\" y=\"16\">{}</text>", left_margin, escape_html(title)) +
         axis_lines(*this, x, y) + draw_all(curves, x, y) + "</svg>";
}

// Uses this media query only: it also works if the file is embedded as an image.
std::string chart_style() {
  std::string day = "svg{--ink:#24292f;--paper:#fff;--faint:#24292f26;--strong:#24292f99",
              night = "svg{--ink:#e6edf3;--paper:#0d1117;--faint:#e6edf326;--strong:#e6edf399", curves;
  for (std::size_t i = 0; i < std::size(light_colours); ++i) {
    day += fmt::format(";--c{}:{}", i, light_colours[i]);
    night += fmt::format(";--c{}:{}", i, dark_colours[i]);
    curves += fmt::format(".curve{0}{{stroke:var(--c{0})}}.dot{0},.label{0}{{fill:var(--c{0})}}\n", i);
  }
  return day + "}\n@media(prefers-color-scheme:dark){" + night +
         "}}\n"
         "svg text{font:11px system-ui,sans-serif;fill:var(--ink)}svg .title{font-size:13px;font-weight:600}\n"
         ".grid{stroke:var(--faint)}.mark{stroke:var(--strong);stroke-width:1.5}.paper{fill:var(--paper)}.empty{fill:"
         "var(--strong)}\n"
         "polyline{fill:none;stroke-width:2;stroke-linejoin:round}polyline.pale{stroke-width:1;opacity:.35}\n" +
         curves;
}

}  // namespace twiddle
