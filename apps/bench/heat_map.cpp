#include "apps/bench/heat_map.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "apps/report/html.h"

namespace twiddle {
namespace {

constexpr double space_left = 48, space_right = 6, space_above = 30, space_below = 40;
constexpr double full_colour = 4;  // powers of two

// Light gray, then light to dark.
std::string colour_of(double factor) {
  const double share = std::clamp(std::log2(factor) / full_colour, -1.0, 1.0), depth = std::abs(share);
  const double dark[3] = {share > 0 ? 20.0 : 170.0, share > 0 ? 80.0 : 30.0, share > 0 ? 170.0 : 30.0};
  std::string text = "#";
  for (const double channel : dark)
    text += fmt::format("{:02x}", static_cast<int>(std::lround(240 + depth * (channel - 240))));
  return text;
}

std::string number(double factor) {
  return factor >= 9.95 ? fmt::format("{:.0f}", factor) : fmt::format("{:.2g}", factor);
}

struct Box {
  double x, y, width, height;
};

// Letters are white or black, depending on the cell's color, so that light and dark pages look the same.
std::string filled(const Box& box, const std::string& colour, bool dark, const std::string& text) {
  return fmt::format(
      "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"{}\"/>"
      "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\" style=\"fill:{}\">{}</text>",
      box.x, box.y, box.width - 1, box.height - 1, colour, box.x + box.width / 2, box.y + box.height / 2 + 3.5,
      dark ? "white" : "black", text);
}

std::string draw(const HeatMap::Cell& cell, const Box& box) {
  if (cell.factor > 0)
    return filled(box, colour_of(cell.factor), std::abs(std::log2(cell.factor)) > full_colour / 2, number(cell.factor));
  if (cell.failed) return filled(box, "#555555", true, "✕");
  return fmt::format("<circle class=\"empty\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"1.1\"/>", box.x + box.width / 2,
                     box.y + box.height / 2);
}

std::string label(double x, double y, const char* anchor, const std::string& text) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>", x, y, anchor, escape_html(text));
}

}  // namespace

std::string HeatMap::svg() const {
  const double cell_width =
      (width - space_left - space_right) / static_cast<double>(std::max<std::size_t>(columns.size(), 1));
  const double cell_height =
      (height - space_above - space_below) / static_cast<double>(std::max<std::size_t>(rows.size(), 1));
  const double floor = height - space_below, middle = (space_above + floor) / 2;
  std::string svg =
      fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">", width, height, escape_html(title));
  svg += fmt::format("<text class=\"title\" x=\"{}\" y=\"18\">{}</text>", space_left, escape_html(title));
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const double y = floor - static_cast<double>(row + 1) * cell_height;
    svg += label(space_left - 5, y + cell_height / 2 + 3.5, "end", rows[row]);
    for (std::size_t column = 0; column < columns.size(); ++column)
      svg +=
          draw(cells[row][column], {space_left + static_cast<double>(column) * cell_width, y, cell_width, cell_height});
  }
  for (std::size_t column = 0; column < columns.size(); ++column)
    svg += label(space_left + (static_cast<double>(column) + 0.5) * cell_width, floor + 14, "middle", columns[column]);
  svg += label((space_left + width - space_right) / 2, height - 10, "middle", x_title);
  svg +=
      fmt::format("<text x=\"12\" y=\"{0:.1f}\" transform=\"rotate(-90 12 {0:.1f})\" text-anchor=\"middle\">{1}</text>",
                  middle, escape_html(y_title));
  return svg + "</svg>";
}

std::string HeatMap::key() {
  constexpr double cell_width = 36, cell_height = 18, y = 12, text = y + 12.5;
  const char* const names[] = {"1/16", "1/8", "1/4", "1/2", "1", "2", "4", "8", "16"};
  std::string svg = fmt::format("<svg viewBox=\"0 0 {} {}\">", 3 * width, key_height);
  double x = space_left + 46;
  svg += label(x - 8, text, "end", "slower");
  for (int power = -4; power <= 4; ++power, x += cell_width)
    svg += filled({x, y, cell_width, cell_height}, colour_of(std::exp2(power)), std::abs(power) > full_colour / 2,
                  names[power + 4]);
  svg += label(x + 8, text, "start", "times as fast");
  x += 140;
  svg += draw({0, true}, {x, y, cell_width, cell_height}) + label(x + cell_width + 6, text, "start", "failed");
  x += 120;
  svg += draw({}, {x, y, cell_width, cell_height}) + label(x + cell_width, text, "start", "not measured");
  return svg + "</svg>";
}

}  // namespace twiddle
