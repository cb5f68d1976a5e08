#include "models/checkpoints/checkpoint.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "framework/context.h"
#include "framework/error.h"
#include "framework/optimizers/optimizer.h"
#include "framework/parameter.h"
#include "framework/printable.h"
#include "layers/sequential.h"
#include "models/checkpoints/weights.h"
#include "models/training/weight_average.h"

namespace twiddle {

namespace {

constexpr std::string_view optimizer_prefix = "optimizer.", trained_prefix = "trained.", run_prefix = "run.";

std::string model_file(const std::string& folder) {
  return folder + "/model.safetensors";
}
std::string state_file(const std::string& folder) {
  return folder + "/state.safetensors";
}

// visit(name, field) for every number of a RunState.
template <class State, class Visit>
void each_field(State& state, const Visit& visit) {
  visit("step", state.step);
  visit("epoch", state.epoch);
  visit("batch", state.batch);
  visit("random_seed", state.random_seed);
  visit("random_position", state.random_position);
  visit("best_top1", state.best_score);  // of whatever metric: the name is that of the first checkpoints
  visit("best_epoch", state.best_epoch);
  visit("improved_score", state.improved_score);
  visit("improved_epoch", state.improved_epoch);
  visit("images", state.images);
  visit("loss_sum", state.loss_sum);
  visit("right", state.right);
  visit("position", state.position);
  visit("limit_batches", state.limit_batches);
  visit("overfit_batch", state.overfit_batch);
  visit("loss_scale", state.loss_scale);
  visit("good_steps", state.good_steps);
  visit("skipped_steps", state.skipped_steps);
  visit("left_out", state.left_out);
}

// visit(name, field) for those that are strings. Checkpoints of older programs do not have all of them.
template <class State, class Visit>
void each_string(State& state, const Visit& visit) {
  visit("watched", state.watched);
  visit("validation_set", state.validation_set);
  visit("precision", state.precision);
}

Metadata format_state(const RunState& state) {
  Metadata metadata;
  each_field(state, [&metadata](const char* name, const auto& field) {
    char text[64];
    const std::to_chars_result end = std::to_chars(text, text + sizeof text, field);  // reads back as the same number
    metadata[join(run_prefix, name)] = std::string(text, end.ptr);
  });
  each_string(state,
              [&metadata](const char* name, const std::string& field) { metadata[join(run_prefix, name)] = field; });
  return metadata;
}

const std::string& metadata_of(const ArraySource& contents, const std::string& key, const std::string& path) {
  const auto found = contents.metadata.find(key);
  if (found == contents.metadata.end())
    throw Error(ErrorKind::data, join(printable(path), ": has no '", key, "' in its metadata"));
  return found->second;
}

// Fields that the first checkpoints of this format did not have: if one is missing, it keeps its default.
bool is_new_field(std::string_view name) {
  return name == "right" || name == "position" || name == "limit_batches" || name == "overfit_batch" ||
         name == "improved_score" || name == "improved_epoch" || name == "loss_scale" || name == "good_steps" ||
         name == "skipped_steps" || name == "left_out";
}

bool is_score(std::string_view name) {
  return name == "best_top1" || name == "improved_score";
}

RunState parse_state(const ArraySource& contents, const std::string& path) {
  RunState state;
  state.position = -1;
  each_field(state, [&](const char* name, auto& field) {
    const std::string key = join(run_prefix, name);
    if (contents.metadata.count(key) == 0 && is_new_field(name)) return;
    const std::string& text = metadata_of(contents, key, path);
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), field);
    if (error != std::errc() || end != text.data() + text.size())
      throw Error(ErrorKind::data, join(printable(path), ": '", key, "' in its metadata is '", shown(text),
                                        "', not a number that fits"));
    if (!is_score(name) && field < 0)
      throw Error(ErrorKind::data,
                  join(printable(path), ": '", key, "' in its metadata is '", shown(text), "', below 0"));
  });
  each_string(state, [&contents](const char* name, std::string& field) {
    if (const auto found = contents.metadata.find(join(run_prefix, name)); found != contents.metadata.end())
      field = found->second;
  });
  return state;
}

// A checkpoint's two files, which are of one save. Their arrays are verified when they are read.
struct Checkpoint {
  ArraySource model, state;
};

Checkpoint open_checkpoint(const std::string& folder) {
  Checkpoint checkpoint{open_safetensors(model_file(folder)), open_safetensors(state_file(folder))};
  check_format_version(checkpoint.state, state_file(folder));
  if (metadata_of(checkpoint.state, "model", state_file(folder)) !=
      metadata_of(checkpoint.model, "xxh3", model_file(folder)))
    throw Error(ErrorKind::data,
                join(printable(folder), ": model.safetensors and state.safetensors are not of one save"));
  return checkpoint;
}

