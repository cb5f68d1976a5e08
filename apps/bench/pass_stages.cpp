#include "apps/bench/pass_stages.h"

#include <algorithm>

#include "framework/error.h"
#include "layers/conv/tuner/conv_check.h"

namespace twiddle {
namespace {

constexpr int warm_runs = 2, timed_runs = 11;

// Returns the stages of one pass by name: the median over the runs of a stage's total time per run.
class Stages {
 public:
  Stages(ConvPass pass, const std::vector<Profiler::Entry>& entries, int runs)
      : part_(to_string(pass)), entries_(entries), runs_(static_cast<std::size_t>(runs)) {}

  double whole() const { return median_of(part_); }
  double operator[](const std::string& stage) const { return median_of(part_ + ": " + stage); }

 private:
  double median_of(const std::string& part) const {
    const auto found = std::find_if(entries_.begin(), entries_.end(),
                                    [&](const Profiler::Entry& entry) { return entry.part == part; });
    if (found == entries_.end()) return 0;
    const std::vector<double>& times = found->milliseconds;
    require(times.size() % runs_ == 0, part, " was visited ", times.size(), " times in ", runs_, " runs");
    std::vector<double> sums(runs_);
    for (std::size_t i = 0; i < times.size(); ++i) sums[i / (times.size() / runs_)] += times[i];
    const auto middle = sums.begin() + static_cast<std::ptrdiff_t>(runs_ / 2);
    std::nth_element(sums.begin(), middle, sums.end());
    return *middle;
  }

  std::string part_;
  const std::vector<Profiler::Entry>& entries_;
  std::size_t runs_;
};

}  // namespace

PassStages stages_of(ConvPass pass, const std::vector<Profiler::Entry>& entries, int runs) {
  const Stages times(pass, entries, runs);
  // A and B as in the paper.
  const bool reads_w = pass != ConvPass::backward_weight, reads_x = pass != ConvPass::backward_input;
  const std::string a = reads_w ? "fft of w" : "fft of x", b = reads_w && reads_x ? "fft of x" : "fft of y",
                    c = "inverse";
  PassStages stages;
  stages.transpose_a = times[a + ": transpose"];
  stages.transpose_b = times[b + ": transpose"];
  stages.transpose_c = times[c + ": transpose"];
  stages.padding = times[a + ": pad"] + times[b + ": pad"] + times[c + ": crop"];
  stages.fft_a = times[a] - times[a + ": pad"] - stages.transpose_a;
  stages.fft_b = times[b] - times[b + ": pad"] - stages.transpose_b;
  stages.ifft_c = times[c] - times[c + ": crop"] - stages.transpose_c;
  stages.product = times["product"];
  stages.whole = times.whole();
  stages.rest = stages.whole - times[a] - times[b] - stages.product - times[c];
  return stages;
}

PassStages measure_stages(Context& ctx, const ConvPlan& plan, const ConvProblem& problem, ConvPass pass) {
  ConvOperands operands = random_operands(*ctx.stream, problem, pass);
  const std::string part(to_string(pass));
  const auto run = [&] {
    for (Tensor* tensor : {&operands.x, &operands.w, &operands.y}) tensor->write();
    const ProfilerRange range(ctx.profiler, *ctx.stream, "layer", part.c_str());
    plan.run(ctx, operands);
  };
  ctx.profiler.enable(false);
  for (int i = 0; i < warm_runs; ++i) run();
  ctx.profiler.clear();
  ctx.profiler.enable(true, true);
  for (int i = 0; i < timed_runs; ++i) run();
  ctx.profiler.enable(false);
  const PassStages stages = stages_of(pass, ctx.profiler.entries(), timed_runs);
  ctx.profiler.clear();
  return stages;
}

}  // namespace twiddle
