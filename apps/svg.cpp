#include "apps/svg.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace twiddle {
namespace {

constexpr double chart_width = 460, chart_height = 260, left = 56, right = 12, top = 34, bottom = 40;

// One axis: the values it spans, and where they lie on the chart.
struct Axis {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  double from = 0, to = 1;  // on the chart
  double step = 1;          // between two ticks

  void include(double value) { low = std::min(low, value), high = std::max(high, value); }

  // Widens the span to whole steps of 1, 2 or 5 times a power of ten.
  void settle() {
    if (!(low <= high)) low = 0, high = 1;
    if (high - low < 1e-12 * std::max(1.0, std::abs(high))) high = low + std::max(1e-9, std::abs(low) * 0.1);
    const double rough = (high - low) / 4, magnitude = std::pow(10, std::floor(std::log10(rough)));
    for (const double factor : {1.0, 2.0, 5.0, 10.0})
      if ((step = factor * magnitude) >= rough) break;
    low = std::floor(low / step + 1e-9) * step;
    high = std::ceil(high / step - 1e-9) * step;
  }
  double place(double value) const { return from + (value - low) / (high - low) * (to - from); }
  int ticks() const { return static_cast<int>(std::lround((high - low) / step)); }
};

std::string axis_lines(const Axis& x, const Axis& y, const std::string& x_title) {
  std::string svg;
  for (int i = 0; i <= y.ticks(); ++i) {
    const double value = y.low + i * y.step, at = y.place(value);
    svg += fmt::format("<line class=\"grid\" x1=\"{0}\" x2=\"{1}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\"/>", left,
                       chart_width - right, at);
    svg += fmt::format("<text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{:.4g}</text>", left - 6, at + 4,
                       std::abs(value) < 1e-9 * y.step ? 0 : value);
  }
  for (int i = 0; i <= x.ticks(); ++i) {
    const double value = x.low + i * x.step;
    svg += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{:.4g}</text>", x.place(value),
                       chart_height - bottom + 16, value);
  }
  return svg + fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>", (left + chart_width - right) / 2,
                           chart_height - 6, escape_html(x_title));
}

std::string draw(const Curve& curve, std::size_t number, const Axis& x, const Axis& y) {
  std::string points;
  std::pair<double, double> last;
  std::size_t count = 0;
  for (const auto& [px, py] : curve.points) {
    if (!std::isfinite(px) || !std::isfinite(py)) continue;
    last = {x.place(px), y.place(py)};
    points += fmt::format("{:.1f},{:.1f} ", last.first, last.second);
    ++count;
  }
  std::string svg = fmt::format("<polyline class=\"curve{}\" points=\"{}\"/>", number, points);
  if (count == 1)
    svg +=
        fmt::format("<circle class=\"dot{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\"/>", number, last.first, last.second);
  return svg;
}

}  // namespace

std::string line_chart(const std::string& title, const std::string& x_title, const std::vector<Curve>& curves) {
  Axis x, y;
  x.from = left, x.to = chart_width - right;
  y.from = chart_height - bottom, y.to = top;
  for (const Curve& curve : curves)
    for (const auto& [px, py] : curve.points)
      if (std::isfinite(px) && std::isfinite(py)) x.include(px), y.include(py);
  x.settle();
  y.settle();
  std::string svg = fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">", chart_width, chart_height,
                                escape_html(title));
  svg += fmt::format("<text class=\"title\" x=\"{}\" y=\"16\">{}</text>", left, escape_html(title));
  svg += axis_lines(x, y, x_title);
  double legend = chart_width - right;
  for (std::size_t i = curves.size(); i-- > 0;) {
    svg += draw(curves[i], i, x, y);
    svg += fmt::format("<text class=\"label{}\" x=\"{}\" y=\"16\" text-anchor=\"end\">{}</text>", i, legend,
                       escape_html(curves[i].name));
    legend -= 14 + 7 * static_cast<double>(curves[i].name.size());
  }
  return svg + "</svg>";
}

std::string svg_page(const std::vector<std::string>& charts, int columns, double width, double height) {
  const int rows = (static_cast<int>(charts.size()) + columns - 1) / columns;
  std::string page = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\">\n"
      "<style>text{{font:11px sans-serif;fill:#333}}.title{{font-weight:bold}}.grid{{stroke:#ddd}}\n"
      "polyline{{fill:none;stroke-width:2}}",
      width * columns, height * rows);
  const char* const colours[] = {"#1f77b4", "#d62728", "#2ca02c", "#ff7f0e", "#9467bd", "#8c564b", "#17becf"};
  for (std::size_t i = 0; i < std::size(colours); ++i)
    page += fmt::format(".curve{0}{{stroke:{1}}}.dot{0},.label{0}{{fill:{1}}}", i, colours[i]);
  page += "</style>\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n";
  for (std::size_t i = 0; i < charts.size(); ++i) {
    const auto place = static_cast<int>(i);
    page += fmt::format("<svg x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\">{}</svg>\n", place % columns * width,
                        place / columns * height, width, height, charts[i]);
  }
  return page + "</svg>\n";
}

std::string escape_html(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      default:
        escaped += static_cast<unsigned char>(c) < 0x20 && c != '\n' ? ' ' : c;
    }
  }
  return escaped;
}

}  // namespace twiddle
