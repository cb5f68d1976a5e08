#include "models/memory_plan.h"

#include <algorithm>

#include "framework/error.h"
#include "framework/text.h"
#include "layers/conv/engines/engines.h"
#include "layers/conv/tuned_convolution.h"
#include "layers/conv/tuner/tuner.h"
#include "layers/sequential.h"
#include "models/builder.h"

namespace twiddle {

namespace {

std::size_t image_bytes(const Shape& shape, DType type = DType::f32) {
  return static_cast<std::size_t>(count_of(shape) * size_of(type));
}

// Elements between layers have 16 bits, and this layer reads and writes f32 casts of them (Sequential).
bool casts(const Sequential& net, const Layer& layer) {
  return net.type() != DType::f32 && !layer.takes_16_bits();
}

// Bytes per image and layer, in the order of all_items(), that are alive during the layer's backward pass: what the
// tape keeps up to there, and the layer's two gradients.
class ActivationWalk {
 public:
  // Images of f32 count as data. A cast of them is an activation.
  explicit ActivationWalk(const Sequential& net) {
    walk(net, image_bytes(net.input_shape(), net.type()), net.type() == DType::f32);
  }
  const std::vector<std::size_t>& alive() const { return alive_; }

 private:
  // `before` is the input's size; the layer that keeps it counts it. Returns whether the output is kept.
  bool walk(const Sequential& layers, std::size_t before, bool before_is_kept) {
    Shape input = layers.input_shape();
    for (const Sequential::Item& item : layers.items()) {
      Layer& layer = *item.layer;
      const Shape& output = layer.output_shape();
      const bool by_casts = casts(layers, layer);  // which it keeps, if anything; they have gradients, too
      const std::size_t read = by_casts ? image_bytes(input) : 0, written = by_casts ? image_bytes(output) : 0;
      input = output;
      std::size_t at_work = before + read + written;
      if (!layer.paths().empty()) {
        const Joined joined = walk_paths(layer, before, before_is_kept);
        before_is_kept = joined.keeps_input;
        at_work = std::max(before, joined.held);
      }
      needs_grad_ = needs_grad_ || is_trained(layer);
      const bool keeps_input = needs_grad_ && layer.keeps_input(), keeps_output = needs_grad_ && layer.keeps_output();
      if (keeps_input && by_casts) kept_ += read;
      if (keeps_input && !by_casts && !before_is_kept) kept_ += before;
      before_is_kept = before_is_kept || keeps_input;
      if (needs_grad_) kept_ += layer.kept_bytes();
      alive_.push_back(kept_ + at_work);
      if (layer.shares_input()) continue;
      const std::size_t after = image_bytes(output, layer.output_type());
      if (keeps_output) kept_ += by_casts ? written : after;
      alive_.back() = kept_ + at_work + after;
      before = after;
      before_is_kept = keeps_output && !by_casts;
    }
    return before_is_kept;
  }

  struct Joined {
    bool keeps_input;
    std::size_t held;  // what the join takes, in the backward pass what it gives
  };

  // While a path runs, the outputs of the earlier paths are held, in the backward pass their gradients. So is an input
  // that no layer keeps, and in the backward pass its gradient after the first path.
  Joined walk_paths(const Layer& layer, std::size_t before, bool before_is_kept) {
    const bool keeps_input = before_is_kept || starts_with_a_keeper(layer);
    if (keeps_input && !before_is_kept) kept_ += before;
    const std::vector<const Sequential*> paths = layer.paths();
    const bool input_is_joined =
        std::any_of(paths.begin(), paths.end(), [](const Sequential* path) { return path->items().empty(); });
    const bool input_needs_grad = needs_grad_;
    bool output_needs_grad = needs_grad_;
    std::size_t held = 0;
    for (const Sequential* path : paths) {
      if (path->items().empty()) continue;
      const bool holds_gradient = input_needs_grad && (input_is_joined || path != paths.back());
      const std::size_t input = !keeps_input || holds_gradient ? before : 0;
      needs_grad_ = input_needs_grad;
      kept_ += input;
      const bool output_is_kept = walk(*path, before, true);
      kept_ -= input;
      output_needs_grad = output_needs_grad || needs_grad_;
      if (output_is_kept) continue;
      const std::size_t output = image_bytes(path->output_shape(), path->type());
      held += output;
      kept_ += output;
    }
    needs_grad_ = output_needs_grad;
    kept_ -= held;
    return {keeps_input, input_is_joined && !keeps_input ? held + before : held};
  }

  static bool is_trained(Layer& layer) {
    const std::deque<Parameter>& parameters = layer.parameters();
    return std::any_of(parameters.begin(), parameters.end(), [](const Parameter& each) { return each.trainable; });
  }

  static bool starts_with_a_keeper(const Layer& layer) {
    const std::vector<const Sequential*> paths = layer.paths();
    return std::any_of(paths.begin(), paths.end(), [](const Sequential* path) {
      if (path->items().empty()) return false;
      const Layer& first = *path->items().front().layer;
      return first.keeps_input() || starts_with_a_keeper(first);
    });
  }

