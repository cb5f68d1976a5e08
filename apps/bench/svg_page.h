#pragma once
#include <string>
#include <vector>

#include "apps/report/svg.h"

namespace twiddle {

// An SVG file with drawings of one size in `columns` columns and a footer below.
struct Drawings {
  std::vector<std::string> all;
  int columns = 1;
  double width = Chart::width, height = Chart::height;  // of each drawing
  std::string footer = {};
  double footer_height = 0;
};
std::string svg_page(const Drawings& drawings);

}  // namespace twiddle
