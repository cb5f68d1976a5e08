#include "models/checkpoints/weights.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "framework/error.h"
#include "framework/printable.h"
#include "framework/tensor_ops.h"
#include "framework/text.h"
#include "models/checkpoints/torch_names.h"
#include "models/config/json_text.h"

namespace twiddle {

namespace {

using nlohmann::json;

constexpr std::size_t most_listed = 10;

// What the file calls each parameter, in the order of the parameters.
std::vector<std::string> names_in_file(const Sequential& net, const ArrayTable& arrays) {
  const std::map<std::string, std::string> foreign = torch_names(net, arrays);
  std::vector<std::string> names;
  for (const Parameter* parameter : net.parameters()) {
    const auto found = foreign.find(parameter->name);
    names.push_back(found == foreign.end() ? parameter->name : found->second);
  }
  return names;
}

Shape without_ones_at_its_end(Shape shape) {
  while (!shape.empty() && shape.back() == 1) shape.pop_back();
  return shape;
}

// 384x96 fits 384x96x1x1: torchvision's ConvNeXt has linear layers where ours has 1x1 convolutions.
bool fits(const Shape& in_file, const Shape& in_model) {
  return without_ones_at_its_end(in_file) == without_ones_at_its_end(in_model);
}

// Why the file has no value for a parameter; empty where it has.
std::string misfit(const Parameter& parameter, const std::string& file_name, const ArrayTable& arrays) {
  const bool same = parameter.name == file_name;
  const std::string shown_name = join("'", parameter.name, "'", same ? "" : " ('" + file_name + "')");
  const auto found = arrays.find(file_name);
  if (found == arrays.end()) return join("missing: ", shown_name, " ", to_string(parameter.shape));
  if (!fits(found->second.shape, parameter.shape))
    return join(shown_name, " is ", to_string(found->second.shape), " in the file, ", to_string(parameter.shape),
                " in the model");
  return found->second.type == DType::f32 ? "" : join(shown_name, " has dtype I32 in the file; F32 is needed");
}

// What of the file belongs to no parameter, with shapes.
std::vector<std::string> without_parameter(const ArrayTable& arrays, const std::vector<std::string>& file_names) {
  const std::set<std::string> names(file_names.begin(), file_names.end());
  std::vector<std::string> left;
  for (const auto& [name, array] : arrays)
    if (!names.contains(name)) left.push_back(join("'", name, "' ", to_string(array.shape)));
  return left;
}

// What does not fit, a line each.
std::vector<std::string> misfits(const ArrayTable& arrays, const std::vector<Parameter*>& parameters,
                                 const std::vector<std::string>& file_names) {
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < parameters.size(); ++i)
    if (std::string line = misfit(*parameters[i], file_names[i], arrays); !line.empty())
      lines.push_back(std::move(line));
  for (const std::string& array : without_parameter(arrays, file_names)) lines.push_back("unexpected: " + array);
  return lines;
}

void expect_tensors(const ArraySource& contents, const std::string& path) {
  if (contents.arrays.empty()) throw Error(ErrorKind::data, join(printable(path), ": has no tensor in it"));
}

// The first of the lines, below `text`.
std::string with_lines(std::string text, const std::vector<std::string>& lines) {
  for (std::size_t i = 0; i < lines.size() && i < most_listed; ++i) text += "\n  " + lines[i];
  return lines.size() > most_listed ? join(text, "\n  ... and ", lines.size() - most_listed, " more") : text;
}

std::vector<std::string> parse_classes(const ArraySource& contents, const std::string& path) {
  const auto text = contents.metadata.find("classes");
  if (text == contents.metadata.end()) return {};
  const auto fail = [&path] {
    throw Error(ErrorKind::data, join(printable(path), ": 'classes' in its metadata is not a JSON list of names"));
  };
  // A list of strings opens one bracket; whatever is nested deeper is not worth parsing.
  std::vector<std::string> classes;
  const auto flat = [&fail](int depth, json::parse_event_t event, json&) {
    if (depth > 0 && (event == json::parse_event_t::array_start || event == json::parse_event_t::object_start)) fail();
    return true;
  };
  const json list = json::parse(text->second, flat, false);
  if (!list.is_array()) fail();
  for (const json& name : list) {
    if (!name.is_string()) fail();
    classes.push_back(printable(name.get<std::string>()));
  }
  std::set<std::string_view> seen;
  for (const std::string& name : classes)
    if (!seen.insert(name).second)
      throw Error(ErrorKind::data,
                  join(printable(path), ": 'classes' in its metadata names '", shown(name), "' twice; edit that list"));
  return classes;
}

void expect_outputs(const std::vector<std::string>& classes, const Sequential& net, const std::string& path) {
  const std::int64_t outputs = net.output_shape().at(0);
  const bool is_row = count_of(net.output_shape()) == outputs;
  if (is_row && std::ssize(classes) > outputs)
    throw Error(ErrorKind::data,
                join(printable(path), ": 'classes' in its metadata has ", format_count(std::ssize(classes), "name"),
                     ", the network has ", outputs, " outputs; edit that list"));
}

// Throws if some of the floats are not finite: a network with such weights says nothing of any image.
ArraySource checked_for_finite(ArraySource source, const std::string& path) {
  const auto read = source.read;
  source.read = [read, arrays = source.arrays, path](const std::string& name, const BytesVisitor& visit) {
    const bool floats = arrays.at(name).type == DType::f32;
    std::size_t bad = 0, count = 0;
    read(name, [&](std::string_view part) {
      visit(part);
      for (std::size_t i = 0; floats && i < part.size(); i += sizeof(float), ++count) {
        float value = 0;
        std::memcpy(&value, part.data() + i, sizeof value);
        bad += std::isfinite(value) ? 0 : 1;
      }
    });
    if (bad > 0)
      throw Error(ErrorKind::diverged, join(path, ": ", bad, " of the ", count, " values of '", shown(name),
                                            "' are nan or infinite: the training that made them went wrong"));
  };
  return source;
}

Tensor rounded(Stream& stream, const Parameter& parameter, DType type) {
  Tensor value = cast(stream, parameter.variable.value(), type);
  if (!all_finite(stream, value))
    throw Error(ErrorKind::config,
                join("'", parameter.name, "' has a value that overflows ",
                     type == DType::f16 ? "fp16: use --store bf16 or fp32" : "bf16: use --store fp32"));
  return value;
}

}  // namespace

