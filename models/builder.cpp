#include "models/builder.h"

#include <algorithm>

#include "framework/error.h"
#include "framework/text.h"
#include "layers/conv/conv2d.h"
#include "layers/conv/engines.h"
#include "models/layer_list.h"
#include "models/unknown_layer.h"

namespace twiddle {

namespace {

// Builds layers one after another. After the first that failed, or without an input, the shapes are not known: layers
// are still made, on a stand-in shape, for the sake of the errors in their options, while what they say of the shape is
// ignored.
class ChainBuilder {
 public:
  ChainBuilder(Sequential& net, ConvTuner& convolutions, Diagnostics& diagnostics)
      : net_(net),
        convolutions_(convolutions),
        diagnostics_(diagnostics),
        shape_(net.input_shape()),
        shape_known_(!shape_.empty()) {
    if (!shape_known_) shape_ = {1, 1, 1};
  }

  // Returns every option as the layer uses it.
  ConfigNode add(const LayerConfig& config) {
    if (!registry_.has(config.kind)) {
      diagnostics_.add(config.place, unknown_layer(config.kind, registry_.names()));
      shape_known_ = false;
      return config.options;
    }
    const std::size_t errors_before = diagnostics_.size();
    Params params(config.options, config.kind, diagnostics_);
    const Site site{config.name, shape_, convolutions_, anything_trained()};
    std::unique_ptr<Layer> layer;
    try {
      layer = registry_.make(config.kind, site, params);
    } catch (const Error& error) {
      if (shape_known_ && diagnostics_.size() == errors_before) {
        diagnostics_.add(config.place, join("layer '", config.name, "': ", error.what()),
                         join("its input is ", to_string(shape_),
                              previous_.empty() ? " (model.input)" : " from '" + previous_ + "'"));
      }
      shape_known_ = false;
    }
    params.finish();
    if (layer == nullptr) return config.options;
    if (diagnostics_.size() > errors_before) shape_known_ = false;
    shape_ = layer->output_shape();
    previous_ = config.name;
    if (!net_.items().empty()) layer->leave_work_to(*net_.items().back().layer);
    net_.add(config.kind, std::move(layer));
    return params.used();
  }

  // What the loss needs at the end of the chain: a row of scores for each image, one a class.
  void expect_row_of_scores(const LayerConfig& last) {
    if (!shape_known_ || count_of(shape_) == shape_.front()) return;
    diagnostics_.add(
        last.place,
        join("the network must end in a row of scores, one a class, but '", last.name, "' gives ", to_string(shape_)),
        "end with '- linear: {outputs: CLASSES}'; softmax comes by itself, with the loss");
  }

 private:
  bool anything_trained() const {
    const std::vector<Parameter*> parameters = net_.parameters();
    return std::any_of(parameters.begin(), parameters.end(), [](const Parameter* each) { return each->trainable; });
  }

