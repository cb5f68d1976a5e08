#include "apps/report/run_charts.h"

#include <algorithm>
#include <cmath>

#include "apps/report/svg.h"
#include "models/loss.h"

namespace twiddle {
namespace {

using Points = std::vector<std::pair<double, double>>;

constexpr std::size_t most_points = 600;   // more than the pixels of a chart
constexpr std::size_t smoothed_part = 25;  // a mean covers 1/25 of the curve

// Converts a step to a position in epochs, which may differ in length.
class Timeline {
 public:
  explicit Timeline(const std::vector<EpochReport>& epochs) : epochs_(epochs) {}

  const char* title() const { return epochs_.empty() ? "step" : "epoch"; }

  double place(std::int64_t step) const {
    if (epochs_.empty()) return static_cast<double>(step);
    const auto after = std::lower_bound(epochs_.begin(), epochs_.end(), step,
                                        [](const EpochReport& epoch, std::int64_t s) { return epoch.step < s; });
    // the current epoch is assumed as long as the last one
    const auto within = after == epochs_.end() ? after - 1 : after;
    const std::int64_t begin = within == epochs_.begin() ? 0 : (within - 1)->step;
    const auto length = static_cast<double>(std::max<std::int64_t>(1, within->step - begin));
    return static_cast<double>(within->epoch - 1) + static_cast<double>(step - begin) / length;
  }

 private:
  const std::vector<EpochReport>& epochs_;
};

// Returns every n-th point, and the last one.
Points thinned(const Points& points) {
  const std::size_t stride = (points.size() + most_points - 1) / most_points;
  if (stride <= 1) return points;
  Points kept;
  for (std::size_t i = 0; i < points.size(); i += stride) kept.push_back(points[i]);
  if (kept.back() != points.back()) kept.push_back(points.back());
  return kept;
}

// Returns the moving mean, centered except at the end of the curve. The window shrinks at the start, so that the steep
// beginning of a loss is not shifted.
Points smoothed(const Points& points) {
  const std::size_t reach = points.size() / smoothed_part / 2;
  std::vector<double> sums{0};
  for (const auto& [x, y] : points) sums.push_back(sums.back() + y);
  Points means;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const std::size_t half = std::min(reach, i), begin = i - half, end = std::min(points.size(), i + half + 1);
    means.emplace_back(points[i].first, (sums[end] - sums[begin]) / static_cast<double>(end - begin));
  }
  return means;
}

}  // namespace

std::vector<std::string> run_charts(const History& history) {
  const Timeline time(history.epochs);
  Points loss, rate, speed, train_top1, val_loss, top1, top5, map, psnr;
  for (const StepReport& step : history.steps) {
    const double at = time.place(step.step);
    if (std::isfinite(step.loss)) loss.emplace_back(at, step.loss);
    rate.emplace_back(at, step.rate);
    speed.emplace_back(at, step.images_per_second);
  }
  for (const EpochReport& epoch : history.epochs) {
    const auto at = static_cast<double>(epoch.epoch);
    if (std::isfinite(epoch.train_top1)) train_top1.emplace_back(at, 100 * epoch.train_top1);
    if (!epoch.has_validation) continue;
    const auto put = [at](Points& points, double value) {
      if (std::isfinite(value)) points.emplace_back(at, value);
    };
    put(val_loss, epoch.val.loss);
    put(top1, 100 * epoch.val.top1);
    put(top5, 100 * epoch.val.top5);
    put(map, 100 * epoch.val.map);
    put(psnr, epoch.val.psnr);
  }
  std::pair<double, double> span{0, 1};
  for (const Points& points : {rate, val_loss})
    if (!points.empty()) span.second = std::max(span.second, points.back().first);

  std::vector<std::string> charts;
  const auto add = [&](const char* title, bool from_zero, std::vector<Curve> curves) {
    const auto empty = [](const Curve& curve) { return curve.points.empty(); };
    if (std::all_of(curves.begin(), curves.end(), empty)) return;
    for (Curve& curve : curves) curve.points = thinned(curve.points);
    charts.push_back(
        Chart{.title = title, .x_title = time.title(), .curves = curves, .x_span = span, .from_zero = from_zero}.svg());
  };
  add("Loss", true, {{"training", loss, true}, {"training", smoothed(loss)}, {"validation", val_loss}});
  add("Accuracy, %", false, {{"training", train_top1}, {"validation", top1}, {"validation, top 5", top5}});
  add("Mean average precision, %", false, {{"validation", map}});
  add("PSNR, dB", false, {{"validation", psnr}});
  add("Learning rate", true, {{"", rate}});
  add("Images a second", true, {{"", speed, true}, {"", smoothed(speed)}});
  return charts;
}

}  // namespace twiddle
