// One forward and backward pass, and a few steps, of a model on given weights and one given batch, or only the steps on
// several batches. Writes all results to a file that torch_numerics.py, torch_steps.py and torch_losses.py compare with
// PyTorch's.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "framework/error.h"
#include "layers/softmax_loss.h"
#include "models/checkpoints/checkpoint.h"
#include "models/checkpoints/weights.h"
#include "models/config/experiment.h"
#include "models/training/run_setup.h"

namespace twiddle {

namespace {

struct Arguments {
  std::string model, weights, batch, output;
  std::string device = "cpu", engine = "rule";
  int steps = 0;
  double rate = 0.001;
  std::vector<Override> overrides = {};
};

constexpr const char* usage =
    "twiddle_numerics MODEL.yaml WEIGHTS BATCH OUTPUT [--device D] [--engine E] [--steps N] [--rate R]\n"
    "                [--set KEY=VALUE] ...\n"
    "WEIGHTS, BATCH (images, labels) and OUTPUT are safetensors files. If the images have five dimensions, each step\n"
    "has the next batch, and OUTPUT has only the losses.";

Arguments parse(const std::vector<std::string>& words) {
  Arguments arguments;
  if (words.size() < 4 || words.size() % 2 != 0) throw Error(ErrorKind::config, usage);
  arguments.model = words[0];
  arguments.weights = words[1];
  arguments.batch = words[2];
  arguments.output = words[3];
  for (std::size_t i = 4; i < words.size(); i += 2) {
    const std::string &option = words[i], &value = words[i + 1];
    if (option == "--device")
      arguments.device = value;
    else if (option == "--engine")
      arguments.engine = value;
    else if (option == "--steps")
      arguments.steps = std::atoi(value.c_str());
    else if (option == "--rate")
      arguments.rate = std::atof(value.c_str());
    else if (option == "--set" && value.find('=') != std::string::npos)
      arguments.overrides.push_back({value.substr(0, value.find('=')), value.substr(value.find('=') + 1), "--set"});
    else
      throw Error(ErrorKind::config, usage);
  }
  return arguments;
}

// Dropout is off: no other program has its random numbers.
Experiment experiment_of(const Arguments& arguments) {
  std::vector<Override> overrides = arguments.overrides;
  overrides.push_back({"device", arguments.device, "--device"});
  overrides.push_back({"convolution.engine", arguments.engine, "--engine"});
  const Experiment as_written = load_experiment(arguments.model, arguments.overrides);
  for (const Sequential::Item* item : as_written.model.net->all_items())
    if (item->kind == "dropout" || item->kind == "drop_path")
      overrides.push_back({"model.layers." + item->layer->name() + ".rate", "0", "no dropout"});
  return load_experiment(arguments.model, overrides);
}

HostArray part_of(const HostArray& array, std::size_t index) {
  const Shape shape(array.shape.begin() + 1, array.shape.end());
  const auto bytes = static_cast<std::ptrdiff_t>(ArrayFacts{array.type, shape}.bytes());
  const auto begin = array.bytes.begin() + static_cast<std::ptrdiff_t>(index) * bytes;
  return {array.type, shape, {begin, begin + bytes}};
}

std::vector<Batch> batches_of(Context& ctx, const std::string& path) {
  const SafeTensors contents = read_safetensors(path);
  const auto images = contents.arrays.find("images"), labels = contents.arrays.find("labels");
  if (images == contents.arrays.end() || labels == contents.arrays.end())
    throw Error(ErrorKind::data, path + ": a batch is made of 'images' and 'labels'");
  if (images->second.shape.size() < 5)
    return {{to_tensor(*ctx.stream, images->second), to_tensor(*ctx.stream, labels->second), {}}};
  std::vector<Batch> batches;
  for (std::size_t i = 0; i < static_cast<std::size_t>(images->second.shape[0]); ++i)
    batches.push_back(
        {to_tensor(*ctx.stream, part_of(images->second, i)), to_tensor(*ctx.stream, part_of(labels->second, i)), {}});
  return batches;
}

// Stores logits, loss and gradients, then clears the gradients.
void run_once(Context& ctx, const Sequential& net, const Batch& batch, SafeTensors& results) {
  const Variable logits = net.forward(ctx, Variable(batch.images));
  const Variable loss = softmax_loss(ctx, logits, batch.targets);
  results.arrays["logits"] = to_host(*ctx.stream, logits.value());
  results.arrays["loss"] = to_host(*ctx.stream, loss.value());
  ctx.tape.backward(ctx, loss);
  for (const Parameter* parameter : net.parameters()) {
    if (!parameter->trainable) continue;
    results.arrays["grad." + parameter->name] = to_host(*ctx.stream, parameter->variable.grad());
    parameter->variable.clear_grad();
  }
}

// The outputs that each ReLU passes: if a sum of thousands of terms is nearly zero, rounding decides its sign.
void write_switches(Context& ctx, const Sequential& net, const Batch& batch, SafeTensors& results) {
  const EvaluationMode evaluating(ctx);
  Variable x(batch.images);
  for (const Sequential::Item& item : net.items()) {
    x = item.layer->forward(ctx, x);
    if (item.kind == "relu") results.arrays["switch." + item.layer->name()] = to_host(*ctx.stream, x.value());
  }
}

// The loss before each step, by the config's optimizer at one rate.
Tensor train(Context& ctx, const Experiment& experiment, const std::vector<Batch>& batches,
             const Arguments& arguments) {
  const std::unique_ptr<Communicator> one_rank = make_one_rank();
  const StepOptions options = step_options(experiment.config, {}, nullptr, true, *one_rank);
  TrainStep step(ctx, *experiment.model.net, *experiment.loss, *experiment.optimizer, options);
  std::vector<float> losses;
  for (int i = 0; i < arguments.steps; ++i) {
    const Batch& batch = batches[static_cast<std::size_t>(i) % batches.size()];
    losses.push_back(step.run(batch, arguments.rate).to_vector(*ctx.stream).at(0));
  }
  return Tensor::from(*ctx.stream, {arguments.steps}, losses);
}

void run(const Arguments& arguments) {
  const Experiment experiment = experiment_of(arguments);
  const Model& model = experiment.model;
  Context ctx(experiment.device, experiment.config.seed);
  model.net->initialize(ctx);
  load_weights(arguments.weights, ctx, *model.net);
  const std::vector<Batch> batches = batches_of(ctx, arguments.batch);
  SafeTensors results;
  if (batches.size() == 1) {
    run_once(ctx, *model.net, batches[0], results);
    write_switches(ctx, *model.net, batches[0], results);
  }
  if (arguments.steps > 0) results.arrays["losses"] = to_host(*ctx.stream, train(ctx, experiment, batches, arguments));
  write_safetensors(arguments.output, results);
}

}  // namespace

}  // namespace twiddle

int main(int argc, char** argv) {
  try {
    twiddle::run(twiddle::parse({argv + 1, argv + argc}));
    return 0;
  } catch (const twiddle::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return static_cast<int>(error.kind());
  }
}