  Sequential& net_;
  ConvTuner& convolutions_;
  Diagnostics& diagnostics_;
  LayerRegistry registry_ = builtin_layers();
  Shape shape_;
  bool shape_known_;
  std::string previous_;
};

// What the config leaves open: a GPU measures in seconds what a CPU takes minutes for.
std::string engine_of(const Config& config, Device device) {
  if (!config.convolution.engine.empty()) return config.convolution.engine;
  return device.kind == Device::Kind::cuda && !config.deterministic ? "measured" : "rule";
}

// Of a device that is there; none where the config's device is not known either.
std::vector<std::unique_ptr<ConvEngine>> engines_of(const Config& config, Device device) {
  const bool there = device.kind == Device::Kind::cpu || device.index < cuda_device_count();
  if (config.device.empty() || !there) return {};
  return make_conv_engines(device, {config.convolution.workspace_limit, config.convolution.frequency_budget});
}

std::size_t image_bytes(const Shape& shape) {
  return static_cast<std::size_t>(count_of(shape)) * sizeof(float);
}

// Per image and layer, what is alive when the layer's turn comes in the backward pass: what the tape keeps up to there,
// and the two gradients at work.
std::vector<std::size_t> activation_bytes(const Sequential& net) {
  std::vector<std::size_t> alive;
  std::size_t kept = 0, before = image_bytes(net.input_shape());
  bool before_is_kept = true;  // the net's input belongs to the batch and is counted there
  for (const Sequential::Item& item : net.items()) {
    const Layer& layer = *item.layer;
    if (layer.keeps_input() && !before_is_kept) kept += before;
    before_is_kept = before_is_kept || layer.keeps_input();
    kept += layer.kept_bytes();
    alive.push_back(kept + before);
    if (layer.shares_input()) continue;
    const std::size_t after = image_bytes(layer.output_shape());
    if (layer.keeps_output()) kept += after;
    alive.back() = kept + before + after;
    before = after;
    before_is_kept = layer.keeps_output();
  }
  return alive;
}

ConvPlan::Facts expected_plan(const Model& model, const Conv2d& layer, const ConvProblem& problem, ConvPass pass) {
  return model.convolutions->expected(problem, pass, layer.engine())->facts();
}

// The most scratch that the passes of a layer take, one after the other.
std::size_t scratch_bytes(const Model& model, const Sequential::Item& item, std::int64_t batch) {
  std::size_t most = 0;
  for (const Conv2d* convolution : item.layer->convolutions()) {
    const ConvProblem problem = convolution->problem(batch);
    for (const ConvPass pass : every_pass)
      if (problem.in_training(pass))
        most = std::max(most, expected_plan(model, *convolution, problem, pass).scratch_bytes);
  }
  return most;
}

// What training may fill: what the stream holds already, and what its device has left.
std::size_t room_of(const MemoryUse& memory) {
  return memory.in_use + memory.cached + memory.free;
}

// The largest batch below `batch` that fits, a multiple of 8 where it is more than 16; 0: none.
template <class Fits>
std::int64_t largest_batch(std::int64_t batch, const Fits& fits) {
  std::int64_t fitting = 0, too_large = batch;
  while (too_large - fitting > 1) {
    const std::int64_t middle = fitting + (too_large - fitting) / 2;
    (fits(middle) ? fitting : too_large) = middle;
  }
  return fitting > 16 ? fitting / 8 * 8 : fitting;
}

// The limits that bring a plan down to the room there is; empty: one alone cannot.
std::string limits_within(const MemoryPlan& plan, std::size_t room) {
  if (plan.total() <= room) return {};
  const std::size_t missing = plan.total() - room;
  std::vector<std::string> limits;
  const auto lower = [&](const char* key, std::size_t part) {
    const std::size_t mebibytes = part > missing ? (part - missing) >> 20 : 0;
    if (mebibytes > 0) limits.push_back(join("--set convolution.", key, "=", mebibytes, "MiB"));
  };
  lower("frequency_budget", plan.spectra);
  lower("workspace_limit", plan.workspace);
  return join_names(limits, " or ");
}

}  // namespace

BuiltModel build_model(Params& root, const Config& config, Device device, ConvPolicy policy) {
  policy.engine = engine_of(config, device);
  policy.deterministic = config.deterministic;
  Model model;
  model.convolutions = std::make_unique<ConvTuner>(engines_of(config, device), policy);
  try {
    model.convolutions->check_name(policy.engine);
  } catch (const Error& error) {
    root.child("convolution").error("engine", error.what());
  }
  model.net = std::make_unique<Sequential>(config.input);
  ChainBuilder chain(*model.net, *model.convolutions, root.diagnostics());
  std::vector<LayerConfig> layers = config.layers;
  for (LayerConfig& layer : layers) layer.options = chain.add(layer);
  if (!layers.empty()) chain.expect_row_of_scores(layers.back());
  return {std::move(model), write_layers(layers)};
}

std::vector<std::string> recall_choices(const Model& model, const Device& device, std::int64_t batch) {
  std::vector<std::string> unknown;
  for (const Conv2d* convolution : model.net->convolutions()) {
    const ConvProblem problem = convolution->problem(batch);
    bool known = true;
    for (const ConvPass pass : every_pass)
      if (problem.in_training(pass))
        known = model.convolutions->recall(device, problem, pass, convolution->engine()) && known;
    if (known) continue;
    unknown.push_back(convolution->name());
    if (const auto& measuring = model.convolutions->policy().measuring) measuring->expect(1);
  }
  return unknown;
}

MemoryPlan plan_memory(const Model& model, std::int64_t batch, int optimizer_tensors) {
  MemoryPlan plan;
  for (const Parameter* parameter : model.net->parameters()) {
    const auto bytes = static_cast<std::size_t>(count_of(parameter->shape)) * sizeof(float);
    plan.weights += bytes;
    if (!parameter->trainable) continue;
    plan.gradients += bytes;
    plan.optimizer += bytes * static_cast<std::size_t>(optimizer_tensors);
  }

  plan.data =
      static_cast<std::size_t>(batch) * image_bytes(model.net->input_shape()) * 2;  // the batch at work and the next
  // Scratch and activations of the layer where both together are most.
  const std::vector<std::size_t> alive = activation_bytes(*model.net);
  for (std::size_t i = 0; i < alive.size(); ++i) {
    const Sequential::Item& item = model.net->items()[i];
    const std::size_t activations = static_cast<std::size_t>(batch) * alive[i];
    const std::size_t workspace = scratch_bytes(model, item, batch);
    if (activations + workspace <= plan.activations + plan.workspace) continue;
    plan.activations = activations;
    plan.workspace = workspace;
    plan.workspace_layer = workspace > 0 ? item.layer->name() : "";
  }
  // Spectra of the forward pass are kept for the backward pass.
  for (const Conv2d* convolution : model.net->convolutions())
    plan.spectra += expected_plan(model, *convolution, convolution->problem(batch), ConvPass::forward).kept_bytes;
  const std::size_t budget = model.convolutions->policy().frequency_budget;
  plan.spectra = std::min(plan.spectra, budget + budget / phases_share);
  return plan;
}

std::string memory_advice(const Model& model, std::int64_t batch, int optimizer_tensors, const MemoryUse& memory) try {
  const std::size_t room = room_of(memory);
  const auto plan_of = [&](std::int64_t images) { return plan_memory(model, images, optimizer_tensors); };
  const auto fits = [&](std::int64_t images) { return plan_of(images).total() < room; };
  const std::int64_t largest = largest_batch(batch, fits);
  if (largest == 0) {
    const MemoryPlan one = plan_of(1);
    const std::string limits = limits_within(one, room);
    return join("even a batch of 1 needs ", format_bytes(one.total()), " by plan, and the device has ",
                format_bytes(room), ": take ", limits.empty() ? "" : limits + " or ", "another device");
  }
  const MemoryPlan whole = plan_of(batch);
  const std::string limits = limits_within(whole, room);
  return join("training needs ", format_bytes(whole.total()), " at a batch of ", format_count(batch),
              " by plan, the device has ", format_bytes(room), "; a batch of ", format_count(largest), " needs ",
              format_bytes(plan_of(largest).total()), ": --batch-size ", largest,
              limits.empty() ? "" : join("; or, at a batch of ", format_count(batch), ", ", limits));
} catch (const Error& error) {  // the memory that ran out is the news, not a plan that cannot be made
  return join("what a smaller batch needs cannot be told: ", error.what());
}

void require_memory(const Model& model, std::int64_t batch, int optimizer_tensors, const MemoryUse& memory) {
  if (memory.free == 0 || plan_memory(model, batch, optimizer_tensors).total() <= room_of(memory)) return;
  throw OutOfMemory("too little memory: " + memory_advice(model, batch, optimizer_tensors, memory));
}

}  // namespace twiddle
