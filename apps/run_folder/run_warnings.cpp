#include "apps/run_folder/run_warnings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "framework/text.h"

namespace twiddle {
namespace {

// An average with decay d gives its initial weights a share of d^updates. The share exceeds 1 % if there are fewer
// updates than this factor times 1 / (1 - d).
constexpr double enough_updates = 5, good_updates = 10;

std::string slow_average(const Config::Train& train, std::int64_t updates) {
  const double slowness = 1 - train.ema_decay, count = static_cast<double>(updates);
  if (updates == 0 || train.ema_decay == 0 || train.ema_warmup || count * slowness >= enough_updates) return "";
  return fmt::format(
      "'ema': with decay {} the average is made of the run's first weights by {:.0f} % after its {}: set decay {:.2g} "
      "or less, or warmup: true",
      format_number(train.ema_decay), 100 * std::pow(train.ema_decay, count), format_count(updates, "update"),
      1 - std::min(0.5, good_updates / count));
}

std::string list_of(const std::vector<double>& values) {
  const std::string list = fmt::format("{:.4g}", fmt::join(values, ", "));
  return values.size() == 1 ? list : "[" + list + "]";
}

// Warns if mean or std of `normalize` is in bytes: both lie between 0 and 1.
std::string bytes_as_units(const Augment& augment) {
  std::vector<double> mean, deviation, right_mean, right_deviation;
  const auto is_too_large = [](double value) { return value > 1; };
  for (std::int64_t channel = 0; channel < augment.image_shape().at(0); ++channel) {
    mean.push_back(static_cast<double>(augment.byte_of_zero(channel)) / 255);
    deviation.push_back(static_cast<double>(augment.bytes_a_unit(channel)) / 255);
    right_mean.push_back(mean.back() / 255), right_deviation.push_back(deviation.back() / 255);
  }
  if (std::none_of(mean.begin(), mean.end(), is_too_large) &&
      std::none_of(deviation.begin(), deviation.end(), is_too_large))
    return "";
  return fmt::format(
      "'normalize': mean {} and std {} are in units of 1 = 255, for pixels are divided by 255 first; if they are meant "
      "for bytes, set mean {} and std {}",
      list_of(mean), list_of(deviation), list_of(right_mean), list_of(right_deviation));
}

std::string mean_of_means(const Config::Train& train, const Loss& loss) {
  if (train.accumulate == 1 || !loss.has_weighted_mean()) return "";
  return fmt::format(
      "'class_weights' with 'accumulate': each of the {} batches of a step is divided by the weights of its "
      "labels, "
      "which is not the mean of one batch of {} images",
      format_count(train.accumulate), format_count(train.accumulate * train.batch_size));
}

}  // namespace

std::vector<std::string> run_warnings(const Config& config, const Loss& loss, const Augment& augment,
                                      std::int64_t updates) {
  std::vector<std::string> warnings{slow_average(config.train, updates), bytes_as_units(augment),
                                    mean_of_means(config.train, loss)};
  std::erase(warnings, "");
  return warnings;
}

}  // namespace twiddle
