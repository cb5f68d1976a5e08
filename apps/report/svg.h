#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace twiddle {

// Points joined by a line.
struct Curve {
  std::string name;
  std::vector<std::pair<double, double>> points;
  bool pale = false;  // thin, no name, in the color of the next curve, clipped to that curve's range
};

// Curves over one x axis with integer ticks. Points that are not finite are omitted.
struct Chart {
  static constexpr double width = 460, height = 280;

  std::string title, x_title = {}, y_title = {};
  std::vector<Curve> curves = {};
  std::optional<std::pair<double, double>> x_span = {};  // null: the range of the curves
  std::optional<double> mark = {};                       // y value of a horizontal line; null: none
  bool from_zero = false;                                // the y axis always includes 0

  std::string svg() const;  // returns an <svg> element for a page with chart_style()
};

// Returns CSS for a <style> element: colors and fonts of charts and maps, for light and dark pages.
std::string chart_style();

}  // namespace twiddle
