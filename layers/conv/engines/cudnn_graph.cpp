#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <set>
#include <utility>

#include "framework/error.h"
#include "layers/conv/engines/cudnn_plan.h"
#include "layers/conv/kernels/cuda/nhwc.h"

namespace twiddle {

namespace {

// A descriptor of the graph API: attributes are set one by one, then it is finalised.
class Descriptor {
 public:
  explicit Descriptor(cudnnBackendDescriptorType_t type) { check(cudnn().create_descriptor(type, handle_.put())); }
  void* get() const { return handle_.get(); }

  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::int64_t count, const void* values) {
    check(cudnn().set_attribute(handle_.get(), name, type, count, values));
  }
  void set(cudnnBackendAttributeName_t name, const std::vector<std::int64_t>& values) {
    set(name, CUDNN_TYPE_INT64, static_cast<std::int64_t>(values.size()), values.data());
  }
  void set(cudnnBackendAttributeName_t name, std::int64_t value) { set(name, CUDNN_TYPE_INT64, 1, &value); }
  void set(cudnnBackendAttributeName_t name, float value) { set(name, CUDNN_TYPE_FLOAT, 1, &value); }
  void set(cudnnBackendAttributeName_t name, cudnnDataType_t value) { set(name, CUDNN_TYPE_DATA_TYPE, 1, &value); }
  void set(cudnnBackendAttributeName_t name, cudnnHandle_t value) { set(name, CUDNN_TYPE_HANDLE, 1, &value); }
  void set(cudnnBackendAttributeName_t name, const Descriptor& value) {
    void* const raw = value.get();
    set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &raw);
  }

  // Returns the number of requested attributes; writes their values to `values`.
  std::int64_t read(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::int64_t most,
                    void* values) const {
    std::int64_t count = 0;
    check(cudnn().get_attribute(handle_.get(), name, type, most, &count, values));
    return std::min(count, most);
  }
  std::int64_t read(cudnnBackendAttributeName_t name) const {
    std::int64_t value = 0;
    read(name, CUDNN_TYPE_INT64, 1, &value);
    return value;
  }
  // Up to `most` descriptors of one type, which the caller of the library has to make first.
  std::vector<Descriptor> read_all(cudnnBackendAttributeName_t name, cudnnBackendDescriptorType_t type,
                                   std::int64_t most) const {
    std::vector<Descriptor> found;
    std::vector<void*> raw;
    for (std::int64_t i = 0; i < most; ++i) raw.push_back(found.emplace_back(type).get());
    const std::int64_t count = read(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, most, raw.data());
    found.erase(found.begin() + count, found.end());
    return found;
  }

  void finalize() { check(cudnn().finalize(handle_.get())); }

 private:
  CudnnDescriptor handle_;
};

constexpr std::int64_t id_x = 1, id_w = 2, id_y = 3;

cudnnDataType_t cudnn_type(DType type) {
  return type == DType::bf16 ? CUDNN_DATA_BFLOAT16 : type == DType::f16 ? CUDNN_DATA_HALF : CUDNN_DATA_FLOAT;
}

// The gradient of weights is f32.
DType type_of_weight(const ConvProblem& problem, ConvPass pass) {
  return pass == ConvPass::backward_weight ? DType::f32 : storage_of(problem.precision);
}

Descriptor tensor(std::int64_t id, const Shape& shape, DType type, CudnnLayout layout) {
  const std::int64_t channels = shape[1], height = shape[2], width = shape[3], image = channels * height * width;
  Descriptor made(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  made.set(CUDNN_ATTR_TENSOR_DATA_TYPE, cudnn_type(type));
  made.set(CUDNN_ATTR_TENSOR_DIMENSIONS, shape);
  made.set(CUDNN_ATTR_TENSOR_STRIDES, layout == CudnnLayout::nchw ? Shape{image, height * width, width, 1}
                                                                  : Shape{image, 1, width * channels, channels});
  made.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, id);
  made.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, std::int64_t(16));
  made.finalize();
  return made;
}

