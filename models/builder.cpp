#include "models/builder.h"
#include "layers/conv/tuner/measuring.h"

#include <algorithm>

#include "framework/error.h"
#include "framework/text.h"
#include "layers/branches.h"
#include "layers/conv/engines/engines.h"
#include "layers/conv/tuned_convolution.h"
#include "layers/conv/tuner/tuner.h"
#include "models/config/layer_list.h"

namespace twiddle {

namespace {

// Builds layers one after another. After the first that failed, or without an input, the shapes are not known: layers
// are still made, on a stand-in shape, for the sake of the errors in their options, while what they say of the shape is
// ignored.
class ChainBuilder {
 public:
  ChainBuilder(Sequential& net, ConvTuner& convolutions, const std::vector<ParameterPattern>& frozen,
               Diagnostics& diagnostics)
      : net_(net),
        convolutions_(convolutions),
        frozen_(frozen),
        diagnostics_(diagnostics),
        shape_(net.input_shape()),
        shape_known_(!shape_.empty()) {
    if (!shape_known_) shape_ = {1, 1, 1};
  }

  // Puts a layer at the end of the chain, and into its item of the list every option as the layer uses it.
  void add(ConfigNode& item) {
    auto& [kind, place, options] = item.entries.front();
    const std::string name = prefix_ + layer_name(item);
    const bool branches = kind == "residual" || kind == "parallel";
    if (!branches && !registry_.has(kind)) {
      diagnostics_.add(place, unknown_name("layer", kind, known_kinds()),
                       kind.find('(') == kind.npos ? "" : "options go into { }, as in 'dropout: {rate: 0.5}'");
      shape_known_ = false;
      return;
    }
    const std::size_t errors_before = diagnostics_.size();
    const ConfigNode::Entry given_name = options.entries.front();
    options.entries.erase(options.entries.begin());
    Params params(options, kind, diagnostics_);
    std::unique_ptr<Layer> layer;
    try {
      layer = branches ? make_branches(item, name, params)
                       : registry_.make(kind, Site{name, shape_, convolutions_, anything_trained()}, params);
    } catch (const Error& error) {
      if (shape_known_ && diagnostics_.size() == errors_before) {
        diagnostics_.add(place, join("layer '", name, "': ", error.what()),
                         join("its input is ", to_string(shape_),
                              previous_.empty() ? " (model.input)" : " from '" + previous_ + "'"));
      }
      shape_known_ = false;
    }
    params.finish();
    if (diagnostics_.size() > errors_before) shape_known_ = false;
    if (layer == nullptr) return;
    freeze_parameters(*layer);
    shape_ = layer->output_shape();
    previous_ = name;
    if (!net_.items().empty()) layer->leave_work_to(*net_.items().back().layer);
    net_.add(kind, std::move(layer), place);
    options = params.used();
    options.kind = ConfigNode::Kind::mapping;
    options.entries.insert(options.entries.begin(), given_name);
  }

  // At the end of the chain; empty: not known.
  Shape output() const { return shape_known_ ? shape_ : Shape(); }

 private:
  // A path of the layer of that name, which starts where its chain is, with the same input and after the same layers.
  ChainBuilder(Sequential& path, const ChainBuilder& from, const std::string& layer)
      : net_(path),
        convolutions_(from.convolutions_),
        frozen_(from.frozen_),
        diagnostics_(from.diagnostics_),
        shape_(from.shape_),
        shape_known_(from.shape_known_),
        previous_(from.previous_),
        prefix_(layer + "."),
        trained_before_(from.anything_trained()) {}

  // Called before the next layer is built, which checks whether it needs the gradient of its input.
  void freeze_parameters(Layer& layer) const {
    for (Parameter& parameter : layer.parameters()) {
      if (!parameter.trainable || !any_matches(frozen_, parameter.name)) continue;
      parameter.frozen = true;
      parameter.keep_from_training();
    }
  }

  bool anything_trained() const {
    const std::vector<Parameter*> parameters = net_.parameters();
    return trained_before_ ||
           std::any_of(parameters.begin(), parameters.end(), [](const Parameter* each) { return each->trainable; });
  }

  std::vector<std::string> known_kinds() const {
    std::vector<std::string> names = registry_.names();
    names.insert(names.end(), {"parallel", "residual"});
    std::sort(names.begin(), names.end());
    return names;
  }

  // Returns null if the paths are invalid; the errors are in the diagnostics.
  std::unique_ptr<Layer> make_branches(ConfigNode& item, const std::string& layer, Params& params) {
    const std::size_t errors_before = diagnostics_.size();
    auto& [kind, place, options] = item.entries.front();
    const bool residual = kind == "residual";
    const Join join = residual ? Join::add : read_join(params);
    const std::vector<std::string> names = residual ? read_residual(params) : read_parallel(params);
    if (diagnostics_.size() > errors_before) return nullptr;
    std::vector<Branches::Path> paths;
    bool shapes_known = true;
    for (ConfigNode* list : path_lists(kind, options)) {
      Branches::Path path{names.at(paths.size()), Sequential(shape_, net_.type())};
      ChainBuilder chain(path.layers, *this, layer);
      for (ConfigNode& inner : list->items) chain.add(inner);
      shapes_known = shapes_known && chain.shape_known_;
      paths.push_back(std::move(path));
    }
    if (residual && paths.size() == 1) paths.push_back({"its input", Sequential(shape_, net_.type())});
    for (const char* key : {"layers", "shortcut", "paths"})  // as they are used, for a config that can be read again
      if (const ConfigNode* list = options.find(key)) params.use(key, *list);
    shape_known_ = shapes_known;
    if (!shapes_known) return nullptr;
    return std::make_unique<Branches>(layer, join, std::move(paths));
  }