  std::vector<std::size_t> alive_;
  std::size_t kept_ = 0;
  bool needs_grad_ = false;  // a layer up to here is trained: from it on the tape keeps what the backward pass needs
};

// Returns the facts of a layer's plan for a pass.
ConvPlan::Facts expected_plan(const Model& model, const TunedConvolution& convolution, std::int64_t batch,
                              ConvPass pass) {
  return model.convolutions->expected(convolution.problem(batch), convolution.pass_for(pass), convolution.engine())
      ->facts();
}

// The most scratch that the passes of a layer take, one after the other.
std::size_t scratch_bytes(const Model& model, const Sequential::Item& item, std::int64_t batch) {
  std::size_t most = 0;
  for (const TunedConvolution* convolution : item.layer->convolutions())
    for (const ConvPass pass : every_pass)
      if (convolution->in_training(pass))
        most = std::max(most, expected_plan(model, *convolution, batch, pass).scratch_bytes);
  return most;
}

// What training may fill: what the stream holds already, and what its device has left.
std::size_t available_bytes(const MemoryUse& memory) {
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

// The limits that reduce a plan to the available memory; empty: no single one can.
std::string limits_within(const MemoryPlan& plan, std::size_t available) {
  if (plan.to_allocate() <= available) return {};
  const std::size_t missing = plan.to_allocate() - available;
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

MemoryPlan plan_memory(const Model& model, const TrainingSize& size) {
  const std::int64_t batch = size.batch;
  MemoryPlan plan;
  plan.program = size.program;
  for (const Parameter* parameter : model.net->parameters()) {
    const auto bytes = static_cast<std::size_t>(count_of(parameter->shape)) * sizeof(float);
    plan.weights += model.net->type() == DType::f32 ? bytes : bytes + bytes / 2;  // and a copy of 16 bits
    if (!parameter->trainable) continue;
    plan.gradients += bytes;
    plan.optimizer += static_cast<std::size_t>(static_cast<double>(bytes) * size.optimizer_tensors);
  }

  // Targets are no larger than outputs.
  const std::size_t image_and_target = image_bytes(model.net->input_shape()) + image_bytes(model.net->output_shape());
  plan.data = static_cast<std::size_t>(batch * size.batches) * image_and_target;
  // Scratch and activations of the layer where both together are most.
  const ActivationWalk walk(*model.net);
  const std::vector<const Sequential::Item*> items = model.net->all_items();
  for (std::size_t i = 0; i < items.size(); ++i) {
    const Sequential::Item& item = *items[i];
    const std::size_t activations = static_cast<std::size_t>(batch) * walk.alive()[i];
    const std::size_t workspace = scratch_bytes(model, item, batch);
    if (activations + workspace <= plan.activations + plan.workspace) continue;
    plan.activations = activations;
    plan.workspace = workspace;
    plan.workspace_layer = workspace > 0 ? item.layer->name() : "";
  }
  // Spectra of the forward pass are kept for the backward pass.
  for (const TunedConvolution* convolution : model.net->convolutions())
    plan.spectra += expected_plan(model, *convolution, batch, ConvPass::forward).kept_bytes;
  const std::size_t budget = model.convolutions->policy().frequency_budget;
  plan.spectra = std::min(plan.spectra, budget + budget / phases_share);
  return plan;
}

std::string memory_advice(const Model& model, const TrainingSize& size, const MemoryUse& memory) try {
  const std::int64_t batch = size.batch;
  const std::size_t available = available_bytes(memory);
  const auto plan_of = [&](std::int64_t images) {
    return plan_memory(model, {images, size.optimizer_tensors, size.batches, size.program});
  };
  const auto fits = [&](std::int64_t images) { return plan_of(images).to_allocate() < available; };
  const std::int64_t largest = largest_batch(batch, fits);
  if (largest == 0) {
    const MemoryPlan one = plan_of(1);
    const std::string limits = limits_within(one, available);
    return join("even a batch of 1 needs ", format_bytes(one.to_allocate()), " by plan, and the device has ",
                format_bytes(available), ": use ", limits.empty() ? "" : limits + " or ", "another device");
  }
  const MemoryPlan whole = plan_of(batch);
  const std::string limits = limits_within(whole, available);
  return join("training needs ", format_bytes(whole.to_allocate()), " at a batch of ", format_count(batch),
              " by plan, the device has ", format_bytes(available), "; a batch of ", format_count(largest), " needs ",
              format_bytes(plan_of(largest).to_allocate()), ": --batch-size ", largest,
              limits.empty() ? "" : join("; or, at a batch of ", format_count(batch), ", ", limits));
} catch (const Error& error) {  // the out-of-memory error matters, not a failure to make a plan
  return join("cannot compute the memory of a smaller batch: ", error.what());
}

MemoryPlan require_memory(const Model& model, const TrainingSize& size, const MemoryUse& memory) {
  MemoryPlan plan = plan_memory(model, size);
  if (memory.free > 0 && plan.to_allocate() > available_bytes(memory))
    throw OutOfMemory("too little memory: " + memory_advice(model, size, memory));
  return plan;
}

}  // namespace twiddle
