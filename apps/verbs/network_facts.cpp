#include "apps/verbs/network_facts.h"
#include "data/formats/dataset.h"
#include "framework/optimizers/optimizer.h"
#include "framework/ranks/communicator.h"

#include <fmt/core.h>
#include <sys/resource.h>

#include <algorithm>

#include "apps/command_line/text_table.h"
#include "fft/spectral_engine.h"
#include "framework/printable.h"
#include "framework/text.h"
#include "layers/conv/tuner/tuner.h"
#include "layers/sequential.h"
#include "models/builder.h"
#include "models/checkpoints/weights.h"
#include "models/config/config.h"
#include "models/memory_plan.h"
#include "models/training/trainer.h"

namespace twiddle {

namespace {

std::string batches_of_a_step(const Config::Train& train, int ranks) {
  const std::string all = format_count(train.batch_size);
  const std::string images = ranks > 1 ? join(all, " = ", ranks, " x ", format_count(train.batch_size / ranks)) : all;
  return train.accumulate > 1 ? join(train.accumulate, " batches of ", images) : images;
}

}  // namespace

std::vector<LayerFacts> layer_facts(const Sequential& net) {
  std::vector<LayerFacts> rows;
  Shape input = net.input_shape();
  for (const Sequential::Item& item : net.items()) {
    for (const Sequential* path : item.layer->paths()) {
      const std::vector<LayerFacts> inside = layer_facts(*path);
      rows.insert(rows.end(), inside.begin(), inside.end());
    }
    LayerFacts row{item.layer->name(), item.kind, item.layer->describe(), input, item.layer->output_shape()};
    for (const Parameter& parameter : item.layer->parameters())
      if (parameter.trainable || parameter.frozen) row.parameters += count_of(parameter.shape);
    row.flops = item.layer->flops();
    if (!item.layer->shares_input())
      row.activation_bytes = static_cast<std::size_t>(count_of(row.output) * size_of(item.layer->output_type()));
    input = row.output;
    rows.push_back(row);
  }
  return rows;
}

std::int64_t parameter_count(const Sequential& net) {
  std::int64_t count = 0;
  for (const Parameter* parameter : net.parameters())
    if (parameter->trainable || parameter->frozen) count += count_of(parameter->shape);
  return count;
}

std::string parameters_text(const Sequential& net) {
  std::int64_t frozen = 0;
  for (const Parameter* parameter : net.parameters())
    if (parameter->frozen) frozen += count_of(parameter->shape);
  return format_count(parameter_count(net), "parameter") +
         (frozen > 0 ? join(", ", format_count(frozen), " of them frozen") : "");
}

std::int64_t decayed_count(const Sequential& net) {
  std::int64_t count = 0;
  for (const Parameter* parameter : net.parameters())
    if (parameter->trainable && parameter->weight_decay) count += count_of(parameter->shape);
  return count;
}

double flops_per_image(const Sequential& net) {
  double flops = 0;
  for (const Sequential::Item* item : net.all_items()) flops += item->layer->flops();
  return flops;
}

std::string layers_text(const Sequential& net) {
  return format_count(static_cast<std::int64_t>(net.all_items().size()), "layer");
}

std::string format_flops(double flops) {
  if (flops >= 1e9) return fmt::format("{:.2f} GFLOP", flops / 1e9);
  if (flops >= 1e6) return fmt::format("{:.1f} MFLOP", flops / 1e6);
  return flops >= 1e3 ? fmt::format("{:.1f} kFLOP", flops / 1e3) : fmt::format("{:.0f} FLOP", flops);
}

std::string format_megaflops(double flops) {
  if (flops <= 0) return "-";
  return flops < 1e5 ? fmt::format("{:.2f}", flops / 1e6) : fmt::format("{:.1f}", flops / 1e6);
}

std::string layer_table(const Sequential& net) {
  TextTable table({"layer", "kind", "input", "output", "parameters", "MFLOP/image", "activation/image"});
  for (const LayerFacts& row : layer_facts(net)) {
    const std::string kind = row.options.empty() ? row.kind : row.kind + " " + row.options;
    table.add({row.name, kind, to_string(row.input), to_string(row.output), format_count(row.parameters),
               format_megaflops(row.flops), format_bytes(row.activation_bytes)});
  }
  return table.text();
}

// Does not fail if the warm-up lasts the whole run: that may be a short trial of a long schedule.
std::string rates_text(const Config::Train& train) {
  const bool all_warm_up = train.schedule.warmup >= static_cast<double>(train.epochs);
  return join("learning rate ", format_number(train.learning_rate), ", ", train.schedule.describe(),
              all_warm_up ? " (which lasts the whole run: the full rate is never used)" : "");
}

std::string memory_line(const MemoryPlan& plan, std::int64_t batch) {
  const std::string workspace =
      plan.workspace > 0 ? format_bytes(plan.workspace) + " (" + plan.workspace_layer + ")" : "0";
  return fmt::format(
      "memory at batch {}: weights {} + gradients {} + optimizer {} + activations {} + workspace {} + spectra {} + "
      "data {}{}{} = {}",
      format_count(batch), format_bytes(plan.weights), format_bytes(plan.gradients), format_bytes(plan.optimizer),
      format_bytes(plan.activations), workspace, format_bytes(plan.spectra), format_bytes(plan.data),
      plan.evaluation > 0 ? " + evaluation " + format_bytes(plan.evaluation) : "",
      plan.program > 0 ? " + program " + format_bytes(plan.program) : "", format_bytes(plan.total()));
}

std::string weights_table(const TakenWeights& weights) {
  TextTable table({"layer", "weights", "because"});
  const auto is_taken = [](const TakenWeights::Layer& layer) { return layer.misfits.empty(); };
  for (auto layer = weights.layers.begin(); layer != weights.layers.end();) {
    if (!is_taken(*layer)) {
      table.add({layer->name, "initialized", layer->misfits});
      ++layer;
      continue;
    }
    const auto end = std::find_if_not(layer, weights.layers.end(), is_taken);
    const bool several = end - layer > 1;
    table.add({several ? join(layer->name, " ... ", (end - 1)->name) : layer->name, "loaded",
               several ? format_count(end - layer, "layer") : "-"});
    layer = end;
  }
  for (const std::string& array : weights.left) table.add({"-", "left in the file", array});
  return table.text();
}

FrequencyBuffers* spectra_of(ConvTuner& convolutions) {
  for (const std::string& name : convolutions.names())
    if (auto* const engine = dynamic_cast<SpectralEngine*>(&convolutions.engine(name))) return &engine->buffers();
  return nullptr;
}

std::vector<Fact> run_facts(const Config& config, Trainer& trainer) {
  const Sequential& net = *trainer.model().net;
  std::string solver =
      fmt::format("{}, {}, {} x {} of {}", trainer.optimizer().describe(), rates_text(config.train),
                  format_count(config.train.epochs, "epoch"), format_count(trainer.steps_per_epoch(), "step"),
                  batches_of_a_step(config.train, trainer.ranks().size()));
  if (config.train.ema_decay > 0)
    solver += join(", weights averaged with decay ", format_number(config.train.ema_decay),
                   config.train.ema_warmup ? ", after a warm-up" : "");
  return {{"device",
           {describe(trainer.context().stream->device()), join("precision ", to_string(config.convolution.precision)),
            join("engine ", trainer.model().convolutions->policy().engine), join("seed ", config.seed)}},
          {"train", {trainer.train_data().describe()}},
          {"val", {trainer.val_data() ? trainer.val_data()->describe() : "none"}},
          {"model",
           {fmt::format("{}: {}, {}, {}/image", printable(config.name), layers_text(net), parameters_text(net),
                        format_flops(flops_per_image(net))),
            "memory plan " + format_bytes(trainer.memory_plan().total())}},
          {"solver", {solver}}};
}

std::size_t peak_memory_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::size_t>(usage.ru_maxrss) * 1024;  // Linux counts in KiB
}

}  // namespace twiddle
