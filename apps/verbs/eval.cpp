#include <fmt/core.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "apps/command_line/console.h"
#include "apps/command_line/text_table.h"
#include "apps/command_line/verb_options.h"
#include "apps/verbs/counted_work.h"
#include "apps/verbs/open.h"
#include "apps/verbs/progress.h"
#include "apps/verbs/verbs.h"
#include "framework/context.h"
#include "framework/error.h"
#include "framework/printable.h"
#include "framework/text.h"
#include "layers/sequential.h"
#include "models/checkpoints/weights.h"
#include "models/evaluation/evaluation_json.h"
#include "models/training/training_data.h"

namespace twiddle {
namespace {

struct ClassScore {
  std::string name;
  std::int64_t images = 0, right = 0, predicted = 0;
};

// Returns the scores of the classes that have images or were predicted.
std::vector<ClassScore> class_scores(const EvalResult& result, const std::vector<std::string>& names) {
  std::vector<ClassScore> scores;
  for (std::size_t label = 0; label < names.size(); ++label) scores.push_back({names[label], result.outside[label]});
  for (const auto& [pair, images] : result.confusion) {
    const auto& [actual, predicted] = pair;
    scores[static_cast<std::size_t>(actual)].images += images;
    scores[static_cast<std::size_t>(predicted)].predicted += images;
    if (actual == predicted) scores[static_cast<std::size_t>(actual)].right += images;
  }
  std::erase_if(scores, [](const ClassScore& score) { return score.images + score.predicted == 0; });
  return scores;
}

std::string share(std::int64_t part, std::int64_t whole) {
  return whole == 0 ? "-" : fmt::format("{:.2f}%", 100 * static_cast<double>(part) / static_cast<double>(whole));
}

void print_scores(const EvalResult& result) {
  for (const Metric& metric : metrics_of(result.target))
    fmt::print("{:<6} {}\n", metric.title, metric.text(metric.of(result.scores)));
  fmt::print("images {}\n", format_count(result.images));
}

void print_classes(const std::vector<ClassScore>& scores) {
  TextTable table({"class", "images", "right", "recall", "precision"});
  for (const ClassScore& score : scores)
    table.add({score.name, format_count(score.images), format_count(score.right), share(score.right, score.images),
               share(score.right, score.predicted)});
  fmt::print("\n{}", table.text());
}

nlohmann::json to_json(const std::vector<ClassScore>& scores) {
  nlohmann::json classes = nlohmann::json::array();
  for (const ClassScore& score : scores)
    classes.push_back(
        {{"name", score.name}, {"images", score.images}, {"right", score.right}, {"predicted", score.predicted}});
  return classes;
}

// For multi-label data.
void print_labels(const std::vector<EvalResult::LabelScore>& scores, const std::vector<std::string>& names) {
  TextTable table({"class", "images", "average precision"});
  for (std::size_t label = 0; label < scores.size(); ++label)
    table.add({names[label], format_count(scores[label].images),
               scores[label].images > 0 ? fmt::format("{:.2f}%", 100 * scores[label].average_precision) : "-"});
  fmt::print("\n{}", table.text());
}

nlohmann::json to_json(const std::vector<EvalResult::LabelScore>& scores, const std::vector<std::string>& names) {
  nlohmann::json classes = nlohmann::json::array();
  for (std::size_t label = 0; label < scores.size(); ++label)
    classes.push_back({{"name", names[label]},
                       {"images", scores[label].images},
                       {"average_precision", scores[label].average_precision}});
  return classes;
}

EvalResult evaluate_advising(Context& ctx, const Experiment& experiment, Loader& loader, std::int64_t batch,
                             CountedWork& work) try {
  const auto cancelled = [&, done = std::int64_t(0)]() mutable {
    work.at(std::exchange(done, loader.position()));  // the loader has read this batch, but it is not evaluated yet
    return false;
  };
  return evaluate(ctx, *experiment.model.net, *experiment.loss, loader, 0, cancelled);
} catch (const OutOfMemory& error) {
  const std::string smaller = batch > 1 ? join(", a smaller one needs less: --batch-size ", batch / 2) : "";
  throw OutOfMemory(join(error.what(), "\n  at a batch of ", batch, smaller));
}

void write_scores(const Flags& flags, const std::string& weights, const EvalResult& result,
                  const std::vector<std::string>& names) {
  nlohmann::json json = to_json(result);
  json["weights"] = weights;
  const bool print = flags.json != "-";
  if (print) print_scores(result);
  if (result.target == TargetKind::label) {
    const std::vector<ClassScore> scores = class_scores(result, names);
    json["classes"] = to_json(scores);
    if (print) print_classes(scores);
  } else if (result.target == TargetKind::labels) {
    json["classes"] = to_json(result.labels, names);
    if (print) print_labels(result.labels, names);
  }
  write_json(flags, json);
}

int eval(const Flags& flags, const std::string& path, const std::string& model_file) {
  const Interrupt interrupt;
  const Trained trained = open_trained(path, model_file, flags, stopped_by(interrupt, flags));
  const Experiment& experiment = trained.experiment;
  const Config& config = experiment.config;
  const Model& model = experiment.model;
  Context ctx(experiment.device, config.seed);
  const OpenData data = open_val_data(
      experiment, network_classes(experiment, trained.weights, load_weights(trained.weights, ctx, *model.net)));
  if (!data.val) throw Error(ErrorKind::config, printable(config.file) + ": there is no data.val to measure on");
  if (flags.verbosity >= 0) warn(data.warnings);
  Loader loader(*data.val, *data.val_augment, loader_options(experiment));
  if (flags.verbosity >= 0) write_stderr(fmt::format("{} on {}\n", printable(trained.weights), data.val->describe()));
  CountedWork work("measuring on images", data.val->size(), flags.verbosity >= 0, interrupt);
  const EvalResult result = evaluate_advising(ctx, experiment, loader, config.train.batch_size, work);
  if (loader.skipped() > 0) write_stderr(skipped_line(loader.skipped()) + "\n");
  write_scores(flags, trained.weights, result, data.val->classes());
  expect_finite(result, [&] { return printable(trained.weights); });
  return 0;
}

}  // namespace

Action add_eval(VerbOptions& verb, const Flags& flags) {
  const auto path = std::make_shared<std::string>(), model_file = std::make_shared<std::string>();
  verb.add_option("RUN", *path, "A run folder, a checkpoint folder or a weights file", {.required = true});
  verb.add_option("CONFIG", *model_file, "The YAML file, for weights outside of a run folder");
  return [&flags, path, model_file] { return eval(flags, *path, *model_file); };
}

}  // namespace twiddle
