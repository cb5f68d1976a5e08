#pragma once
#include <memory>
#include <string>
#include <vector>

#include "apps/bench/bench_layers.h"
#include "fft/spectral_engine.h"
#include "framework/context.h"
#include "layers/conv/engines/engines.h"
#include "layers/conv/tuner/contest.h"

namespace twiddle {

// What a benchmark of convolutions goes over, and how.
struct BenchOptions {
  Device device = {};
  Precision precision = Precision::fp32;
  std::size_t workspace_limit = std::size_t(4) << 30;
  int batch = 0;                          // 0: each layer's own
  std::vector<std::string> engines = {};  // empty: all that rule and measurement choose from
  std::vector<ConvPass> passes{std::begin(every_pass), std::end(every_pass)};
  double budget_ms = 50;    // for one engine and pass, after its warm-up
  bool whole_steps = true;  // time the passes in a row, too, where an engine's share their spectra
  bool evaluation = false;  // time forward plans by spectra as evaluation runs them, too: rows of engine "NAME FX"
};
// What rows are called that were timed with the filters transformed beforehand, which Lavin and Gray call FX.
std::string with_kept_filters(std::string_view engine);

// One engine at one pass of one layer.
struct BenchRow {
  std::string layer;
  ConvProblem problem;
  ConvPass pass = ConvPass::forward;
  std::string engine, plan;
  double milliseconds = 0;
  double in_step_ms = 0;  // with what the passes before it left behind; 0: it can use nothing of theirs
  double error = 0;
  std::size_t workspace = 0;
  std::string failure;  // empty: it was measured

  bool measured() const { return failure.empty(); }
  double multiply_adds_per_second() const { return problem.flops() / 2 / (milliseconds * 1e-3); }
};

// Measures engines on named layers, one after the other.
class LayerBench {
 public:
  explicit LayerBench(BenchOptions options);

  const BenchOptions& options() const { return options_; }
  Context& context() { return ctx_; }
  std::vector<ConvEngine*> engines() const;       // those that were asked for
  ConvEngine* vendor() const;                     // the one that others are held against; null: not among them
  std::vector<SpectralEngine*> spectral() const;  // of these, the ones that work by spectra

  ConvProblem problem_of(const BenchLayer& layer) const;  // at the batch size and precision asked for
  std::vector<ConvPass> passes_of(const BenchLayer& layer) const;
  // Pass by pass, each engine that supports it. What fails is a row that says why.
  std::vector<BenchRow> run(const BenchLayer& layer);
  void renew();  // engines without plans or memory of earlier layers

 private:
  BenchOptions options_;
  Context ctx_;
  std::vector<std::unique_ptr<ConvEngine>> all_, asked_;  // of the device; and those with one plan, by name
};

// How many times as fast as `vendor`'s row of the same pass; 0: there is none.
double speed_up(const BenchRow& row, const std::vector<BenchRow>& rows, const ConvEngine* vendor);

}  // namespace twiddle
