#include "framework/config/params.h"
#include "framework/context.h"
#include "framework/optimizers/optimizer.h"
#include "layers/sequential.h"
#include "models/checkpoints/checkpoint.h"
#include "models/checkpoints/safetensors.h"

#include "tests/fuzz/input_file.h"

namespace {

// Lines KEY=VALUE.
std::map<std::string, std::string> metadata_of(const std::string& text) {
  std::map<std::string, std::string> metadata;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t equals = std::min(line.find('='), line.size());
    metadata[line.substr(0, equals)] = line.substr(std::min(equals + 1, line.size()));
  }
  return metadata;
}

}  // namespace

// Any metadata in a checkpoint with valid checksums: it is restored or refused.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace twiddle;
  static const InputFolder folder;
  static Context ctx({}, 1);
  static const Sequential net(Shape{1, 1, 1});
  try {
    Diagnostics diagnostics;
    Params options(ConfigNode{}, "sgd", diagnostics);
    const auto optimizer = builtin_optimizers().make("sgd", options);
    SafeTensors state{{}, metadata_of(std::string(data, data + size))};
    state.metadata["model"] = write_safetensors(folder.path() + "/model.safetensors", SafeTensors{});
    write_safetensors(folder.path() + "/state.safetensors", state);
    restore_checkpoint(folder.path(), ctx, net, *optimizer);
  } catch (const Error&) {
  }
  return 0;
}
