#include "layers/conv/spectral_tuner.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <optional>

#include "framework/error.h"
#include "layers/conv/choice_cache.h"
#include "layers/conv/measure.h"

namespace twiddle {

namespace {

constexpr ConvPass passes[] = {ConvPass::forward, ConvPass::backward_input, ConvPass::backward_weight};
constexpr double budget_ms = 10;

class SpectralTuning {
 public:
  SpectralTuning(Context& ctx, SpectralEngine& engine, const ConvProblem& problem)
      : ctx_(ctx), engine_(engine), problem_(problem), strategies_(engine.strategies(problem)) {}

  // False where the cache does not know all passes.
  bool recall(ChoiceCache& cache, std::size_t workspace_limit) {
    std::array<const SpectralStrategy*, 3> known{};
    for (const ConvPass pass : passes) {
      const auto entry = cache.find(key(pass, workspace_limit));
      if (!entry) return false;
      const auto same = std::find_if(strategies_.begin(), strategies_.end(), [&](const SpectralStrategy& strategy) {
        return engine_.describe(strategy) == entry->choice;
      });
      if (same == strategies_.end()) return false;
      known[static_cast<std::size_t>(pass)] = &*same;
    }
    for (const ConvPass pass : passes) engine_.set_strategy(problem_, pass, *known[static_cast<std::size_t>(pass)]);
    return true;
  }

  // False where nothing keeps the precision; then the first strategy stands, for whoever asks to refuse it.
  bool measure() {
    std::vector<SpectralStrategy> grids;  // with the usual product
    for (const SpectralStrategy& strategy : strategies_)
      if (strategy.product == strategies_.front().product) grids.push_back(strategy);
    std::vector<double> times;
    for (const SpectralStrategy& strategy : grids) times.push_back(milliseconds_of(strategy));
    std::vector<std::size_t> order(grids.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return times[a] < times[b]; });
    for (const std::size_t best : order)
      if (times[best] < std::numeric_limits<double>::infinity() && choose_products(grids[best])) return true;
    for (const ConvPass pass : passes) engine_.set_strategy(problem_, pass, strategies_.front());
    return false;
  }

  void store(ChoiceCache& cache, std::size_t workspace_limit) const {
    for (const ConvPass pass : passes) {
      const auto index = static_cast<std::size_t>(pass);
      cache.store(key(pass, workspace_limit),
                  {engine_.describe(engine_.strategy(problem_, pass)), milliseconds_[index]});
    }
  }

 private:
  std::string key(ConvPass pass, std::size_t workspace_limit) const {
    return choice_key(ctx_.stream->device(), problem_, pass, workspace_limit,
                      join("strategies of ", engine_.name(), "(", engine_.library(), ") "));
  }

  double milliseconds_of(const SpectralStrategy& strategy) {
    for (const ConvPass pass : passes) engine_.set_strategy(problem_, pass, strategy);
    try {
      const std::array<double, 3> times = measure_step(ctx_, engine_, problem_, budget_ms);
      return times[0] + times[1] + times[2];
    } catch (const Error&) {  // no room for it, or its library refuses
      engine_.buffers().forget();
      return std::numeric_limits<double>::infinity();
    }
  }

  // False where none of them keeps the precision in one of the passes.
  bool choose_products(const SpectralStrategy& with_grid) {
    std::array<std::optional<SpectralStrategy>, 3> best;
    std::array<double, 3> least;
    least.fill(std::numeric_limits<double>::infinity());
    for (const SpectralStrategy& strategy : strategies_) {
      if (strategy.grid != with_grid.grid || strategy.transform != with_grid.transform) continue;
      for (const ConvPass pass : passes) {
        engine_.set_strategy(problem_, pass, strategy);
        const Measurement result = twiddle::measure(ctx_, engine_, problem_, pass);
        const auto index = static_cast<std::size_t>(pass);
        if (!(result.error <= promise(problem_.precision)) || result.milliseconds >= least[index]) continue;
        least[index] = result.milliseconds;
        best[index] = strategy;
      }
    }
    for (const ConvPass pass : passes)
      if (!best[static_cast<std::size_t>(pass)]) return false;
    for (const ConvPass pass : passes) engine_.set_strategy(problem_, pass, *best[static_cast<std::size_t>(pass)]);
    milliseconds_ = least;
    return true;
  }

  Context& ctx_;
  SpectralEngine& engine_;
  const ConvProblem& problem_;
  std::vector<SpectralStrategy> strategies_;
  std::array<double, 3> milliseconds_{};
};

}  // namespace

SpectralEngine::Tuner spectral_tuner(std::shared_ptr<ChoiceCache> cache, std::size_t workspace_limit) {
  return [cache = std::move(cache), workspace_limit](Context& ctx, SpectralEngine& engine, const ConvProblem& problem) {
    SpectralTuning tuning(ctx, engine, problem);
    if (cache && tuning.recall(*cache, workspace_limit)) return;
    const bool chosen = tuning.measure();
    if (cache && chosen) tuning.store(*cache, workspace_limit);
    engine.buffers().forget();  // spectra of the rehearsal
    ctx.stream->release_unused();
  };
}

}  // namespace twiddle
