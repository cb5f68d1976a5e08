#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "apps/open.h"
#include "apps/verbs.h"
#include "framework/device.h"

namespace twiddle {
namespace {

int devices(const Flags& flags) {
  std::vector<Device> all = {{Device::Kind::cpu, 0}};
  for (int i = 0; i < cuda_device_count(); ++i) all.push_back({Device::Kind::cuda, i});
  const Device chosen = parse_device("auto");
  nlohmann::json list = nlohmann::json::array();
  for (const Device& device : all) {
    if (flags.json != "-")
      fmt::print("{:<8}{}{}\n", to_string(device), describe(device), device == chosen ? "   (auto)" : "");
    list.push_back({{"name", to_string(device)}, {"description", describe(device)}, {"auto", device == chosen}});
  }
  if (all.size() == 1 && flags.json != "-") fmt::print("no CUDA GPU that this build can use\n");
  write_json(flags, list.dump(2));
  return 0;
}

}  // namespace

Action add_devices(CLI::App& /*verb*/, const Flags& flags) {
  return [&flags] { return devices(flags); };
}

}  // namespace twiddle
