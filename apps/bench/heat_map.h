#pragma once
#include <string>
#include <vector>

namespace twiddle {

// The speed-up of one engine over another, over two axes.
struct HeatMap {
  static constexpr double width = 290, height = 420, key_height = 46;

  std::string title, x_title, y_title;
  std::vector<std::string> columns, rows;  // axis labels; the first row is at the bottom
  struct Cell {
    double factor = 0;  // 0: not measured
    bool failed = false;
  };
  std::vector<std::vector<Cell>> cells;  // [row][column]

  // Returns an <svg> element for a page with chart_style(). Light gray: equally fast; blue: faster; red: slower; cross:
  // failed; dot: not measured.
  std::string svg() const;

  // Returns the legend of the colors, as wide as three maps.
  static std::string key();
};

}  // namespace twiddle
