#include "models/config.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "framework/optimizer.h"
#include "framework/printable.h"
#include "framework/text.h"
#include "models/builder.h"
#include "models/config_tree.h"
#include "models/layer_list.h"
#include "models/open_data.h"

namespace twiddle {

namespace {

using Kind = ConfigNode::Kind;

constexpr std::int64_t config_version = 1, most_values_an_image = std::int64_t(1) << 30;

ConfigNode* find_value(ConfigNode& mapping, const std::string& key) {
  for (ConfigNode::Entry& entry : mapping.entries)
    if (entry.key == key) return &entry.value;
  return nullptr;
}

// The list under model.layers; null where there is none.
ConfigNode* find_layers(ConfigNode& tree) {
  ConfigNode* model = find_value(tree, "model");
  ConfigNode* layers = model == nullptr ? nullptr : find_value(*model, "layers");
  return layers == nullptr || layers->kind != Kind::sequence ? nullptr : layers;
}

void read_version(Params& root) {
  if (!root.has("version")) {
    root.error("version", "missing key 'version'", "write 'version: 1'");
    return;
  }
  const std::int64_t version = root.integer("version", config_version, 0, 1000000);
  if (version != config_version)
    root.error("version", join("this program reads version ", config_version, " of the format, found ", version));
}

// Empty where it cannot be understood.
std::string read_device(Params& root) {
  const std::string device = root.text("device", "auto");
  const bool numbered = device.rfind("cuda:", 0) == 0 && device.size() > 5 && device.size() < 9 &&
                        device.find_first_not_of("0123456789", 5) == std::string::npos;
  if (numbered || device == "auto" || device == "cpu" || device == "cuda") return device;
  root.error("device", "'device' must be auto, cpu, cuda or cuda:N, found \"" + device + "\"");
  return {};
}

// Empty where it cannot be understood.
Shape read_input(Params& model) {
  const Shape input = model.integers("input", 1, 65536);
  if (!model.has("input")) model.error("input", "missing key 'input' in 'model'", "such as 'input: [3, 32, 32]'");
  if (input.empty()) return {};  // already told
  if (input.size() != 3) {
    model.error("input", join("'input' must be [channels, height, width], found ", input.size(), " numbers"));
    return {};
  }
  if (input[0] * input[1] * input[2] > most_values_an_image) {
    model.error("input", join("'input' of ", join(input[0], "x", input[1], "x", input[2]), " has more than ",
                              format_count(most_values_an_image), " values"));
    return {};
  }
  return input;
}

void read_model(Params& root, Config& config) {
  if (!root.has("model")) {
    root.error("model", "missing key 'model'", "'model: {input: [channels, height, width], layers: [...]}'");
    return;
  }
  Params model = root.child("model");
  config.input = read_input(model);
  const ConfigNode* layers = model.node("layers");
  if (layers == nullptr) {
    model.error("layers", "missing key 'layers' in 'model'");
  } else if (layers->kind != Kind::sequence || layers->items.empty()) {
    // A list whose items were all wrong has been told of.
    const bool told = layers->kind == Kind::sequence && !root.diagnostics().empty();
    if (!told) model.error("layers", "'layers' must be a list of layers", "one a line, such as '- relu'");
  } else {
    config.layers = read_layers(*layers);
  }
  model.finish();
}

// In the user's folder for caches; empty where the system names none.
std::string usual_cache_file() {
  const auto folder = [](const char* variable) {
    const char* value = std::getenv(variable);
    return std::filesystem::path(value != nullptr && *value == '/' ? value : "");
  };
  if (!folder("XDG_CACHE_HOME").empty()) return folder("XDG_CACHE_HOME") / "twiddle" / "convolutions.txt";
  if (!folder("HOME").empty()) return folder("HOME") / ".cache" / "twiddle" / "convolutions.txt";
  return {};
}

ConvPolicy read_convolution(Params& root) {
  Params params = root.child("convolution");
  ConvPolicy policy;
  policy.engine = params.text("engine", "auto");
  if (policy.engine == "auto") policy.engine.clear();
  if (params.choice("precision", "fp32", {"fp32", "tf32"}) == "tf32") policy.precision = Precision::tf32;
  policy.workspace_limit = params.bytes("workspace_limit", policy.workspace_limit);
  policy.frequency_budget = params.bytes("frequency_budget", policy.frequency_budget);
  const std::string cache = params.text("cache", "auto");
  policy.cache_file = cache == "auto" ? usual_cache_file() : cache == "off" ? "" : cache;
  policy.retune = params.flag("retune", policy.retune);
  params.finish();
  return policy;
}

// Timings differ from run to run, and with them the engines and the last bits of the results.
void refuse_measured(Params& root, const Config& config) {
  if (!config.deterministic) return;
  const std::string message = "'deterministic: true' excludes engines that are measured: two runs may choose otherwise";
  const std::string hint = "take 'engine: rule' or an engine's name";
  if (config.convolution.engine.starts_with("measured")) root.child("convolution").error("engine", message, hint);
  for (const LayerConfig& layer : config.layers) {
    const ConfigNode* engine = layer.options.find("engine");
    if (engine != nullptr && engine->text.starts_with("measured")) root.diagnostics().add(engine->place, message, hint);
  }
}

// Datasets and augmentation read their own keys in check_data, through Params over the node.
Config::Data read_data(Params& root) {
  Config::Data data;
  Params params = root.child("data");
  data.present = root.has("data");
  data.workers = static_cast<int>(params.integer("workers", data.workers, 0, 256));
  data.skip_bad = params.choice("on_error", "fail", {"fail", "skip"}) == "skip";
  data.max_pixels = params.integer("max_pixels", data.max_pixels, 1, largest_max_pixels);
  data.drop_last = params.flag("drop_last", data.drop_last);
  for (const char* key : {"train", "val", "augment", "eval_augment", "normalize"}) params.has(key);
  params.finish();
  if (const ConfigNode* node = root.node("data")) data.node = *node;
  return data;
}

// Made once here and thrown away, so that what is wrong in its options is told together with all else.
void check_optimizer(Params& train) {
  auto [name, options] = train.named("optimizer", "sgd");
  const OptimizerRegistry optimizers = builtin_optimizers();
  if (!optimizers.has(name)) {
    train.error("optimizer", optimizers.unknown(name));
    return;
  }
  optimizers.make(name, options);
  options.finish();
}

Config::Train read_train(Params& root) {
  Config::Train train;
  Params params = root.child("train");
  check_optimizer(params);
  if (const ConfigNode* node = params.node("optimizer")) train.optimizer = *node;
  train.learning_rate = params.number("learning_rate", train.learning_rate, 0, 1000);
  train.schedule = read_schedule(params, "schedule");
  train.epochs = params.integer("epochs", train.epochs, 1, 1000000);
  train.batch_size = params.integer("batch_size", train.batch_size, 1, 1 << 20);
  train.clip_norm = params.number("clip_norm", train.clip_norm, 0, 1e9);
  train.label_smoothing = params.number("label_smoothing", train.label_smoothing, 0, 0.999);
  train.keep = params.integer("keep", train.keep, 1, 1000000);
  train.checkpoint_every = params.integer("checkpoint_every", train.checkpoint_every, 0, std::int64_t(1) << 40);
  train.out = params.text("out", train.out);
  params.finish();
  return train;
}

// What was read, with the layers and the datasets, which have been read on their own.
ConfigNode used_tree(const Params& root, ConfigNode used_layers, const ConfigNode& used_data, const Config& config) {
  ConfigNode tree = root.used();
  if (ConfigNode* layers = find_layers(tree)) *layers = std::move(used_layers);
  if (ConfigNode* data = find_value(tree, "data")) *data = merge_trees(used_data, *data);
  if (!config.data.present)
    std::erase_if(tree.entries, [](const ConfigNode::Entry& entry) { return entry.key == "data"; });
  return tree;
}

Config read_config(ConfigNode tree, const std::string& file, const std::vector<Override>& overrides,
                   Diagnostics& diagnostics) {
  if (tree.kind != Kind::mapping) diagnostics.throw_if_any();
  const std::size_t errors_before_layers = diagnostics.size();
  // Before the overrides, so that they reach each layer by its name; and after, for those that brought new layers.
  if (ConfigNode* layers = find_layers(tree)) *layers = expand_layers(*layers, diagnostics);
  apply_overrides(tree, overrides, diagnostics);
  if (ConfigNode* layers = find_layers(tree)) *layers = expand_layers(*layers, diagnostics);
  const bool layers_are_whole = diagnostics.size() == errors_before_layers;
  if (ConfigNode* data = find_value(tree, "data")) substitute_environment(*data, diagnostics);

  Config config;
  config.file = file;
  Params root(tree, "", diagnostics);
  read_version(root);
  config.name = root.text("name", printable(std::filesystem::path(config.file).stem().string()));
  config.device = read_device(root);
  config.threads = static_cast<int>(root.integer("threads", config.threads, 0, 4096));
  config.seed = static_cast<std::uint64_t>(root.integer("seed", 1, 0, std::numeric_limits<std::int64_t>::max()));
  config.deterministic = root.flag("deterministic", config.deterministic);
  read_model(root, config);
  config.convolution = read_convolution(root);
  config.data = read_data(root);
  config.train = read_train(root);
  refuse_measured(root, config);
  root.finish();
  config.tree = std::move(tree);
  if (!layers_are_whole) config.input.clear();  // shapes cannot be followed through a list with holes
  ConfigNode layers = check_model(config, diagnostics);
  const ConfigNode data = check_data(config, diagnostics);
  diagnostics.throw_if_any();
  config.tree = used_tree(root, std::move(layers), data, config);
  return config;
}

}  // namespace

Config load_config(const std::string& file, const std::vector<Override>& overrides) {
  Diagnostics diagnostics;
  return read_config(load_tree(file, diagnostics), file, overrides, diagnostics);
}

Config load_config_text(const std::string& text, const std::string& name, const std::vector<Override>& overrides) {
  Diagnostics diagnostics;
  return read_config(load_tree_text(text, name, diagnostics), name, overrides, diagnostics);
}

}  // namespace twiddle
