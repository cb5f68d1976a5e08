#include "apps/heat_map.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "apps/svg.h"

namespace twiddle {
namespace {

constexpr double left = 60, right = 8, top = 30, bottom = 40;
constexpr double full_colour = 4;  // powers of two

// White over light to dark.
std::string colour_of(double factor) {
  const double share = std::clamp(std::log2(factor) / full_colour, -1.0, 1.0), depth = std::abs(share);
  const double dark[3] = {share > 0 ? 20.0 : 170.0, share > 0 ? 80.0 : 30.0, share > 0 ? 170.0 : 30.0};
  std::string text = "#";
  for (const double channel : dark)
    text += fmt::format("{:02x}", static_cast<int>(std::lround(255 + depth * (channel - 255))));
  return text;
}

std::string number(double factor) {
  return factor >= 9.95 ? fmt::format("{:.0f}", factor) : fmt::format("{:.2g}", factor);
}

}  // namespace

std::string HeatMap::svg() const {
  const double cell_width = (width - left - right) / static_cast<double>(std::max<std::size_t>(columns.size(), 1));
  const double cell_height = (height - top - bottom) / static_cast<double>(std::max<std::size_t>(rows.size(), 1));
  const double floor = height - bottom;
  std::string svg =
      fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">", width, height, escape_html(title));
  svg += fmt::format("<text class=\"title\" x=\"{}\" y=\"16\">{}</text>", left, escape_html(title));
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const double y = floor - static_cast<double>(row + 1) * cell_height, middle = y + cell_height / 2 + 3;
    svg += fmt::format("<text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>", left - 4, middle,
                       escape_html(rows[row]));
    for (std::size_t column = 0; column < columns.size(); ++column) {
      const Cell& cell = cells[row][column];
      if (cell.factor <= 0 && !cell.failed) continue;
      const double x = left + static_cast<double>(column) * cell_width;
      svg += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"{}\"/>", x, y,
                         cell_width, cell_height, cell.factor > 0 ? colour_of(cell.factor) : "#000000");
      if (cell.factor <= 0) continue;
      const bool dark = std::abs(std::log2(cell.factor)) > full_colour / 2;
      svg += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\" style=\"fill:{}\">{}</text>",
                         x + cell_width / 2, middle, dark ? "white" : "black", number(cell.factor));
    }
  }
  for (std::size_t column = 0; column < columns.size(); ++column)
    svg +=
        fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
                    left + (static_cast<double>(column) + 0.5) * cell_width, floor + 14, escape_html(columns[column]));
  svg += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>", (left + width - right) / 2,
                     height - 8, escape_html(x_title));
  svg +=
      fmt::format("<text x=\"12\" y=\"{0:.1f}\" transform=\"rotate(-90 12 {0:.1f})\" text-anchor=\"middle\">{1}</text>",
                  (top + floor) / 2, escape_html(y_title));
  return svg + "</svg>";
}

}  // namespace twiddle
