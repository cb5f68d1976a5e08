#pragma once
#include <memory>
#include <string>
#include <vector>

#include "apps/bench/bench_layers.h"
#include "fft/spectral_engine.h"
#include "framework/context.h"
#include "layers/conv/engines/engines.h"
#include "layers/conv/tuner/autotuner.h"

namespace twiddle {

// Options of a convolution benchmark.
struct BenchOptions {
  Device device = {};
  Precision precision = Precision::fp32;
  std::size_t workspace_limit = std::size_t(4) << 30;
  int batch = 0;                          // 0: each layer's own batch size
  std::vector<std::string> engines = {};  // empty: all that `rule` and `measured` select from
  std::vector<ConvPass> passes{std::begin(every_pass), std::end(every_pass)};
  double budget_ms = 50;    // for one engine and pass, after its warm-up
  bool whole_steps = true;  // also time the passes consecutively if an engine's passes share spectra
  bool evaluation = false;  // also time FFT convolution forward plans as in evaluation: rows of engine "NAME FX"
};
// Returns the row name for an engine timed with filters transformed beforehand, which Lavin and Gray call FX.
std::string with_kept_filters(std::string_view engine);

// One engine for one pass of one layer.
struct BenchRow {
  std::string layer;
  ConvProblem problem;
  ConvPass pass = ConvPass::forward;
  std::string engine, plan;
  double milliseconds = 0;
  double in_step_ms = 0;  // time if the pass reuses results of the passes before it; 0: no reuse
  double error = 0;
  std::size_t workspace = 0;
  std::string failure;  // empty: measured

  bool measured() const { return failure.empty(); }
  double multiply_adds_per_second() const { return problem.flops() / 2 / (milliseconds * 1e-3); }
};

// Measures engines on named layers, one layer at a time.
class LayerBench {
 public:
  explicit LayerBench(BenchOptions options);

  const BenchOptions& options() const { return options_; }
  Context& context() { return ctx_; }
  std::vector<ConvEngine*> engines() const;       // the requested engines
  ConvEngine* vendor() const;                     // the baseline; null: not requested
  std::vector<SpectralEngine*> spectral() const;  // the requested FFT convolution engines

  ConvProblem problem_of(const BenchLayer& layer) const;  // at the requested batch size and precision
  std::vector<ConvPass> passes_of(const BenchLayer& layer) const;
  // Measures each engine that supports a pass, pass by pass. A failure gives a row with the reason.
  std::vector<BenchRow> run(const BenchLayer& layer);
  void renew();  // recreates the engines without plans and memory of earlier layers

 private:
  BenchOptions options_;
  Context ctx_;
  // all engines of the device; requested engines with a single plan
  std::vector<std::unique_ptr<ConvEngine>> all_, asked_;
};

// Returns the speed-up over `vendor`'s row of the same pass; 0: no such row.
double speed_up(const BenchRow& row, const std::vector<BenchRow>& rows, const ConvEngine* vendor);

}  // namespace twiddle
