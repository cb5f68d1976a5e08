#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace twiddle {

// Points to be joined by a line.
struct Curve {
  std::string name;
  std::vector<std::pair<double, double>> points;
  bool pale = false;  // thin, without a name, in the colour of the next curve, and cut where it leaves that one's range
};

// Curves over one x axis, whose ticks are whole numbers. Points that are not finite are left out.
struct Chart {
  static constexpr double width = 460, height = 280;

  std::string title, x_title = {}, y_title = {};
  std::vector<Curve> curves = {};
  std::optional<std::pair<double, double>> x_span = {};  // as wide as the curves where it is not given
  std::optional<double> mark = {};                       // a height that gets a line of its own
  bool from_zero = false;                                // the y axis holds 0 whatever the curves do

  std::string svg() const;  // an <svg> element for a page that has chart_style()
};

// The colours and letters of charts and maps, on light pages and on dark ones; for a <style> element.
std::string chart_style();

}  // namespace twiddle
