#include "apps/pass_stages.h"

#include <algorithm>
#include <array>

#include "framework/error.h"
#include "layers/conv/conv_check.h"

namespace twiddle {
namespace {

constexpr int warm_runs = 2, timed_runs = 11;

// The stages of one pass by name, each as the medians of its visits, in order.
class Visits {
 public:
  Visits(ConvPass pass, const std::vector<Profiler::Entry>& entries, int runs)
      : part_(to_string(pass)), entries_(entries), runs_(static_cast<std::size_t>(runs)) {}

  std::vector<double> of(const std::string& stage) const {
    const std::string part = stage.empty() ? part_ : part_ + ": " + stage;
    for (const Profiler::Entry& entry : entries_)
      if (entry.part == part) return medians(entry.milliseconds);
    return {};
  }
  double once(const std::string& stage) const {
    const std::vector<double> times = of(stage);
    if (times.size() > 1)
      throw Error(join("a pass of several slices or groups has its stages mixed; a smaller --batch-size goes in one (",
                       part_, ", ", stage, " ", times.size(), " times)"));
    return times.empty() ? 0 : times[0];
  }

 private:
  std::vector<double> medians(const std::vector<double>& times) const {
    require(times.size() % runs_ == 0, "a stage of ", part_, " ran ", times.size(), " times in ", runs_, " runs");
    const std::size_t visits = times.size() / runs_;
    std::vector<double> middle;
    for (std::size_t visit = 0; visit < visits; ++visit) {
      std::vector<double> each;
      for (std::size_t run = 0; run < runs_; ++run) each.push_back(times[run * visits + visit]);
      std::nth_element(each.begin(), each.begin() + static_cast<std::ptrdiff_t>(runs_ / 2), each.end());
      middle.push_back(each[runs_ / 2]);
    }
    return middle;
  }

  std::string part_;
  const std::vector<Profiler::Entry>& entries_;
  std::size_t runs_;
};

}  // namespace

PassStages stages_of(ConvPass pass, const std::vector<Profiler::Entry>& entries, int runs) {
  const Visits visits(pass, entries, runs);
  // The paper's A and B; the engine transforms B first.
  const bool reads_w = pass != ConvPass::backward_weight, reads_x = pass != ConvPass::backward_input;
  const char *const a = reads_w ? "fft of w" : "fft of x", *const b = reads_w && reads_x ? "fft of x" : "fft of y";
  PassStages stages;
  stages.whole = visits.once("");
  stages.fft_a = visits.once(a), stages.fft_b = visits.once(b);
  stages.product = visits.once("product"), stages.ifft_c = visits.once("inverse");

  // What is a part of these is taken out of them: by place, as the engine comes to B, A and C.
  const auto take = [](double part, double& from, double& to) { from -= part, to += part; };
  const std::vector<double> transposes = visits.of("transpose"), pads = visits.of("pad");
  if (transposes.size() > 1)
    take(transposes[0], stages.fft_b, stages.transpose_b), take(transposes[1], stages.fft_a, stages.transpose_a);
  if (transposes.size() == 1 || transposes.size() == 3) take(transposes.back(), stages.ifft_c, stages.transpose_c);
  if (pads.size() > 1) take(pads[0], stages.fft_b, stages.padding), take(pads[1], stages.fft_a, stages.padding);
  take(visits.once("crop"), stages.ifft_c, stages.padding);
  stages.rest = stages.whole - stages.fft_a - stages.transpose_a - stages.fft_b - stages.transpose_b - stages.product -
                stages.transpose_c - stages.ifft_c - stages.padding;
  return stages;
}

PassStages measure_stages(Context& ctx, ConvEngine& engine, const ConvProblem& problem, ConvPass pass) {
  ConvOperands operands = random_operands(*ctx.stream, problem, pass);
  const std::string part(to_string(pass));
  const auto run = [&] {
    for (Tensor* tensor : {&operands.x, &operands.w, &operands.y}) tensor->write();
    const ProfilerRange range(ctx.profiler, *ctx.stream, "layer", part.c_str());
    engine.run(ctx, problem, pass, operands);
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
