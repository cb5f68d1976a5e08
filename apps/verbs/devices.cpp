#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "apps/verbs/open.h"
#include "apps/verbs/verbs.h"
#include "framework/device.h"
#include "framework/gpu_check.h"

namespace twiddle {
namespace {

int devices(const Flags& flags) {
  std::vector<Device> all = {{Device::Kind::cpu, 0}};
  for (int i = 0; i < cuda_device_count(); ++i) all.push_back({Device::Kind::cuda, i});
  const Device chosen = parse_device("auto");
  nlohmann::json list = nlohmann::json::array();
  for (const Device& device : all) {
    const std::string unusable = device.kind == Device::Kind::cpu ? "" : why_unusable(look_at_gpu(device.index));
    const std::string description = unusable.empty() ? describe(device) : unusable;
    if (flags.json != "-")
      fmt::print("{:<8}{}{}\n", to_string(device), description, device == chosen ? "   (auto)" : "");
    list.push_back({{"name", to_string(device)},
                    {"description", description},
                    {"usable", unusable.empty()},
                    {"auto", device == chosen}});
  }
  const std::string why = why_passed_over(look_at_gpu(0));
  if (all.size() == 1 && flags.json != "-")
    fmt::print("no CUDA GPU that this build can use{}\n", why.empty() ? "" : ": " + why);
  write_json(flags, list);
  return 0;
}

}  // namespace

Action add_devices(VerbOptions& /*verb*/, const Flags& flags) {
  return [&flags] { return devices(flags); };
}

}  // namespace twiddle
