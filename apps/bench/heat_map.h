#pragma once
#include <string>
#include <vector>

namespace twiddle {

// How many times as fast one thing is as another, over two axes.
struct HeatMap {
  static constexpr double width = 290, height = 420, key_height = 46;

  std::string title, x_title, y_title;
  std::vector<std::string> columns, rows;  // what stands at the axes; the first row lies lowest
  struct Cell {
    double factor = 0;  // 0: nothing was measured
    bool failed = false;
  };
  std::vector<std::vector<Cell>> cells;  // [row][column]

  // An <svg> element for a page that has chart_style(): light grey where both are as fast, blue where it is faster, red
  // where it is slower, a cross where it failed, a dot where nothing was measured.
  std::string svg() const;

  // What the colours mean, as wide as three maps.
  static std::string key();
};

}  // namespace twiddle
