#include "models/config/config.h"

#include <cstdlib>
#include <filesystem>
#include <functional>

#include "framework/error.h"
#include "framework/optimizers/gradient_scale.h"
#include "framework/printable.h"
#include "framework/text.h"

namespace twiddle {

namespace {

using Kind = ConfigNode::Kind;

constexpr std::int64_t config_version = 1, most_values_an_image = std::int64_t(1) << 30;

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
  const bool gpu = nearest_name(device, {"cuda"}).has_value();
  root.error("device", "'device' must be auto, cpu, cuda or cuda:N, found \"" + shown(device) + "\"",
             gpu ? "did you mean 'cuda'?" : "");
  return {};
}

// Empty where it cannot be understood.
Shape read_input(Params& model) {
  const Shape input = model.integers("input", 1, 65536);
  if (!model.has("input")) model.error("input", "missing key 'input' in 'model'", "such as 'input: [3, 32, 32]'");
  if (input.empty()) return {};  // already reported
  if (input.size() != 3) {
    model.error("input", join("'input' must be [channels, height, width], found ",
                              format_count(static_cast<std::int64_t>(input.size()), "number")));
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
    // The errors of a list without any valid item are reported already.
    const bool is_reported = layers->kind == Kind::sequence && !root.diagnostics().empty();
    if (!is_reported) model.error("layers", "'layers' must be a list of layers", "one per line, such as '- relu'");
  } else {
    config.layers = *layers;
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

Precision read_precision(Params& params) {
  std::vector<std::string> names;
  for (const Precision each : every_precision) names.emplace_back(to_string(each));
  const std::string name = params.choice("precision", names.front(), names);
  return every_precision[static_cast<std::size_t>(std::find(names.begin(), names.end(), name) - names.begin())];
}

ConvPolicy read_convolution(Params& root) {
  Params params = root.child("convolution");
  ConvPolicy policy;
  const bool is_of_root = root.has("precision"), is_of_convolution = params.has("precision");
  policy.precision = read_precision(is_of_root || !is_of_convolution ? root : params);
  if (is_of_root && is_of_convolution && read_precision(params) != policy.precision)
    params.error("precision",
                 join("'convolution.precision' differs from 'precision: ", to_string(policy.precision), "'"),
                 "remove 'convolution.precision'");
  policy.engine = params.text("engine", "auto");
  if (policy.engine == "auto") policy.engine.clear();
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
  const std::string hint = "use 'engine: rule' or an engine's name";
  if (config.convolution.engine.starts_with("measured")) root.child("convolution").error("engine", message, hint);
  const std::function<void(const ConfigNode&)> look_at = [&](const ConfigNode& node) {
    const ConfigNode* engine = node.find("engine");
    if (engine != nullptr && engine->text.starts_with("measured")) root.diagnostics().add(engine->place, message, hint);
    for (const ConfigNode& item : node.items) look_at(item);
    for (const ConfigNode::Entry& entry : node.entries) look_at(entry.value);
  };
  look_at(config.layers);
}

// A key without a value counts as absent.
bool is_given(Params& train, const char* key) {
  const ConfigNode* node = train.node(key);
  return node != nullptr && node->kind != Kind::null;
}

void read_early_stop(Params& train, Config::Train& values) {
  if (!is_given(train, "early_stop")) return;
  Params early_stop = train.child("early_stop");
  values.patience = early_stop.integer("patience", std::nullopt, 1, 1000000);
  values.min_delta = early_stop.number("min_delta", 0.0, 0, 1e6);
  early_stop.finish();
}

// `ema: {decay: 0.9999, warmup: true}`
void read_ema(Params& train, Config::Train& values) {
  if (!is_given(train, "ema")) return;
  Params ema = train.child("ema");
  values.ema_decay = ema.number("decay", 0.9999, 0.01, 0.9999999);
  values.ema_warmup = ema.flag("warmup", false);
  ema.finish();
}

// `loss_scale: auto`, or a number. 0: auto.
double read_loss_scale(Params& train) {
  const ConfigNode* node = train.node("loss_scale");
  const bool is_auto = node == nullptr || node->text == "auto";
  if (is_auto) train.choice("loss_scale", "auto", {"auto"});
  return is_auto ? 0 : train.number("loss_scale", std::nullopt, 1, LossScale::largest);
}

}  // namespace

Config read_config(Params& root, const std::string& file) {
  Config config;
  config.file = file;
  read_version(root);
  config.name = root.text("name", printable(std::filesystem::path(file).stem().string()));
  if (constexpr std::size_t longest = 200; config.name.size() > longest)
    root.error("name", join("'name' has more than ", longest, " bytes"), "run folders are named after it");
  config.device = read_device(root);
  config.threads = static_cast<int>(root.integer("threads", config.threads, 0, 4096));
  config.seed = static_cast<std::uint64_t>(root.integer("seed", 1, 0, std::numeric_limits<std::int64_t>::max()));
  config.deterministic = root.flag("deterministic", config.deterministic);
  read_model(root, config);
  config.convolution = read_convolution(root);
  refuse_measured(root, config);
  return config;
}

Config::Data read_data(Params& data) {
  Config::Data values;
  values.workers = static_cast<int>(data.integer("workers", values.workers, 0, 256));
  values.skip_bad = data.choice("on_error", "fail", {"fail", "skip"}) == "skip";
  values.max_pixels = data.integer("max_pixels", values.max_pixels, 1, largest_max_pixels);
  values.orient = data.flag("orient", values.orient);
  values.drop_last = data.flag("drop_last", values.drop_last);
  return values;
}

Config::Train read_train(Params& train) {
  Config::Train values;
  values.learning_rate = train.number("learning_rate", values.learning_rate, 0, 1000);
  values.schedule = read_schedule(train, "schedule");
  values.learning_rates = read_pattern_factors(train, "learning_rates", 1e6);
  values.freeze = read_patterns(train, "freeze");
  values.epochs = train.integer("epochs", values.epochs, 1, 1000000);
  values.batch_size = train.integer("batch_size", values.batch_size, 1, 1 << 20);
  read_ema(train, values);
  values.accumulate = train.integer("accumulate", values.accumulate, 1, 1 << 20);
  values.clip_norm = train.number("clip_norm", values.clip_norm, 0, 1e9);
  values.loss_scale = read_loss_scale(train);
  values.mixing.mixup = train.number("mixup", 0.0, 0, 100);
  values.mixing.cutmix = train.number("cutmix", 0.0, 0, 100);
  values.watch = train.text("watch", values.watch);
  read_early_stop(train, values);
  values.keep = train.integer("keep", values.keep, 1, 1000000);
  values.checkpoint_every = train.integer("checkpoint_every", values.checkpoint_every, 0, std::int64_t(1) << 40);
  values.out = train.text("out", values.out);
  values.collective_timeout = train.number("collective_timeout", values.collective_timeout, 0, 1e6);
  return values;
}

}  // namespace twiddle
