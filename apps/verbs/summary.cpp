#include <fmt/core.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "apps/command_line/verb_options.h"
#include "apps/verbs/network_facts.h"
#include "apps/verbs/open.h"
#include "apps/verbs/verbs.h"
#include "framework/error.h"
#include "framework/printable.h"
#include "framework/text.h"
#include "models/training/run_setup.h"

namespace twiddle {
namespace {

nlohmann::json to_json(const Config& config, const Sequential& net, const MemoryPlan& plan,
                       const std::vector<std::string>& planned_by_rule) {
  nlohmann::json layers = nlohmann::json::array();
  for (const LayerFacts& layer : layer_facts(net))
    layers.push_back({{"name", layer.name},
                      {"kind", layer.kind},
                      {"input", layer.input},
                      {"output", layer.output},
                      {"parameters", layer.parameters},
                      {"flops_per_image", layer.flops},
                      {"activation_bytes_per_image", layer.activation_bytes}});
  const nlohmann::json memory = {
      {"weights", plan.weights},         {"gradients", plan.gradients}, {"optimizer", plan.optimizer},
      {"activations", plan.activations}, {"workspace", plan.workspace}, {"workspace_layer", plan.workspace_layer},
      {"spectra", plan.spectra},         {"data", plan.data},           {"evaluation", plan.evaluation},
      {"program", plan.program},         {"total", plan.total()}};
  return {{"name", config.name},
          {"batch_size", config.train.batch_size},
          {"parameters", parameter_count(net)},
          {"decayed_parameters", decayed_count(net)},
          {"flops_per_image", flops_per_image(net)},
          {"memory_bytes", memory},
          {"planned_by_rule", planned_by_rule},
          {"layers", layers}};
}

int summary(const Flags& flags, const std::string& file) {
  const Experiment experiment = open_experiment(file, flags, {});
  require_device(experiment.device);
  const Config& config = experiment.config;
  const Model& model = experiment.model;
  const std::vector<std::string> unknown = recall_choices(model, experiment.device, config.train.batch_size);
  const MemoryPlan plan = plan_memory(model, training_size(experiment, *make_one_rank()));
  write_json(flags, to_json(config, *model.net, plan, unknown));
  if (flags.json == "-") return 0;
  std::size_t weighted = 0;
  for (const LayerFacts& layer : layer_facts(*model.net)) weighted += layer.parameters > 0 ? 1 : 0;
  fmt::print("{}\n", layer_table(*model.net));
  fmt::print("{}: {}, {} with parameters; {}; {}/image forward\n", printable(config.name), layers_text(*model.net),
             weighted, parameters_text(*model.net), format_flops(flops_per_image(*model.net)));
  fmt::print("weight decay is for {} of them: not for biases, norms and scales\n",
             format_count(decayed_count(*model.net)));
  fmt::print("{}\n", memory_line(plan, config.train.batch_size));
  if (!unknown.empty())
    fmt::print("planned by `rule`, not measured yet: {}; 'twiddle tune' selects their engines\n", join_names(unknown));
  return 0;
}

}  // namespace

Action add_summary(VerbOptions& verb, const Flags& flags) {
  const auto file = std::make_shared<std::string>();
  verb.add_option("CONFIG", *file, "A YAML file or a run folder", {.required = true});
  return [&flags, file] { return summary(flags, *file); };
}

}  // namespace twiddle