Descriptor convolution(const ConvProblem& p) {
  const auto pair = [](std::int64_t height, std::int64_t width) { return std::vector<std::int64_t>{height, width}; };
  const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
  Descriptor made(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  made.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, std::int64_t(2));
  made.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_DATA_FLOAT);
  made.set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
  made.set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, pair(p.pad_h, p.pad_w));
  made.set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, pair(p.pad_h, p.pad_w));
  made.set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, pair(p.stride_h, p.stride_w));
  made.set(CUDNN_ATTR_CONVOLUTION_DILATIONS, pair(p.dilation, p.dilation));
  made.finalize();
  return made;
}

// What a pass is called in the graph API.
struct OperationNames {
  cudnnBackendDescriptorType_t type;
  cudnnBackendAttributeName_t alpha, beta, convolution, x, w, y;
};

OperationNames names_of(ConvPass pass) {
  switch (pass) {
    case ConvPass::backward_input:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY};
    case ConvPass::backward_weight:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY};
    default:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y};
  }
}

// One pass of a problem as a graph of one node.
struct OperationGraph {
  OperationGraph(cudnnHandle_t handle, const ConvProblem& p, ConvPass pass, CudnnLayout layout)
      : x(tensor(id_x, p.input_shape(), storage_of(p.precision), layout)),
        w(tensor(id_w, p.weight_shape(), type_of_weight(p, pass), layout)),
        y(tensor(id_y, p.output_shape(), storage_of(p.precision), layout)),
        convolves(convolution(p)),
        operation(names_of(pass).type),
        graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR) {
    const OperationNames names = names_of(pass);
    operation.set(names.x, x);
    operation.set(names.w, w);
    operation.set(names.y, y);
    operation.set(names.convolution, convolves);
    operation.set(names.alpha, 1.0f);
    operation.set(names.beta, 0.0f);
    operation.finalize();
    graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, operation);
    graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, handle);
    graph.finalize();
  }
  Descriptor x, w, y, convolves, operation, graph;
};

// Null if cuDNN has no such operation on 16 bits.
std::shared_ptr<const OperationGraph> graph_of(cudnnHandle_t handle, const ConvProblem& problem, ConvPass pass,
                                               CudnnLayout layout) try {
  return std::make_shared<const OperationGraph>(handle, problem, pass, layout);
} catch (const Error&) {
  if (storage_of(problem.precision) == DType::f32) throw;
  return nullptr;
}

