#include "layers/conv/way_of_cudnn.h"

#include <sstream>

#include "framework/error.h"

namespace twiddle {

std::string to_string(const CudnnWay& way) {
  if (way.engine < 0) return way.family + (way.tensor_cores ? " (tensor cores)" : "");
  std::string text = join(way.family, " (engine ", way.engine);
  for (const auto& [type, value] : way.knobs) text += join(" k", type, "=", value);
  return text + ")";
}

std::optional<CudnnWay> parse_cudnn_way(const std::string& text) {
  const std::size_t bracket = text.find(" (");
  CudnnWay way;
  way.family = text.substr(0, bracket);
  std::istringstream details(bracket == std::string::npos ? "" : text.substr(bracket + 2));
  std::string kind;
  details >> kind;
  way.tensor_cores = kind == "tensor";
  if (kind == "engine") {
    details >> way.engine;
    char k = 0, equals = 0;
    std::pair<int, std::int64_t> knob;
    while (details >> k >> knob.first >> equals >> knob.second) way.knobs.push_back(knob);
  }
  // Whatever was read too generously does not come out as it was.
  if (way.family.empty() || to_string(way) != text) return {};
  return way;
}

}  // namespace twiddle
