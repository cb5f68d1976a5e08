#include "models/evaluation/metric.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

namespace twiddle {

std::string Metric::text(double value) const {
  if (std::isnan(value)) return "-";  // nothing to measure it on, such as mAP without a label
  if (unit == Unit::share) return fmt::format("{:.2f}%", 100 * value);
  return unit == Unit::decibels ? fmt::format("{:.2f} dB", value) : fmt::format("{:.4f}", value);
}

const std::vector<Metric>& every_metric() {
  using Unit = Metric::Unit;
  static const std::vector<Metric> metrics{{"loss", "loss", &Scores::loss, Unit::none, false},
                                           {"top1", "top-1", &Scores::top1, Unit::share, true},
                                           {"top5", "top-5", &Scores::top5, Unit::share, true},
                                           {"map", "mAP", &Scores::map, Unit::share, true},
                                           {"psnr", "PSNR", &Scores::psnr, Unit::decibels, true}};
  return metrics;
}

std::vector<Metric> metrics_of(TargetKind kind) {
  std::vector<Metric> metrics = every_metric();
  std::erase_if(metrics, [kind](const Metric& metric) {
    if (metric.score == &Scores::loss) return false;
    if (metric.score == &Scores::map) return kind != TargetKind::labels;
    if (metric.score == &Scores::psnr) return !is_image(kind);
    return kind != TargetKind::label;
  });
  return metrics;
}

}  // namespace twiddle