// The engines that a heuristic proposes, best first; none where it fails.
std::vector<Descriptor> propose(const Descriptor& graph, cudnnBackendHeurMode_t mode) try {
  constexpr std::int64_t most = 64;  // many: those with tensor cores come first and do not serve fp32
  Descriptor heuristic(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristic.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
  heuristic.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
  heuristic.finalize();
  return heuristic.read_all(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, most);
} catch (const Error&) {
  return {};
}

// The configuration of an engine with its settings, after the descriptors that it consists of.
std::vector<Descriptor> configure(const Descriptor& graph, const CudnnPlanName& name) {
  std::vector<Descriptor> made;
  Descriptor& engine = made.emplace_back(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  engine.set(CUDNN_ATTR_ENGINE_OPERATION_GRAPH, graph);
  engine.set(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, name.engine);
  engine.finalize();
  std::vector<void*> choices;
  for (const auto& [type, value] : name.knobs) {
    require(type >= 0 && type < CUDNN_KNOB_TYPE_COUNTS, "cuDNN has no knob ", type);
    const auto knob = static_cast<cudnnBackendKnobType_t>(type);
    Descriptor& choice = made.emplace_back(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
    choice.set(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &knob);
    choice.set(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, value);
    choice.finalize();
    choices.push_back(choice.get());
  }
  Descriptor& config = made.emplace_back(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  config.set(CUDNN_ATTR_ENGINECFG_ENGINE, made.front());
  if (!choices.empty())
    config.set(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_TYPE_BACKEND_DESCRIPTOR,
               static_cast<std::int64_t>(choices.size()), choices.data());
  config.finalize();
  return made;
}

// What an engine and its settings are called, and how it computes.
struct Traits {
  Traits(const Descriptor& config, CudnnLayout layout) {
    Descriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    void* raw = engine.get();
    config.read(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &raw);
    name.family = layout == CudnnLayout::nhwc ? "nhwc" : "nchw";
    name.engine = engine.read(CUDNN_ATTR_ENGINE_GLOBAL_INDEX);
    for (const Descriptor& knob : config.read_all(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES,
                                                  CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, CUDNN_KNOB_TYPE_COUNTS)) {
      cudnnBackendKnobType_t type{};
      knob.read(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &type);
      name.knobs.emplace_back(int(type), knob.read(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE));
    }
    std::array<cudnnBackendNumericalNote_t, CUDNN_NUMERICAL_NOTE_TYPE_COUNT> found{};
    const std::int64_t count = engine.read(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                                           std::int64_t(found.size()), found.data());
    notes.insert(found.begin(), found.begin() + count);
  }
  bool keeps(Precision precision) const {
    if (notes.count(CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS)) return false;
    return precision != Precision::fp32 || !notes.count(CUDNN_NUMERICAL_NOTE_TENSOR_CORE);
  }
  CudnnPlanName name;
  std::set<cudnnBackendNumericalNote_t> notes;
};

// What follows in one block of scratch stays aligned.
std::size_t aligned(std::size_t bytes) {
  return (bytes + 255) / 256 * 256;
}

// One tensor whose layout a plan changes: `count` matrices of [rows][columns] on our side.
struct Relayout {
  std::int64_t count = 0, rows = 0, columns = 0;
  int element_bytes = 0;
  Relayout(const Shape& shape, DType type)
      : count(shape[0]), rows(shape[1]), columns(shape[2] * shape[3]), element_bytes(size_of(type)) {}
  bool needed() const { return rows > 1 && columns > 1; }
  std::size_t bytes() const {
    return needed() ? aligned(static_cast<std::size_t>(count * rows * columns * element_bytes)) : 0;
  }
  void run(Stream& stream, const void* from, void* to) const {
    transpose_planes(stream, count, rows, columns, element_bytes, from, to);
  }
  void run_back(Stream& stream, const void* from, void* to) const {
    transpose_planes(stream, count, columns, rows, element_bytes, from, to);
  }
};

struct GraphPlan : CudnnPlan {
  GraphPlan(std::shared_ptr<const OperationGraph> of, std::vector<Descriptor> chosen)
      : graph(std::move(of)), config(std::move(chosen)), plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR) {}

  void run(cudnnHandle_t handle, Stream& stream, const ConvPointers& at, void* scratch) const override {
    std::array<const void*, 3> places{at.x, at.w, at.y};
    auto* buffer = static_cast<char*>(scratch) + own_workspace;
    char* changed = nullptr;  // the result, in the plan's layout
    for (std::size_t i = 0; i < relayouts.size(); ++i) {
      if (!relayouts[i].needed()) continue;
      if (i == written)
        changed = buffer;
      else
        relayouts[i].run(stream, places[i], buffer);
      places[i] = buffer;
      buffer += relayouts[i].bytes();
    }
    execute(handle, places, own_workspace > 0 ? scratch : nullptr);
    if (changed == nullptr) return;
    const void* const plain = std::array{at.x, at.w, at.y}[written];
    relayouts[written].run_back(stream, changed, const_cast<void*>(plain));
  }

  void run_in_own_layout(cudnnHandle_t handle, Stream&, const ConvPointers& at, void* scratch) const override {
    execute(handle, {at.x, at.w, at.y}, scratch);
  }

  void execute(cudnnHandle_t handle, const std::array<const void*, 3>& places, void* scratch) const {
    const std::array<std::int64_t, 3> operands{id_x, id_w, id_y};
    Descriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, 3, places.data());
    pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, 3, operands.data());
    pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &scratch);
    pack.finalize();
    check(cudnn().execute(handle, plan.get(), pack.get()));
  }

  std::shared_ptr<const OperationGraph> graph;
  std::vector<Descriptor> config;  // the last one; before it what it is made of, where cuDNN did not make it
  Descriptor plan;
  std::size_t own_workspace = 0, written = 0;  // which of x, w, y
  std::vector<Relayout> relayouts;             // of x, w, y; none for plain tensors
};

