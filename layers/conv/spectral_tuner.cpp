#include "layers/conv/spectral_tuner.h"

#include <algorithm>
#include <array>
#include <limits>

#include "framework/error.h"
#include "layers/conv/choice_cache.h"
#include "layers/conv/measure.h"
#include "layers/conv/measuring.h"

namespace twiddle {

namespace {

// Every grid gets a first look; only those that come near the fastest are measured in earnest.
constexpr double first_look_ms = 1, second_look_ms = 10, near = 1.3;
constexpr double most_apart = 3;  // what was chosen, measured again: beyond, the machine was busy with other things
constexpr std::size_t most_second_looks = 4;

// Milliseconds of the passes where they follow each other as in a training step.
struct Timed {
  SpectralStrategy strategy;
  std::array<double, 3> passes;
  double step() const { return passes[0] + passes[1] + passes[2]; }
  bool possible() const { return step() < std::numeric_limits<double>::infinity(); }
};

bool faster(const Timed& a, const Timed& b) {
  return a.step() < b.step();
}

class SpectralTuning {
 public:
  SpectralTuning(Context& ctx, SpectralEngine& engine, const ConvProblem& problem, Measuring* measuring)
      : ctx_(ctx), engine_(engine), problem_(problem), measuring_(measuring), strategies_(engine.strategies(problem)) {}

  // False where the cache does not know all passes.
  bool recall(ChoiceCache& cache, std::size_t workspace_limit) {
    std::array<const SpectralStrategy*, 3> known{};
    for (const ConvPass pass : every_pass) {
      const auto entry = cache.find(key(pass, workspace_limit));
      if (!entry) return false;
      const auto same = std::find_if(strategies_.begin(), strategies_.end(), [&](const SpectralStrategy& strategy) {
        return engine_.describe(strategy) == entry->choice;
      });
      if (same == strategies_.end()) return false;
      known[static_cast<std::size_t>(pass)] = &*same;
    }
    for (const ConvPass pass : every_pass) engine_.set_strategy(problem_, pass, *known[static_cast<std::size_t>(pass)]);
    return true;
  }

  // False where nothing keeps the precision; then the first strategy stands, for whoever asks to refuse it.
  bool measure() {
    for (const Timed& grid : fastest_grids())
      if (grid.possible() && choose_with(grid)) return true;
    for (const ConvPass pass : every_pass) engine_.set_strategy(problem_, pass, strategies_.front());
    return false;
  }

  // Whether what was chosen takes the time that it was chosen for.
  bool repeats() const try {
    const std::array<double, 3> again = measure_step(ctx_, engine_, problem_, second_look_ms);
    const double now = again[0] + again[1] + again[2], then = milliseconds_[0] + milliseconds_[1] + milliseconds_[2];
    return std::max(now, then) <= most_apart * std::min(now, then);
  } catch (const Error&) {
    return false;
  }

  void store(ChoiceCache& cache, std::size_t workspace_limit) const {
    for (const ConvPass pass : every_pass) {
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

  // With the usual product, and the usual transform where it serves the grid.
  std::vector<Timed> fastest_grids() {
    std::vector<Timed> grids;
    for (const SpectralStrategy& strategy : strategies_) {
      const auto same_grid = [&](const Timed& other) { return other.strategy.grid == strategy.grid; };
      if (std::none_of(grids.begin(), grids.end(), same_grid)) grids.push_back(look(strategy, first_look_ms));
    }
    std::stable_sort(grids.begin(), grids.end(), faster);
    const double limit = near * grids.front().step();
    for (std::size_t i = 0; i < std::min(grids.size(), most_second_looks) && grids[i].step() <= limit; ++i)
      look_again(grids[i]);
    std::stable_sort(grids.begin(), grids.end(), faster);
    return grids;
  }

  // Another transform where it is faster, and then each pass's product. False where no product keeps the precision.
  bool choose_with(Timed best) {
    const SpectralStrategy usual = best.strategy;
    std::size_t looked_at = usual.transform;  // a transform's strategies follow each other, the usual product first
    for (const SpectralStrategy& other : strategies_) {
      if (other.grid != usual.grid || other.transform == looked_at) continue;
      looked_at = other.transform;
      best = std::min(best, both_looks(other, best), faster);
    }
    std::vector<Timed> products{best};
    for (const SpectralStrategy& other : strategies_)
      if (other.grid == usual.grid && other.transform == best.strategy.transform &&
          other.product != best.strategy.product)
        products.push_back(both_looks(other, best));
    return std::all_of(std::begin(every_pass), std::end(every_pass),
                       [&](ConvPass pass) { return choose(pass, products); });
  }

  // The fastest of them that keeps the precision; in a pass that nobody timed, the first.
  bool choose(ConvPass pass, std::vector<Timed> products) {
    if (!problem_.in_training(pass)) {
      engine_.set_strategy(problem_, pass, products.front().strategy);
      return true;
    }
    const auto index = static_cast<std::size_t>(pass);
    std::stable_sort(products.begin(), products.end(),
                     [&](const Timed& a, const Timed& b) { return a.passes[index] < b.passes[index]; });
    for (const Timed& product : products) {
      if (!product.possible()) break;
      engine_.set_strategy(problem_, pass, product.strategy);
      if (!(twiddle::measure(ctx_, engine_, problem_, pass, 0).error <= promise(problem_.precision))) continue;
      milliseconds_[index] = product.passes[index];
      return true;
    }
    return false;
  }

  // In earnest only where it comes near the best so far.
  Timed both_looks(const SpectralStrategy& strategy, const Timed& best) {
    Timed timed = look(strategy, first_look_ms);
    if (timed.step() <= near * best.step()) look_again(timed);
    return timed;
  }

  // What takes long was looked at for long the first time.
  void look_again(Timed& timed) {
    if (timed.possible() && timed.step() < second_look_ms) timed = look(timed.strategy, second_look_ms);
  }

  Timed look(const SpectralStrategy& strategy, double budget_ms) {
    if (measuring_) measuring_->between_two();
    for (const ConvPass pass : every_pass) engine_.set_strategy(problem_, pass, strategy);
    try {
      return {strategy, measure_step(ctx_, engine_, problem_, budget_ms)};
    } catch (const Error&) {  // no room for it, or its library refuses
      engine_.buffers().forget();
      Timed impossible{strategy, {}};
      impossible.passes.fill(std::numeric_limits<double>::infinity());
      return impossible;
    }
  }

  Context& ctx_;
  SpectralEngine& engine_;
  const ConvProblem& problem_;
  Measuring* measuring_;  // null: nobody waits
  std::vector<SpectralStrategy> strategies_;
  std::array<double, 3> milliseconds_{};
};

}  // namespace

SpectralEngine::Tuner spectral_tuner(std::shared_ptr<ChoiceCache> cache, std::size_t workspace_limit,
                                     std::shared_ptr<Measuring> measuring) {
  return [cache = std::move(cache), workspace_limit, measuring = std::move(measuring)](
             Context& ctx, SpectralEngine& engine, const ConvProblem& problem) {
    SpectralTuning tuning(ctx, engine, problem, measuring.get());
    if (cache && tuning.recall(*cache, workspace_limit)) return;
    const bool chosen = tuning.measure();
    if (cache && chosen && tuning.repeats()) tuning.store(*cache, workspace_limit);
    engine.buffers().forget();  // spectra of the rehearsal
    ctx.stream->release_unused();
  };
}

}  // namespace twiddle
