#pragma once
#include <string>
#include <utility>
#include <vector>

namespace twiddle {

// Points to be joined by a line.
struct Curve {
  std::string name;
  std::vector<std::pair<double, double>> points;
};

// A chart as an <svg> element; text and axes take the page's colour, curves the classes "curve0", "curve1" ...
// Points that are not finite are left out.
std::string line_chart(const std::string& title, const std::string& x_title, const std::vector<Curve>& curves);

// Charts of one size, so many beside each other, as a file of its own.
std::string svg_page(const std::vector<std::string>& charts, int columns, double width, double height);

std::string escape_html(const std::string& text);

}  // namespace twiddle