// The optimizer's tensors are named after their parameter, "momentum.conv1.weight", and as large or one number.
std::vector<std::pair<std::string, Tensor>> optimizer_state(Context& ctx, const Sequential& net,
                                                            const ArraySource& contents, const std::string& path) {
  std::vector<std::pair<std::string, Tensor>> state;
  const std::vector<Parameter*> parameters = net.parameters();
  for (const auto& [key, array] : contents.arrays) {
    if (key.starts_with(trained_prefix)) continue;
    const std::string name = key.starts_with(optimizer_prefix) ? key.substr(optimizer_prefix.size()) : "";
    const std::string owner = name.substr(name.find('.') + 1);
    const auto parameter = std::find_if(parameters.begin(), parameters.end(),
                                        [&owner](const Parameter* each) { return each->name == owner; });
    if (parameter == parameters.end() || array.type != DType::f32)
      throw Error(ErrorKind::data, join(printable(path), ": '", key, "' ", to_string(array.shape),
                                        " belongs to no parameter of this model"));
    if (array.shape != (*parameter)->shape && array.shape != Shape{1})
      throw Error(ErrorKind::data,
                  join(printable(path), ": '", key, "' is ", to_string(array.shape), " in the file, its parameter ",
                       to_string((*parameter)->shape), " in the model"));
    state.emplace_back(name, read_tensor(*ctx.stream, contents, key));
  }
  return state;
}

// The weights with which training continues, if a checkpoint has them in addition to averaged ones; else nothing.
std::vector<Tensor> trained_values(Context& ctx, const Sequential& net, const ArraySource& contents,
                                   const std::string& path) {
  ArraySource trained;
  for (const auto& [key, array] : contents.arrays)
    if (key.starts_with(trained_prefix)) trained.arrays[key.substr(trained_prefix.size())] = array;
  trained.read = [&contents](const std::string& name, const BytesVisitor& visit) {
    contents.read(join(trained_prefix, name), visit);
  };
  return trained.arrays.empty() ? std::vector<Tensor>() : fitting_values(ctx, net, trained, path);
}

}  // namespace

SavedBytes saved_bytes(const Sequential& net, const Optimizer& optimizer, bool averages) {
  std::size_t weights = 0, trained = 0;
  for (const Parameter* parameter : net.parameters()) {
    const auto bytes = static_cast<std::size_t>(count_of(parameter->shape)) * sizeof(float);
    weights += bytes;
    trained += parameter->trainable ? bytes : 0;
  }
  const auto states = static_cast<std::size_t>(optimizer.state_tensors());
  return {(averages ? 2 : 1) * weights + states * trained, weights};
}

void write_checkpoint(const std::string& folder, Context& ctx, const Sequential& net, const SavedOptimizer& optimizer,
                      RunState state, const std::vector<std::string>& classes, WeightAverage* average) {
  state.random_seed = ctx.random.seed();
  state.random_position = ctx.random.position();
  Metadata metadata = format_state(state);
  metadata["format_version"] = format_version;
  metadata["optimizer"] = optimizer.kind;
  std::map<std::string, Tensor> tensors;  // handles: nothing is copied
  if (average && average->begun())
    for (const Parameter* parameter : net.parameters())
      tensors[join(trained_prefix, parameter->name)] = parameter->variable.value();
  {
    const AveragedWeights averaged(average);
    metadata["model"] = save_weights(model_file(folder), ctx, net, classes);
  }
  for (const auto& [name, tensor] : optimizer.state) tensors[join(optimizer_prefix, name)] = tensor;
  write_safetensors(state_file(folder), source_of(*ctx.stream, std::move(tensors), std::move(metadata)));
}

void check_checkpoint(const std::string& folder) {
  const Checkpoint checkpoint = open_checkpoint(folder);
  verify_arrays(checkpoint.model);
  verify_arrays(checkpoint.state);
}

std::vector<std::string> checkpoint_classes(const std::string& folder) {
  return saved_classes(model_file(folder));
}

RunState restore_checkpoint(const std::string& folder, Context& ctx, const Sequential& net, Optimizer& optimizer,
                            WeightAverage* average) {
  const Checkpoint checkpoint = open_checkpoint(folder);
  const std::string path = state_file(folder);
  const RunState state = parse_state(checkpoint.state, path);
  const std::string& kind = metadata_of(checkpoint.state, "optimizer", path);
  if (kind != optimizer.kind())
    throw Error(ErrorKind::data,
                join(printable(path), ": holds the state of optimizer '", shown(kind), "', this run uses '",
                     optimizer.kind(), "'. To continue with the weights only: --weights ", model_file(folder)));
  std::vector<Tensor> values = fitting_values(ctx, net, checkpoint.model, model_file(folder));
  std::vector<Tensor> trained = trained_values(ctx, net, checkpoint.state, path);
  const auto optimizer_tensors = optimizer_state(ctx, net, checkpoint.state, path);

  optimizer.restore(optimizer_tensors);
  if (!trained.empty()) {
    if (average) average->restore(std::move(values));
    values = std::move(trained);
  }
  put_values(net, std::move(values));
  ctx.random.restore(state.random_seed, state.random_position);
  return state;
}

}  // namespace twiddle
