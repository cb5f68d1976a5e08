#include "apps/layer_bench.h"

#include <algorithm>
#include <array>

#include "framework/error.h"
#include "framework/text.h"

namespace twiddle {

namespace {

// The oracle, which sums in double, is no contender unless it is named.
bool contends(const ConvEngine& engine) {
  return !engine.by_name_only() && engine.name() != "direct";
}

// Where the engine fails while it is asked, as without its library, measuring it tells why.
bool may_do(const ConvEngine& engine, const ConvProblem& problem, ConvPass pass) try {
  return engine.supports(problem, pass);
} catch (const Error&) {
  return true;
}

}  // namespace

LayerBench::LayerBench(BenchOptions options) : options_(std::move(options)), ctx_(options_.device) {
  renew();
  std::vector<std::string> known;
  for (const auto& engine : all_) known.emplace_back(engine->name());
  for (const std::string& name : options_.engines)
    if (std::find(known.begin(), known.end(), name) == known.end())
      throw Error(ErrorKind::config, unknown_name("convolution engine", name, known));
}

void LayerBench::renew() {
  all_.clear();
  ctx_.stream->release_unused();
  all_ = make_conv_engines(options_.device, {.workspace_limit = options_.workspace_limit});
}

std::vector<ConvEngine*> LayerBench::engines() const {
  std::vector<ConvEngine*> asked;
  for (const auto& engine : all_) {
    const bool named =
        std::find(options_.engines.begin(), options_.engines.end(), engine->name()) != options_.engines.end();
    if (options_.engines.empty() ? contends(*engine) : named) asked.push_back(engine.get());
  }
  return asked;
}

ConvEngine* LayerBench::vendor() const {
  for (ConvEngine* engine : engines())
    if (engine->name() == "cudnn" || engine->name() == "onednn") return engine;
  return nullptr;
}

ConvEngine* LayerBench::spectral() const {
  for (ConvEngine* engine : engines())
    if (engine->shares_work_between_passes()) return engine;
  return nullptr;
}

ConvProblem LayerBench::problem_of(const BenchLayer& layer) const {
  ConvProblem problem = layer.problem;
  if (options_.batch > 0) problem.batch = options_.batch;
  problem.precision = options_.precision;
  return problem;
}

std::vector<ConvPass> LayerBench::passes_of(const BenchLayer& layer) const {
  std::vector<ConvPass> passes = options_.passes;
  if (layer.first) std::erase(passes, ConvPass::backward_input);
  return passes;
}

std::vector<BenchRow> LayerBench::run(const BenchLayer& layer) {
  const ConvProblem problem = problem_of(layer);
  const std::vector<ConvPass> passes = passes_of(layer);
  std::vector<BenchRow> rows;
  bool failed = false;
  for (ConvEngine* engine : engines()) {
    std::array<double, 3> in_step{};
    for (const ConvPass pass : passes) {
      if (!may_do(*engine, problem, pass)) continue;
      const Measurement measured = measure_tuned(ctx_, *engine, problem, pass, options_.budget_ms);
      BenchRow row;
      row.layer = layer.name, row.problem = problem, row.pass = pass, row.engine = engine->name();
      row.milliseconds = measured.milliseconds;
      row.error = measured.error;
      row.failure = measured.failure;
      if (row.measured()) {
        row.details = engine->details(problem, pass);
        row.workspace = engine->workspace_bytes(problem, pass);
      }
      failed = failed || !row.measured();
      rows.push_back(row);
    }
    const bool whole_step = options_.whole_steps && passes.size() == 3 && engine->shares_work_between_passes() &&
                            !rows.empty() && rows.back().engine == engine->name() && rows.back().measured();
    if (!whole_step) continue;
    try {
      in_step = measure_step(ctx_, *engine, problem, 3 * options_.budget_ms);
    } catch (const Error&) {  // the passes alone have been measured
      failed = true;
    }
    for (BenchRow& row : rows)
      if (row.engine == engine->name()) row.in_step_ms = in_step[static_cast<std::size_t>(row.pass)];
  }
  std::stable_sort(rows.begin(), rows.end(), [](const BenchRow& a, const BenchRow& b) { return a.pass < b.pass; });
  if (failed) renew();
  ctx_.stream->release_unused();
  return rows;
}

double speed_up(const BenchRow& row, const std::vector<BenchRow>& rows, const ConvEngine* vendor) {
  if (vendor == nullptr || !row.measured()) return 0;
  for (const BenchRow& other : rows)
    if (other.engine == vendor->name() && other.pass == row.pass && other.measured())
      return other.milliseconds / row.milliseconds;
  return 0;
}

}  // namespace twiddle
