#include "layers/conv/engines/plan_name_of_cudnn.h"

#include <sstream>

#include "framework/error.h"

namespace twiddle {

std::string to_string(const CudnnPlanName& name) {
  if (name.engine < 0) return name.family + (name.tensor_cores ? " (tensor cores)" : "");
  std::string text = join(name.family, " (engine ", name.engine);
  for (const auto& [type, value] : name.knobs) text += join(" k", type, "=", value);
  return text + ")";
}

std::optional<CudnnPlanName> parse_cudnn_plan_name(const std::string& text) {
  const std::size_t bracket = text.find(" (");
  CudnnPlanName name;
  name.family = text.substr(0, bracket);
  std::istringstream details(bracket == std::string::npos ? "" : text.substr(bracket + 2));
  std::string kind;
  details >> kind;
  name.tensor_cores = kind == "tensor";
  if (kind == "engine") {
    details >> name.engine;
    char k = 0, equals = 0;
    std::pair<int, std::int64_t> knob;
    while (details >> k >> knob.first >> equals >> knob.second) name.knobs.push_back(knob);
  }
  // Whatever was read too generously does not come out as it was.
  if (name.family.empty() || to_string(name) != text) return {};
  return name;
}

}  // namespace twiddle
