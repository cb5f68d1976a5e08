#include "layers/conv/engines/engines.h"

#include "framework/context.h"
#include "framework/error.h"
#include "layers/conv/cast_around.h"
#include "layers/conv/engines/cudnn_plan.h"
#include "layers/conv/engines/epilogue.h"
#include "layers/conv/engines/plan_of.h"
#include "layers/conv/pass_arrays.h"

namespace twiddle {

namespace {

// How many engines of the graph API are taken for each layout and heuristic.
constexpr int graphs_taken = 8;

// cuDNN itself on one GPU, shared by the plans of one engine; made when it is first needed.
class Session {
 public:
  explicit Session(Device device) : device_(device) {}
  cudnnHandle_t handle() {
    make_current(device_.index);
    if (!handle_.get()) check(cudnn().create(handle_.put()));
    return handle_.get();
  }
  // What follows goes to this stream.
  cudnnHandle_t handle(Stream& stream) {
    check(cudnn().set_stream(handle(), static_cast<cudaStream_t>(stream.native())));
    return handle();
  }

 private:
  Device device_;
  CudnnHandle handle_;
};

ConvPointers pointers(ConvOperands& operands, ConvPass pass) {
  Tensor& result = result_of(pass, operands);
  const auto place = [&](Tensor& tensor) {
    return &tensor == &result ? write_elements_of(tensor) : elements_of(tensor);
  };
  return {place(operands.x), place(operands.w), place(operands.y)};
}

class CudnnEngine final : public ConvEngine {
 public:
  explicit CudnnEngine(Device device) : session_(std::make_shared<Session>(device)) {}
  std::string_view name() const override { return "cudnn"; }
  std::string library() const override try { return join("cuDNN ", cudnn().version()); } catch (const Error&) {
    return "missing";  // it cannot be loaded
  }

  bool pays(const ConvProblem& problem) const override { return !is_linear(problem); }
  // Linear layers often are the last ones, whose output must not be rounded.
  bool takes_16_bits(const ConvProblem& problem, ConvPass) const override { return !is_linear(problem); }

  ConvPlans plans(const ConvProblem& problem, ConvPass pass, std::size_t most) const override {
    ConvPlans found;
    const auto add = [&](CudnnPlans plans) {
      for (auto& plan : plans)
        if (found.size() < most) found.push_back(wrap(std::move(plan), problem, pass));
    };
    const int graphs = static_cast<int>(std::min(most, std::size_t(graphs_taken)));
    for (const CudnnLayout layout : {CudnnLayout::nchw, CudnnLayout::nhwc})
      if (found.size() < most) add(cudnn_graphs(session_->handle(), problem, pass, layout, graphs));
    if (found.size() < most) add(cudnn_algorithms(session_->handle(), problem, pass));
    return found;
  }

  // Without asking for all: graphs may have to be compiled.
  std::shared_ptr<const ConvPlan> plan(const ConvProblem& problem, ConvPass pass,
                                       std::string_view name) const override {
    const auto parsed = parse_cudnn_plan_name(std::string(name));
    if (!parsed) return nullptr;
    cudnnHandle_t const handle = session_->handle();
    if (parsed->engine >= 0) {
      auto exact = cudnn_graph(handle, problem, pass, *parsed);
      return exact == nullptr ? nullptr : wrap(std::move(exact), problem, pass);
    }
    if (auto algorithm = cudnn_algorithm(handle, problem, pass, *parsed))
      return wrap(std::move(algorithm), problem, pass);
    if (name != "nchw" && name != "nhwc") return nullptr;
    const CudnnLayout layout = name == "nchw" ? CudnnLayout::nchw : CudnnLayout::nhwc;
    CudnnPlans guesses = cudnn_graphs(handle, problem, pass, layout, 1);
    return guesses.empty() ? nullptr : wrap(std::move(guesses.front()), problem, pass);
  }

 private:
  std::shared_ptr<const ConvPlan> wrap(std::shared_ptr<const CudnnPlan> plan, const ConvProblem& problem,
                                       ConvPass pass) const {
    const ConvPlan::Facts facts{.engine = "cudnn",
                                .name = to_string(plan->name),
                                .scratch_bytes = plan->workspace,
                                .deterministic = plan->deterministic,
                                .vendor = true};
    auto made =
        plan_of(facts, [session = session_, plan = std::move(plan), pass](Context& ctx, ConvOperands& operands) {
          Stream& stream = *ctx.stream;
          const std::shared_ptr<void> scratch = plan->workspace > 0 ? stream.allocate(plan->workspace) : nullptr;
          plan->run(session->handle(stream), stream, pointers(operands, pass), scratch.get());
          if (pass == ConvPass::forward) add_bias_and_relu(stream, operands);
        });
    return storage_of(problem.precision) == DType::f32 ? made : cast_to_16_bits(std::move(made), problem, pass);
  }

  std::shared_ptr<Session> session_;
};

}  // namespace

std::unique_ptr<ConvEngine> make_cudnn_engine(Device device) {
  return std::make_unique<CudnnEngine>(device);
}

}  // namespace twiddle
