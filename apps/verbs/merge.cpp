#include <fmt/core.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "apps/command_line/verb_options.h"
#include "apps/verbs/network_facts.h"
#include "apps/verbs/open.h"
#include "apps/verbs/verbs.h"
#include "framework/atomic_file.h"
#include "framework/context.h"
#include "framework/error.h"
#include "framework/parameter.h"
#include "framework/precision.h"
#include "framework/printable.h"
#include "framework/random.h"
#include "framework/text.h"
#include "layers/sequential.h"
#include "models/checkpoints/merge_layers.h"
#include "models/checkpoints/weights.h"

namespace twiddle {
namespace {

constexpr std::int64_t tried_images = 2;

std::map<std::string, HostArray> values_of(Context& ctx, const Sequential& net) {
  std::map<std::string, HostArray> values;
  for (const Parameter* parameter : net.parameters())
    values[parameter->name] = to_host(*ctx.stream, parameter->variable.value());
  return values;
}

std::vector<float> outputs(Context& ctx, const Sequential& net) {
  const EvaluationMode evaluating(ctx);
  Shape shape = net.input_shape();
  shape.insert(shape.begin(), tried_images);
  std::vector<float> pixels(static_cast<std::size_t>(count_of(shape)));
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = RandomSequence{1}.normal(static_cast<std::int64_t>(i));
  return net.forward(ctx, Variable(Tensor::from(*ctx.stream, shape, pixels))).value().to_vector(*ctx.stream);
}

// Returns the relative L2 difference.
double difference(const std::vector<float>& a, const std::vector<float>& b) {
  double apart = 0, all = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    apart += std::pow(static_cast<double>(a[i]) - b[i], 2);
    all += std::pow(static_cast<double>(a[i]), 2);
  }
  return std::sqrt(apart / all);
}

// Throws if the file exists. The user does not type the file name's extension, so an existing file may be unrelated.
void require_new(const std::string& file) {
  std::error_code ignored;
  if (std::filesystem::exists(std::filesystem::symlink_status(file, ignored)))
    throw Error(ErrorKind::config, "--out: '" + printable(file) + "' exists; remove it, or give another name");
  require_writable(file);
}

DType parse_store(const std::string& text) {
  for (const Precision precision : {Precision::fp32, Precision::bf16, Precision::fp16})
    if (text == to_string(precision)) return storage_of(precision);
  throw Error(ErrorKind::config, "--store: " + unknown_name("type", text, {"fp32", "bf16", "fp16"}));
}

struct MergeArguments {
  std::string path, model_file, out, store = "fp32";
};

int merge(const Flags& flags, const MergeArguments& arguments) {
  const auto& [path, model_file, out, store] = arguments;
  const DType store_type = parse_store(store);
  const std::string config_file = out + ".yaml", weights_file = out + ".safetensors";
  for (const std::string& file : {config_file, weights_file}) require_new(file);
  const Trained trained = open_trained(path, model_file, flags, {});
  const Experiment& experiment = trained.experiment;
  const Config& config = experiment.config;
  Context ctx(experiment.device, config.seed);
  const Sequential& net = *experiment.model.net;
  const WeightsInfo info = load_weights(trained.weights, ctx, net);
  const MergedLayers merged = merge_layers(*config.tree.find("model")->find("layers"), values_of(ctx, net));

  const std::string yaml = to_yaml(with_layers(config.tree, merged.layers));
  const Experiment small = load_experiment_text(yaml, config_file, {}, {});
  const Sequential& small_net = *small.model.net;
  put_values(small_net, fitting_values(ctx, small_net, source_of({merged.weights, {}}), weights_file));
  save_weights(weights_file, ctx, small_net, info.classes, {}, store_type);
  write_file_atomically(config_file, yaml);
  load_weights(weights_file, ctx, small_net);  // as rounded
  const double apart = difference(outputs(ctx, net), outputs(ctx, small_net));

  write_json(flags, nlohmann::json{{"norms", merged.norms},
                                   {"sums", merged.sums},
                                   {"layers_before", net.all_items().size()},
                                   {"layers", small_net.all_items().size()},
                                   {"difference", apart}});
  if (flags.json == "-") return 0;
  fmt::print(
      "{} and {} went into convolutions: {} before, {} now; outputs for {} random images differ by {:.1e} (L2)\n",
      format_count(merged.norms, "batch norm"), format_count(merged.sums, "sum"), layers_text(net),
      layers_text(small_net), tried_images, apart);
  fmt::print("config         {}\nweights        {}\n", printable(config_file), printable(weights_file));
  return 0;
}

}  // namespace

Action add_merge(VerbOptions& verb, const Flags& flags) {
  const auto arguments = std::make_shared<MergeArguments>();
  verb.add_option("RUN", arguments->path, "A run folder, a checkpoint folder or a weights file", {.required = true});
  verb.add_option("CONFIG", arguments->model_file, "The YAML file, for weights outside of a run folder");
  verb.add_option("--out", arguments->out, "NAME of the files NAME.yaml and NAME.safetensors", {.required = true});
  verb.add_option("--store", arguments->store,
                  "Type of convolutions' and linear layers' weights in the file: fp32, bf16 or fp16 (fp32)",
                  {.value = "TYPE"});
  return [&flags, arguments] { return merge(flags, *arguments); };
}

}  // namespace twiddle
