#include "apps/bench/svg_page.h"

#include <fmt/core.h>

#include <algorithm>

namespace twiddle {

std::string svg_page(const Drawings& drawings) {
  const int columns = std::min(drawings.columns, std::max(1, static_cast<int>(drawings.all.size())));
  const int rows = (static_cast<int>(drawings.all.size()) + columns - 1) / columns;
  const double width = drawings.width * columns, floor = drawings.height * rows;
  std::string page = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\">\n"
      "<style>{2}</style>\n<rect class=\"paper\" width=\"100%\" height=\"100%\"/>\n",
      width, floor + drawings.footer_height, chart_style());
  for (std::size_t i = 0; i < drawings.all.size(); ++i) {
    const auto place = static_cast<int>(i);
    page +=
        fmt::format("<svg x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\">{}</svg>\n", place % columns * drawings.width,
                    place / columns * drawings.height, drawings.width, drawings.height, drawings.all[i]);
  }
  if (!drawings.footer.empty())
    page += fmt::format("<svg y=\"{}\" width=\"{}\" height=\"{}\">{}</svg>\n", floor, width, drawings.footer_height,
                        drawings.footer);
  return page + "</svg>\n";
}

}  // namespace twiddle