std::string save_weights(const std::string& path, Context& ctx, const Sequential& net,
                         const std::vector<std::string>& classes, const Metadata& more, DType store) {
  std::map<std::string, Tensor> tensors;
  for (const Sequential::Item* item : net.all_items())
    for (const Parameter& parameter : item->layer->parameters()) {
      require(parameter.variable.value().defined(), "'", parameter.name, "' has no value to save yet");
      // Those that layers read in 16 bits if the network stores activations so.
      const bool is_rounded =
          store != DType::f32 && !item->layer->convolutions().empty() && parameter.name.ends_with(".weight");
      tensors[parameter.name] = is_rounded ? rounded(*ctx.stream, parameter, store) : parameter.variable.value();
    }
  Metadata metadata = more;
  metadata["format_version"] = format_version;
  metadata["format"] = "pt";  // some Python loaders require it
  if (!classes.empty()) metadata["classes"] = json_text(json(classes));
  return write_safetensors(path, source_of(*ctx.stream, std::move(tensors), std::move(metadata)));
}

WeightsInfo load_weights(const std::string& path, Context& ctx, const Sequential& net) {
  const ArraySource contents = checked_for_finite(open_safetensors(path), path);
  WeightsInfo info{parse_classes(contents, path)};
  std::vector<Tensor> values = fitting_values(ctx, net, contents, path);
  expect_outputs(info.classes, net, path);
  put_values(net, std::move(values));
  return info;
}

