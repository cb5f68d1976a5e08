#include "models/config/experiment.h"

#include <algorithm>
#include <filesystem>

#include "framework/error.h"
#include "framework/gpu_check.h"
#include "framework/precision.h"
#include "framework/text.h"
#include "layers/conv/tuned_convolution.h"
#include "layers/sequential.h"
#include "models/config/config_tree.h"
#include "models/config/layer_list.h"
#include "models/config/parameter_patterns.h"
#include "models/evaluation/metric.h"

namespace twiddle {

namespace {

using Kind = ConfigNode::Kind;

// The list under model.layers; null where there is none.
ConfigNode* find_layers(ConfigNode& tree) {
  ConfigNode::Entry* const model = find_entry(tree, "model");
  ConfigNode::Entry* const layers = model == nullptr ? nullptr : find_entry(model->value, "layers");
  return layers == nullptr || layers->value.kind != Kind::sequence ? nullptr : &layers->value;
}

// Moves `convolution.precision`, an older place of `precision`, so that an override replaces it. If a file has both,
// read_config compares them.
void move_precision(ConfigNode& tree) {
  ConfigNode::Entry* const convolution = find_entry(tree, "convolution");
  ConfigNode::Entry* const older = convolution == nullptr ? nullptr : find_entry(convolution->value, "precision");
  if (older == nullptr || find_entry(tree, "precision") != nullptr) return;
  ConfigNode::Entry moved = *older;
  std::erase_if(convolution->value.entries, [](const ConfigNode::Entry& entry) { return entry.key == "precision"; });
  tree.entries.push_back(std::move(moved));
}

std::vector<Override> with_moved_precision(std::vector<Override> overrides) {
  for (Override& each : overrides)
    if (each.key == "convolution.precision") each.key = "precision";
  return overrides;
}

// What is measured where a config says `engine`: that engine's plans if it names one. A plan that it names stays.
std::string measured_form(const std::string& engine) {
  if (engine.empty() || engine == "rule") return "measured";
  const bool names_engine = engine.find(':') == std::string::npos && engine != "measured";
  return names_engine ? "measured:" + engine : engine;
}

ConvPolicy policy_of(const Config& config, const ExperimentOptions& options) {
  ConvPolicy policy = config.convolution;
  policy.own_batch = options.tunes;
  if (options.tunes) policy.engine = measured_form(policy.engine);
  policy.build = options.build;
  policy.warn = options.warn;
  policy.measuring = options.measuring;
  return policy;
}

DatasetSite site_of(const Experiment& experiment, bool model_is_whole, const SearchProgress& progress) {
  const Config& config = experiment.config;
  DatasetSite site{std::filesystem::path(config.file).parent_path().string(), config.input};
  if (model_is_whole) site.model_outputs = experiment.model.net->output_shape().at(0);
  site.max_pixels = config.data.max_pixels;
  site.orient = config.data.orient;
  if (experiment.loss != nullptr) site.target = experiment.loss->target();
  site.progress = progress;
  return site;
}

// What the patterns of `train` say of the model's parameters.
void apply_patterns(const Config::Train& train, const Sequential& net, Params& section) {
  expect_matches("freeze", train.freeze, net, section.diagnostics());
  expect_matches("learning_rates", train.learning_rates, net, section.diagnostics());
  scale_learning_rates(net, train.learning_rates);
  const std::vector<Parameter*> parameters = net.parameters();
  const auto is_trained = [](const Parameter* parameter) { return parameter->trainable; };
  if (!train.freeze.empty() && std::none_of(parameters.begin(), parameters.end(), is_trained))
    section.error("freeze", "'freeze' leaves nothing to train", "leave out the last layers at least");
}

bool is_possible(const TunedConvolution& convolution, std::int64_t batch) {
  try {
    static_cast<void>(convolution.problem(batch));
    return true;
  } catch (const Error&) {
    return false;
  }
}

// The most images up to `batch` that all of a layer's convolutions can have; 0: none.
std::int64_t most_images(const Layer& layer, std::int64_t batch) {
  std::int64_t possible = 0, impossible = batch + 1;
  const std::vector<const TunedConvolution*> convolutions = layer.convolutions();
  while (impossible - possible > 1) {
    const std::int64_t middle = possible + (impossible - possible) / 2;
    const bool all = std::all_of(convolutions.begin(), convolutions.end(),
                                 [middle](const auto* convolution) { return is_possible(*convolution, middle); });
    (all ? possible : impossible) = middle;
  }
  return possible;
}

// A convolution may be possible for one image and not for a batch. Reports the layer that allows the fewest images.
void expect_possible_batch(std::int64_t batch, const Sequential& net, Diagnostics& diagnostics) {
  const Sequential::Item* tightest = nullptr;
  std::int64_t most = batch;
  for (const Sequential::Item* item : net.all_items())
    if (const std::int64_t here = most_images(*item->layer, batch); here < most) most = here, tightest = item;
  if (tightest == nullptr) return;
  for (const TunedConvolution* convolution : tightest->layer->convolutions()) try {
      static_cast<void>(convolution->problem(batch));
    } catch (const Error& error) {
      diagnostics.add(tightest->place,
                      join("layer '", tightest->layer->name(), "', batch of ", batch, " images: ", error.what()),
                      most > 0 ? join("set train.batch_size to ", most, " or less") : "");
      return;
    }
}

// The metric of `watch` and `early_stop` must be measured.
void expect_measured(Params& train, Params& data, const Config& config, const std::vector<Metric>& metrics) {
  std::vector<std::string> names{"auto"};
  for (const Metric& metric : metrics) names.emplace_back(metric.name);
  if (std::find(names.begin(), names.end(), config.train.watch) == names.end())
    train.error("watch", unknown_name("metric", config.train.watch, names));
  if (config.train.patience > 0 && config.data.present && !data.has("val"))
    train.error("early_stop", "'early_stop' needs a validation set, data.val");
}

void refuse_loss_scale(Params& train, const Config& config) {
  if (config.train.loss_scale == 0 || config.convolution.precision == Precision::fp16) return;
  train.error("loss_scale",
              join("'loss_scale' needs 'precision: fp16'; this is ", to_string(config.convolution.precision)),
              "remove it: gradients have the range of fp32");
}

// What is mixed is labels.
void refuse_to_mix_images(Params& train, const Experiment& experiment) {
  const Mixing& mixing = experiment.config.train.mixing;
  if (experiment.loss == nullptr || !is_image(experiment.loss->target()) || !mixing.any()) return;
  train.error(mixing.mixup > 0 ? "mixup" : "cutmix", "'mixup' and 'cutmix' mix labels; the loss compares images");
}

Device device_of(const Config& config, std::optional<int> gpu) {
  const bool leaves_open = config.device == "auto" || config.device == "cuda";
  return gpu && leaves_open ? Device{Device::Kind::cuda, *gpu} : parse_device(config.device);
}

void expect_storage(const Device& device, Precision precision) {
  if (device.kind != Device::Kind::cuda || storage_of(precision) == DType::f32) return;
  const std::string why = why_no_16_bits(look_at_gpu(device.index));
  if (!why.empty()) throw Error(ErrorKind::device, why);
}

// Null if there is none of that name, which is then in the diagnostics.
std::unique_ptr<Optimizer> read_optimizer(Params& train) {
  auto [name, options] = train.named("optimizer", "sgd");
  static_cast<void>(train.has("learning_rate"));  // where an optimizer's unknown key 'lr' belongs
  const OptimizerRegistry optimizers = builtin_optimizers();
  if (!optimizers.has(name)) {
    train.error("optimizer", optimizers.unknown(name));
    return nullptr;
  }
  std::unique_ptr<Optimizer> optimizer = optimizers.make(name, options);
  options.finish();
  return optimizer;
}

// Reads the sections in order, each as far as possible, so that all errors are reported together.
Experiment read_sections(const ConfigNode& tree, const std::string& file, bool layers_are_whole,
                         const ExperimentOptions& options, Diagnostics& diagnostics) {
  Experiment experiment;
  Config& config = experiment.config;
  Params root(tree, "", diagnostics);
  config = read_config(root, file);
  if (!layers_are_whole) config.input.clear();  // shapes cannot be followed through a list with holes
  if (!config.device.empty()) experiment.device = device_of(config, options.gpu);
  Params data = root.child("data"), train = root.child("train");
  bool model_is_whole = diagnostics.empty();
  experiment.loss = read_loss(train);
  experiment.optimizer = read_optimizer(train);
  config.train = read_train(train);  // before the model: a layer is built knowing what is trained
  const std::size_t errors_before_model = diagnostics.size();
  BuiltModel built = build_model(root, config, experiment.device, policy_of(config, options));
  experiment.model = std::move(built.model);
  model_is_whole = model_is_whole && diagnostics.size() == errors_before_model;
  if (model_is_whole) apply_patterns(config.train, *experiment.model.net, train);
  if (model_is_whole) expect_possible_batch(config.train.batch_size, *experiment.model.net, diagnostics);
  refuse_to_mix_images(train, experiment);
  refuse_loss_scale(train, config);
  train.finish();
  if (experiment.loss != nullptr && !built.output.empty() && !config.layers.items.empty())
    experiment.loss->expect_output(built.output, config.input, config.layers.items.back(), diagnostics);

  config.data = read_data(data);
  config.data.present = root.has("data");
  if (experiment.loss != nullptr) expect_measured(train, data, config, metrics_of(experiment.loss->target()));
  experiment.data = read_data_section(data, site_of(experiment, model_is_whole, options.search_progress));
  data.finish();

  root.finish();
  diagnostics.throw_if_any();
  expect_storage(experiment.device, config.convolution.precision);
  config.tree = root.used();
  if (ConfigNode* layers = find_layers(config.tree)) *layers = std::move(built.layers);
  if (!config.data.present)
    std::erase_if(config.tree.entries, [](const ConfigNode::Entry& entry) { return entry.key == "data"; });
  return experiment;
}

Experiment read_experiment(ConfigNode tree, const std::string& file, const std::vector<Override>& overrides,
                           const ExperimentOptions& options, Diagnostics& diagnostics) {
  if (tree.kind != Kind::mapping) diagnostics.throw_if_any();
  const std::size_t errors_before_layers = diagnostics.size();
  // Before the overrides, so that they reach each layer by its name; and after, for those that brought new layers.
  if (ConfigNode* layers = find_layers(tree)) *layers = expand_layers(*layers, diagnostics);
  move_precision(tree);
  ConfigNode tree_of_file = tree;
  apply_overrides(tree, with_moved_precision(overrides), diagnostics);
  if (ConfigNode* layers = find_layers(tree)) *layers = expand_layers(*layers, diagnostics);
  const bool layers_are_whole = diagnostics.size() == errors_before_layers;
  Experiment experiment =
      read_sections(tree, options.origin.empty() ? file : options.origin, layers_are_whole, options, diagnostics);
  experiment.config.tree_of_file = std::move(tree_of_file);
  return experiment;
}

}  // namespace

double kept_tensors(const Config::Train& train, const Optimizer& optimizer, int ranks) {
  return static_cast<double>(optimizer.state_tensors()) / ranks + (train.accumulate > 1 ? 1 : 0) +
         (train.ema_decay > 0 ? 1 : 0);
}

Experiment load_experiment(const std::string& file, const std::vector<Override>& overrides,
                           const ExperimentOptions& options) {
  Diagnostics diagnostics;
  return read_experiment(load_tree(file, diagnostics), file, overrides, options, diagnostics);
}

Experiment load_experiment_text(const std::string& text, const std::string& name,
                                const std::vector<Override>& overrides, const ExperimentOptions& options) {
  Diagnostics diagnostics;
  return read_experiment(load_tree_text(text, name, diagnostics), name, overrides, options, diagnostics);
}

}  // namespace twiddle
