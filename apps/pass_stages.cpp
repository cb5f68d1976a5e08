#include "apps/pass_stages.h"

#include <algorithm>
#include <cmath>
#include <numeric>

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

double sum(const std::vector<double>& values, std::size_t first = 0) {
  return std::accumulate(values.begin() + static_cast<std::ptrdiff_t>(std::min(first, values.size())), values.end(),
                         0.0);
}

// What the transforms of a pass are made of, piece by piece: those of B, then those of A, then the way back.
class Parts {
 public:
  explicit Parts(const Visits& visits)
      : ffts_(visits.of("fft")),
        pads_(visits.of("pad")),
        transposes_(visits.of("transpose")),
        crops_(visits.of("crop")) {}

  std::size_t forward() const { return ffts_.size(); }
  double pad(std::size_t piece) const { return piece < pads_.size() ? pads_[piece] : 0; }
  double transpose(std::size_t piece) const { return piece < transposes_.size() ? transposes_[piece] : 0; }
  double inverse_transposes() const { return sum(transposes_, forward()); }
  double crops() const { return sum(crops_); }

  // How many of the first pieces take that time together.
  std::size_t lasting(double milliseconds) const {
    std::size_t best = 0;
    double so_far = 0, nearest = milliseconds;
    for (std::size_t piece = 0; piece < forward(); ++piece) {
      so_far += pad(piece) + ffts_[piece] + transpose(piece);
      if (std::abs(so_far - milliseconds) >= nearest) continue;
      nearest = std::abs(so_far - milliseconds);
      best = piece + 1;
    }
    return best;
  }

 private:
  std::vector<double> ffts_, pads_, transposes_, crops_;
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
  stages.rest = stages.whole - stages.fft_a - stages.fft_b - stages.product - stages.ifft_c;

  // Transposes and padding are parts of these, and are taken out of them.
  const auto take = [](double part, double& from, double& to) { from -= part, to += part; };
  const Parts parts(visits);
  const std::size_t of_b = parts.lasting(stages.fft_b);
  for (std::size_t piece = 0; piece < parts.forward(); ++piece) {
    const bool is_b = piece < of_b;
    take(parts.pad(piece), is_b ? stages.fft_b : stages.fft_a, stages.padding);
    take(parts.transpose(piece), is_b ? stages.fft_b : stages.fft_a, is_b ? stages.transpose_b : stages.transpose_a);
  }
  take(parts.inverse_transposes(), stages.ifft_c, stages.transpose_c);
  take(parts.crops(), stages.ifft_c, stages.padding);
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
