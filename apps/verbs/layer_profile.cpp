#include "apps/verbs/layer_profile.h"
#include "models/checkpoints/checkpoint.h"

#include <fmt/core.h>

#include <algorithm>

#include "apps/command_line/text_table.h"
#include "apps/verbs/iteration_timer.h"

namespace twiddle {
namespace {

constexpr std::int64_t steps_between_reads = 100;  // every visit's events stay allocated until they are read
constexpr std::size_t most_kept = 10000;

}  // namespace

std::vector<LayerPass> layer_passes(const Sequential& net) {
  std::vector<LayerPass> passes;
  for (const Sequential::Item* item : net.all_items()) {
    const bool convolution = !item->layer->convolutions().empty();
    for (const char* part : {"forward", "backward", "backward_bias", "backward_input", "backward_weight"})
      if (!convolution || std::string(part) != "backward") passes.push_back({item->layer.get(), part});
  }
  return passes;
}

LayerProfile::LayerProfile(Trainer& trainer) : trainer_(trainer), profiler_(trainer.context().profiler) {
  profiler_.enable(true);
}

bool LayerProfile::wants_step(std::int64_t step) {
  return step % steps_between_reads == 0 || trainer_.state().batch == trainer_.batches_per_epoch();
}

void LayerProfile::on_step(const StepReport& report) {
  take();
  if (report.batch == report.batches) profiler_.enable(false);  // excludes the validation that follows
}

void LayerProfile::on_epoch(const EpochReport& /*report*/) {
  profiler_.enable(true);
}

void LayerProfile::take() {
  for (const Profiler::Entry& entry : profiler_.entries()) {
    Row& row = rows_[{entry.name, entry.part}];
    row.visits += static_cast<std::int64_t>(entry.milliseconds.size());
    const std::size_t space = most_kept - row.milliseconds.size(), more = std::min(space, entry.milliseconds.size());
    row.milliseconds.insert(row.milliseconds.end(), entry.milliseconds.begin(),
                            entry.milliseconds.begin() + static_cast<std::ptrdiff_t>(more));
  }
  profiler_.clear();
}

std::string LayerProfile::table() {
  take();
  struct Line {
    const LayerPass& pass;
    std::int64_t visits;
    double median;
  };
  const std::vector<LayerPass> passes = layer_passes(*trainer_.model().net);
  std::vector<Line> lines;
  double sum = 0;
  for (const LayerPass& pass : passes) {
    const auto found = rows_.find({pass.layer->name(), pass.part});
    if (found == rows_.end()) continue;
    lines.push_back({pass, found->second.visits, Timing{found->second.milliseconds}.quantile(0.5)});
    sum += lines.back().median;
  }
  TextTable table({"layer", "pass", "visits", "median ms", "share"});
  for (const Line& line : lines)
    table.add({line.pass.layer->name(), line.pass.part, std::to_string(line.visits), fmt::format("{:.3f}", line.median),
               fmt::format("{:.1f} %", sum > 0 ? 100 * line.median / sum : 0)});
  return fmt::format("per layer, timers around each pass of the training steps ({:.3f} ms in total):\n", sum) +
         table.text();
}

}  // namespace twiddle