std::size_t TakenWeights::taken() const {
  return static_cast<std::size_t>(
      std::count_if(layers.begin(), layers.end(), [](const Layer& layer) { return layer.misfits.empty(); }));
}

bool TakenWeights::has_last_layer() const {
  return !layers.empty() && layers.back().misfits.empty();
}

std::vector<std::string> saved_classes(const std::string& path) {
  return parse_classes(open_safetensors(path), path);
}

TakenWeights take_weights(const std::string& path, Context& ctx, const Sequential& net) {
  const ArraySource contents = checked_for_finite(open_safetensors(path), path);
  expect_tensors(contents, path);
  check_format_version(contents, path);
  const std::vector<std::string> file_names = names_in_file(net, contents.arrays);
  TakenWeights result;
  std::vector<std::pair<Parameter*, std::string>> fitting;
  auto file_name = file_names.begin();
  for (const Sequential::Item* item : net.all_items()) {
    std::deque<Parameter>& parameters = item->layer->parameters();
    if (parameters.empty()) continue;
    std::vector<std::string> lines;
    const std::vector<std::string> own_names(file_name, file_name + static_cast<std::ptrdiff_t>(parameters.size()));
    for (std::size_t i = 0; i < parameters.size(); ++i)
      if (std::string line = misfit(parameters[i], own_names[i], contents.arrays); !line.empty())
        lines.push_back(std::move(line));
    for (std::size_t i = 0; i < parameters.size() && lines.empty(); ++i)
      fitting.emplace_back(&parameters[i], own_names[i]);
    result.layers.push_back({item->layer->name(), join_names(lines)});
    file_name += static_cast<std::ptrdiff_t>(parameters.size());
  }
  result.classes = parse_classes(contents, path);
  if (result.has_last_layer()) expect_outputs(result.classes, net, path);
  result.left = without_parameter(contents.arrays, file_names);
  if (fitting.empty())
    throw Error(ErrorKind::data, with_lines(join(printable(path), ": has no layer of this model, by name and shape"),
                                            misfits(contents.arrays, net.parameters(), file_names)));
  std::vector<Tensor> values;
  for (const auto& [parameter, name] : fitting)
    values.push_back(read_tensor(*ctx.stream, contents, name).reshaped(parameter->shape));
  for (std::size_t i = 0; i < fitting.size(); ++i) fitting[i].first->variable.value() = std::move(values[i]);
  return result;
}

std::vector<Tensor> fitting_values(Context& ctx, const Sequential& net, const ArraySource& contents,
                                   const std::string& path) {
  expect_tensors(contents, path);
  check_format_version(contents, path);
  const std::vector<Parameter*> parameters = net.parameters();
  const std::vector<std::string> file_names = names_in_file(net, contents.arrays);
  const std::vector<std::string> lines = misfits(contents.arrays, parameters, file_names);
  if (!lines.empty())
    throw Error(ErrorKind::data, with_lines(join(printable(path), ": does not fit this model"), lines));
  std::vector<Tensor> values;
  for (std::size_t i = 0; i < parameters.size(); ++i)
    values.push_back(read_tensor(*ctx.stream, contents, file_names[i]).reshaped(parameters[i]->shape));
  return values;
}

void put_values(const Sequential& net, std::vector<Tensor> values) {
  const std::vector<Parameter*> parameters = net.parameters();
  for (std::size_t i = 0; i < parameters.size(); ++i) parameters[i]->variable.value() = std::move(values[i]);
}

void check_format_version(const ArraySource& contents, const std::string& path) {
  const auto version = contents.metadata.find("format_version");
  if (version != contents.metadata.end() && version->second != format_version)
    throw Error(ErrorKind::data,
                join(printable(path), ": has format version '", shown(version->second), "', this program reads ",
                     format_version, "; a newer version of the program wrote it"));
}

}  // namespace twiddle
