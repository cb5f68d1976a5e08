#include "apps/report/best_validation.h"
#include "apps/report/metrics.h"
#include "apps/report/run_charts.h"
#include "apps/run_folder/config_origin.h"
#include "framework/printable.h"
#include "models/checkpoints/checkpoint.h"
#include "tests/fuzz/input_file.h"

namespace {

using namespace twiddle;

// Values that were read must be within ten images and three classes.
void read_best(const std::string& folder, TargetKind target) {
  const EvaluatedSet set{target, 10, 3, 4};
  const BestValidation best(folder, 1, "loss", {set});
  require(best.discarded() == printable(best.discarded()), "a message that cannot be shown");
  if (best.get() == nullptr) return;
  const EvalResult& result = *best.get()->result;
  const auto is_image = [](std::int64_t index) { return index >= 0 && index < 10; };
  for (const EvalResult::Wrong& wrong : result.wrong) require(is_image(wrong.index), "an image out of range");
  for (const EvalResult::Scored& image : result.worst) require(is_image(image.index), "an image out of range");
  for (const EvalResult::Restored& image : result.restored) require(is_image(image.index), "an image out of range");
  for (const auto& [pair, images] : result.confusion)
    require(pair.first >= 0 && pair.first < 3 && pair.second >= 0 && pair.second < 3 && images >= 0 && images <= 10,
            "a count out of range");
}

}  // namespace

// Any bytes as a file of a run folder, which the first byte selects: it is read, or discarded with a printable message.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const InputFolder folder;
  if (size == 0) return 0;
  const Input rest(data + 1, size - 1);
  constexpr TargetKind targets[] = {TargetKind::label, TargetKind::labels, TargetKind::input};
  const int kind = data[0] % 5;
  if (kind < 3) {
    folder.write("best.json", rest);
    read_best(folder.path(), targets[kind]);
  } else if (kind == 3) {
    folder.write("metrics.jsonl", rest);
    run_charts(read_history(folder.path()));
    RunState state;
    state.step = state.epoch = 5;
    const Metrics resumed(folder.path(), metrics_of(TargetKind::label), 100, state);
  } else {
    folder.write("environment.json", rest);
    const std::string origin = config_origin(folder.path());
    require(origin.empty() || origin.find('\0') == std::string::npos, "no path");
  }
  return 0;
}
