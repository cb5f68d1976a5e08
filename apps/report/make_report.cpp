#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "apps/command_line/text_table.h"
#include "apps/verbs/progress.h"
#include "apps/verbs/report.h"
#include "apps/version.h"
#include "data/augmentation/augment.h"
#include "framework/context.h"
#include "framework/error.h"
#include "framework/parameter.h"
#include "framework/text.h"
#include "layers/sequential.h"
#include "models/builder.h"
#include "models/checkpoints/checkpoint.h"
#include "models/config/config.h"

namespace twiddle {
namespace {

constexpr std::int64_t most_filters = 96;
constexpr int most_pixels = 160;  // of the longer side of a picture

// Returns the weights of one filter as a picture: in color for three input channels, otherwise the first channel in
// gray.
Image filter_picture(const float* weights, int channels, int height, int width) {
  Image image{channels == 3 ? 3 : 1, height, width, {}};
  const std::size_t count = static_cast<std::size_t>(image.channels) * height * width;
  const auto [low, high] = std::minmax_element(weights, weights + count);
  const float range = *high > *low ? *high - *low : 1;
  for (std::size_t i = 0; i < count; ++i)
    image.pixels.push_back(static_cast<std::uint8_t>(255 * (weights[i] - *low) / range));
  return image;
}

std::vector<Report::Picture> first_filters(Context& ctx, const Sequential& net) {
  for (const Sequential::Item* item : net.all_items()) {
    for (const Parameter& parameter : item->layer->parameters()) {
      if (parameter.shape.size() != 4 || parameter.shape[2] * parameter.shape[3] < 4) continue;
      const std::vector<float> weights = parameter.variable.value().to_vector(*ctx.stream);
      const std::int64_t filter_size = count_of(parameter.shape) / parameter.shape[0];
      std::vector<Report::Picture> pictures;
      for (std::int64_t f = 0; f < std::min(parameter.shape[0], most_filters); ++f) {
        Image image = filter_picture(weights.data() + f * filter_size, static_cast<int>(parameter.shape[1]),
                                     static_cast<int>(parameter.shape[2]), static_cast<int>(parameter.shape[3]));
        pictures.push_back({std::move(image), ""});
      }
      return pictures;
    }
  }
  return {};
}

Image no_larger(Image image) {
  const int longer = std::max(image.height, image.width);
  if (longer <= most_pixels) return image;
  return resized(image, std::max(1, image.height * most_pixels / longer),
                 std::max(1, image.width * most_pixels / longer));
}

std::string class_name(const std::vector<std::string>& classes, std::int64_t label) {
  const auto index = static_cast<std::size_t>(label);
  return index < classes.size() ? classes[index] : std::to_string(label);
}

std::string wrong_caption(const EvalResult::Wrong& wrong, const std::vector<std::string>& classes) {
  return fmt::format("{} predicted as {}, {:.0f}%", class_name(classes, wrong.actual),
                     class_name(classes, wrong.predicted), 100 * wrong.probability);
}

// Returns "cat 3%, dog 99%; predicted: bird 80%": the labels of an image, then labels predicted in addition. Shows at
// most the first five of each.
std::string labels_caption(const EvalResult::Scored& image, const std::vector<std::string>& classes) {
  constexpr std::size_t most_named = 5;
  const auto named = [&](std::vector<std::int64_t> labels) {
    const std::string more = labels.size() > most_named ? ", ..." : "";
    labels.resize(std::min(most_named, labels.size()));
    std::vector<std::string> names;
    for (const std::int64_t label : labels)
      names.push_back(fmt::format("{} {:.0f}%", class_name(classes, label),
                                  100 * image.probabilities.at(static_cast<std::size_t>(label))));
    return join_names(names) + more;
  };
  std::vector<std::int64_t> said;
  for (std::size_t i = 0; i < image.probabilities.size(); ++i) {
    const auto label = static_cast<std::int64_t>(i);
    if (image.probabilities[i] >= 0.5f && !std::binary_search(image.labels.begin(), image.labels.end(), label))
      said.push_back(label);
  }
  return (image.labels.empty() ? "no label" : named(image.labels)) +
         (said.empty() ? "" : "; predicted: " + named(said));
}

// Returns pictures of the dataset, scaled down for the report. Omits unreadable ones: the loader already reported them,
// and they must not make the report fail.
template <class Example, class Caption>
std::vector<Report::Picture> pictures_of(const Dataset& data, const std::vector<Example>& examples, Caption caption) {
  std::vector<Report::Picture> pictures;
  for (const Example& example : examples) {
    try {
      Image image;
      data.get(example.index, image);
      pictures.push_back({no_larger(std::move(image)), caption(example, data.classes())});
    } catch (const Error&) {
    }
  }
  return pictures;
}

// Returns none if the validation was read from a file, which contains no pictures.
std::vector<std::vector<Report::Picture>> restored_pictures(const EvalResult& validation) {
  std::vector<std::vector<Report::Picture>> rows;
  for (const EvalResult::Restored& image : validation.restored) {
    if (image.output.pixels.empty()) continue;
    rows.push_back(
        {{no_larger(image.input), "input"}, {no_larger(image.output), fmt::format("{:.1f} dB", image.psnr)}});
    if (image.target.pixels != image.input.pixels) rows.back().push_back({no_larger(image.target), "wanted"});
  }
  return rows;
}

std::string summary(const RunState& state, const Metric& watched, const Config& config) {
  if (state.best_epoch == 0) return "";
  return fmt::format("{} {} at epoch {} of {}", watched.text(state.best_score), watched.title, state.best_epoch,
                     config.train.epochs);
}

std::string read_whole(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<Fact> facts(const Config& config, Trainer& trainer, const RunOrigin& origin, const History& history) {
  double seconds = 0;
  for (const EpochReport& epoch : history.epochs) seconds += epoch.seconds;
  const RunState& state = trainer.state();
  std::vector<Fact> facts{{"command", {origin.command}}, {"started", {origin.started}}};
  facts.push_back({"trained",
                   {fmt::format("{} of {}", format_count(state.epoch), format_count(config.train.epochs, "epoch")),
                    format_count(state.step, "step"), format_duration(seconds)}});
  facts.push_back({"twiddle", {version()}});
  if (!commit().empty()) facts.back().parts.push_back("commit " + commit());
  facts.back().parts.push_back(compiler());
  for (const Fact& fact : run_facts(config, trainer)) facts.push_back(fact);
  const std::vector<std::string> skipped = trainer.skipped_messages();
  if (!skipped.empty())
    facts.push_back({"skipped", {skipped_line(trainer.skipped()) + "; the first: " + skipped.front()}});
  return facts;
}

}  // namespace

Report make_report(const Config& config, Trainer& trainer, const RunOrigin& origin, History history,
                   const ValidatedEpoch* validation) {
  Report report;
  const std::filesystem::path folder = origin.folder;
  report.title = std::filesystem::absolute(folder).lexically_normal().filename().string();
  report.summary = summary(trainer.state(), trainer.watched(), config);
  report.facts = facts(config, trainer, origin, history);
  report.config = read_whole((folder / "config.yaml").string());
  report.history = std::move(history);
  report.filters = first_filters(trainer.context(), *trainer.model().net);
  report.layers = layer_facts(*trainer.model().net);
  if (validation == nullptr || trainer.val_data() == nullptr) return report;
  const EvalResult& result = *validation->result;
  const bool best = validation->epoch == trainer.state().best_epoch;
  report.examined = fmt::format("epoch {}{}", validation->epoch, best ? ", the best" : "");
  report.classes = trainer.val_data()->classes();
  report.validation = validation->result;
  report.mistakes = pictures_of(*trainer.val_data(), result.wrong, wrong_caption);
  report.worst = pictures_of(*trainer.val_data(), result.worst, labels_caption);
  report.restored = restored_pictures(result);
  report.facts.push_back({"validation", {report.examined}});
  for (const Metric& metric : trainer.metrics())
    report.facts.back().parts.push_back(join(metric.title, " ", metric.text(metric.of(result.scores))));
  report.facts.back().parts.push_back(format_count(result.images, "image"));
  return report;
}

}  // namespace twiddle