std::unique_ptr<CudnnPlan> make_plan(cudnnHandle_t handle, const std::shared_ptr<const OperationGraph>& graph,
                                     std::vector<Descriptor> config, const Traits& traits, const ConvProblem& problem,
                                     ConvPass pass, CudnnLayout layout) {
  auto made = std::make_unique<GraphPlan>(graph, std::move(config));
  made->plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, handle);
  made->plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, made->config.back());
  made->plan.finalize();
  made->own_workspace = aligned(static_cast<std::size_t>(made->plan.read(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE)));
  made->name = traits.name;
  made->deterministic = !traits.notes.count(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC);
  made->workspace = made->own_workspace;
  made->written = pass == ConvPass::backward_input ? 0 : pass == ConvPass::backward_weight ? 1 : 2;
  if (layout == CudnnLayout::nhwc)
    for (const auto& [shape, type] : {std::pair(problem.input_shape(), storage_of(problem.precision)),
                                      {problem.weight_shape(), type_of_weight(problem, pass)},
                                      {problem.output_shape(), storage_of(problem.precision)}})
      made->workspace += made->relayouts.emplace_back(shape, type).bytes();
  return made;
}

}  // namespace

CudnnPlans cudnn_graphs(cudnnHandle_t handle, const ConvProblem& problem, ConvPass pass, CudnnLayout layout, int most) {
  const std::shared_ptr<const OperationGraph> graph = graph_of(handle, problem, pass, layout);
  CudnnPlans plans;
  if (graph == nullptr) return plans;
  std::set<std::string> seen;
  for (const cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_B, CUDNN_HEUR_MODE_FALLBACK}) {
    // Usually slow, and slow to benchmark, but the fastest for some strided layers: OverFeat's first in 1.07 ms
    // forward, the others in 1.30 (H200).
    const bool strided = problem.stride_h > 1 || problem.stride_w > 1;
    if (mode == CUDNN_HEUR_MODE_FALLBACK && !plans.empty() && !strided) break;
    int made = 0;
    for (Descriptor& config : propose(graph->graph, mode)) {
      if (made == most) break;
      try {
        const Traits traits(config, layout);
        if (!traits.keeps(problem.precision) || !seen.insert(to_string(traits.name)).second) continue;
        std::vector<Descriptor> chosen;
        chosen.push_back(std::move(config));
        plans.push_back(make_plan(handle, graph, std::move(chosen), traits, problem, pass, layout));
        ++made;
      } catch (const Error&) {  // an engine that the heuristic names may still refuse
      }
    }
  }
  return plans;
}

std::unique_ptr<CudnnPlan> cudnn_graph(cudnnHandle_t handle, const ConvProblem& problem, ConvPass pass,
                                       const CudnnPlanName& name) {
  const CudnnLayout layout = name.family == "nhwc" ? CudnnLayout::nhwc : CudnnLayout::nchw;
  const std::shared_ptr<const OperationGraph> graph = graph_of(handle, problem, pass, layout);
  if (graph == nullptr) return nullptr;
  std::vector<Descriptor> config = configure(graph->graph, name);
  Traits traits(config.back(), layout);
  if (!traits.keeps(problem.precision)) return nullptr;
  traits.name = name;  // cuDNN may put the settings into another order
  return make_plan(handle, graph, std::move(config), traits, problem, pass, layout);
}

}  // namespace twiddle