  static Join read_join(Params& params) {
    const std::string join = params.choice("join", "concat", {"add", "concat", "multiply"});
    return join == "add" ? Join::add : join == "multiply" ? Join::multiply : Join::concat;
  }

  static bool is_list(const ConfigNode& node) { return node.kind == ConfigNode::Kind::sequence; }

  // The names of the paths, for errors.
  static std::vector<std::string> read_residual(Params& params) {
    const ConfigNode* layers = params.node("layers");
    if (layers == nullptr || !is_list(*layers) || layers->items.empty())
      params.error("layers", "'residual' needs 'layers', a list", "such as [conv2d: {filters: 64, kernel: 3, pad: 1}]");
    const ConfigNode* shortcut = params.node("shortcut");
    if (shortcut == nullptr) return {"layers"};
    if (!is_list(*shortcut))
      params.error("shortcut", "'shortcut' must be a list of layers", "leave it out for the input itself");
    return {"layers", "shortcut"};
  }

  static std::vector<std::string> read_parallel(Params& params) {
    const ConfigNode* paths = params.node("paths");
    if (paths == nullptr || !is_list(*paths) || paths->items.size() < 2) {
      params.error("paths", "'parallel' needs 'paths', a list of two or more lists of layers",
                   "such as [[conv2d: {filters: 64, kernel: 1}], []]; [] is the input itself");
      return {};
    }
    std::vector<std::string> names;
    for (const ConfigNode& path : paths->items) {
      if (!is_list(path))
        params.diagnostics().add(path.place, "a path must be a list of layers", "[] is the input itself");
      names.push_back(twiddle::join("path ", names.size()));
    }
    return names;
  }

  Sequential& net_;
  ConvTuner& convolutions_;
  const std::vector<ParameterPattern>& frozen_;
  Diagnostics& diagnostics_;
  LayerRegistry registry_ = builtin_layers();
  Shape shape_;
  bool shape_known_;
  std::string previous_, prefix_;  // prefix_: of the names of its layers
  bool trained_before_ = false;
};

// The last convolution or linear layer writes f32, for the loss, and all layers after it read and write f32. So does a
// layer that takes no 16 bits. A block that joins paths does so only at the end of the network: its result is cast.
void write_f32(const Sequential& net) {
  if (!net.items().empty()) net.items().back().layer->set_output_type(DType::f32);
  for (auto item = net.items().rbegin(); item != net.items().rend() && item->layer->paths().empty(); ++item) {
    item->layer->set_output_type(DType::f32);
    if (!item->layer->takes_16_bits() || !item->layer->convolutions().empty()) return;
  }
}

// Where the config leaves it open: a GPU measures in seconds what a CPU takes minutes for.
std::string usual_engine(const Config& config, Device device) {
  return device.kind == Device::Kind::cuda && !config.deterministic ? "measured" : "rule";
}

// For a device that is present; none if the config's device is not known either.
std::vector<std::unique_ptr<ConvEngine>> engines_of(const Config& config, Device device) {
  const bool there = device.kind == Device::Kind::cpu || device.index < cuda_device_count();
  if (config.device.empty() || !there) return {};
  return make_conv_engines(device, {config.convolution.workspace_limit, config.convolution.frequency_budget});
}

}  // namespace

Model::Model() = default;
Model::Model(Model&&) noexcept = default;
Model& Model::operator=(Model&&) noexcept = default;
Model::~Model() = default;

BuiltModel build_model(Params& root, const Config& config, Device device, ConvPolicy policy) {
  if (policy.engine.empty()) policy.engine = usual_engine(config, device);
  policy.deterministic = config.deterministic;
  if (policy.warn && device.kind == Device::Kind::cpu && storage_of(policy.precision) != DType::f32)
    policy.warn(join("precision ", to_string(policy.precision), " is emulated on a CPU, slower than fp32"));
  Model model;
  model.device = device;
  model.convolutions = std::make_unique<ConvTuner>(engines_of(config, device), policy);
  try {
    model.convolutions->check_name(policy.engine);
  } catch (const Error& error) {
    root.child("convolution").error("engine", error.what());
  }
  model.net = std::make_unique<Sequential>(config.input, storage_of(policy.precision));
  ChainBuilder chain(*model.net, *model.convolutions, config.train.freeze, root.diagnostics());
  ConfigNode layers = config.layers;
  for (ConfigNode& layer : layers.items) chain.add(layer);
  write_f32(*model.net);
  return {std::move(model), std::move(layers), chain.output()};
}

std::vector<std::string> recall_choices(const Model& model, const Device& device, std::int64_t batch) {
  std::vector<std::string> unknown;
  for (const TunedConvolution* convolution : model.net->convolutions()) {
    const ConvProblem problem = convolution->problem(batch);
    bool known = true;
    for (const ConvPass pass : every_pass)
      if (convolution->in_training(pass))
        known =
            model.convolutions->recall(device, problem, convolution->pass_for(pass), convolution->engine()) && known;
    if (known) continue;
    unknown.push_back(convolution->layer());
    if (const auto& measuring = model.convolutions->policy().measuring) measuring->expect(1);
  }
  return unknown;
}

}  // namespace twiddle
