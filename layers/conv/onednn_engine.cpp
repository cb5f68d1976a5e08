#include "layers/conv/onednn_engine.h"

#include <omp.h>

#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "framework/error.h"
#include "layers/conv/onednn_shim.h"

namespace twiddle {

namespace {

using Description = dnnl::memory::desc;
using Tag = dnnl::memory::format_tag;

Description describe(const Shape& shape, Tag tag) {
  return {shape, dnnl::memory::data_type::f32, tag};
}

// oneDNN gives the groups an axis of their own.
Shape weight_shape(const ConvProblem& p) {
  if (p.groups == 1) return p.weight_shape();
  return {p.groups, p.filters / p.groups, p.channels / p.groups, p.kernel_h, p.kernel_w};
}

// The layout of x and y that a pass is asked to work in. Our tensors are plain; another layout costs reorders.
enum class Layout { blocked, plain, channels_last };

Tag tag_of(Layout layout) {
  return layout == Layout::plain ? Tag::nchw : layout == Layout::channels_last ? Tag::nhwc : Tag::any;
}

// The layouts to try, fastest first with the reorders they cost. A rule found by measurement
// (tests/bench/conv_bench.cpp) and not a measurement at run time, so that the same run gives the same bits again.
std::array<Layout, 3> layouts_for(const ConvProblem& p, ConvPass pass) {
  using enum Layout;
  const int channels = p.channels / p.groups, filters = p.filters / p.groups;
  const bool few_channels = channels <= 4;
  // With few channels a blocked gradient is mostly filling.
  if (few_channels && pass == ConvPass::backward_input) return {plain, channels_last, blocked};
  // A first layer reads plain images; otherwise blocks of 16 want multiples of 16.
  if (few_channels || (channels % 16 == 0 && filters % 16 == 0)) return {blocked, channels_last, plain};
  return {channels_last, blocked, plain};
}

// One of the pass's tensors: as we hold it, and as the primitive wants it. A reorder is empty where both agree.
struct Operand {
  int argument;
  Description plain, wanted;
  dnnl::primitive reorder;
};

// Everything about a problem and pass that can be prepared once.
struct Plan {
  dnnl::primitive convolution;
  Operand x, w, y;
  std::size_t scratchpad;

  std::size_t workspace() const {
    std::size_t bytes = scratchpad;
    for (const Operand* operand : {&x, &w, &y})
      if (operand->reorder) bytes += operand->wanted.get_size();
    return bytes;
  }
};

class OnednnEngine : public ConvEngine {
 public:
  OnednnEngine(std::string name, dnnl::algorithm algorithm) : name_(std::move(name)), algorithm_(algorithm) {}
  std::string_view name() const override { return name_; }
  bool supports(const ConvProblem& problem, ConvPass pass) const override {
    return plan(problem, pass, false) != nullptr;
  }
  std::size_t workspace_bytes(const ConvProblem& problem, ConvPass pass) const override {
    const Plan* const found = plan(problem, pass, false);
    return found ? found->workspace() : 0;
  }
  void run(Context& ctx, const ConvProblem& problem, ConvPass pass, ConvOperands& operands) override;

 private:
  using Key = std::tuple<ConvProblem, ConvPass, bool, int>;
  const Plan* plan(const ConvProblem& problem, ConvPass pass, bool biased) const;  // null: oneDNN cannot
  std::unique_ptr<Plan> make_plan(const ConvProblem& problem, ConvPass pass, bool biased, Layout layout,
                                  bool accept_reference) const;
  dnnl::memory wrap(const Description& description, const void* bytes) const {
    return {description, engine_, const_cast<void*>(bytes)};
  }
  void execute(const Plan& plan, Context& ctx, ConvPass pass, ConvOperands& operands);
  dnnl::memory wanted(Stream& stream, const Operand& operand, const Tensor& tensor, std::shared_ptr<void>& holder);

  std::string name_;
  dnnl::algorithm algorithm_;
  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  mutable std::map<Key, std::unique_ptr<Plan>> plans_;

  // The gradient that backward_weight put into another layout, for a backward_input right behind it.
  struct Reordered {
    Version version;
    Description layout;
    std::shared_ptr<void> bytes;
  };
  std::optional<Reordered> gradient_;
};

const Plan* OnednnEngine::plan(const ConvProblem& problem, ConvPass pass, bool biased) const {
  const Key key{problem, pass, biased, omp_get_max_threads()};  // oneDNN plans for a number of threads
  const auto known = plans_.find(key);
  if (known != plans_.end()) return known->second.get();
  std::unique_ptr<Plan> made;
  for (const bool accept_reference : {false, true})
    for (const Layout layout : layouts_for(problem, pass))
      if (!made) made = make_plan(problem, pass, biased, layout, accept_reference);
  return plans_.emplace(key, std::move(made)).first->second.get();
}

std::unique_ptr<Plan> OnednnEngine::make_plan(const ConvProblem& problem, ConvPass pass, bool biased, Layout layout,
                                              bool accept_reference) const try {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  attributes.set_fpmath_mode(problem.precision == Precision::bf16 ? dnnl::fpmath_mode::bf16
                                                                  : dnnl::fpmath_mode::strict);
  const onednn::Tensors tensors{
      describe(problem.input_shape(), tag_of(layout)), describe(weight_shape(problem), Tag::any),
      describe(problem.output_shape(), tag_of(layout)), biased ? describe({problem.filters}, Tag::x) : Description()};
  const dnnl::primitive_desc chosen = onednn::plan(engine_, problem, pass, algorithm_, tensors, attributes);
  if (!chosen) return nullptr;
  // Plain loops, which oneDNN has for every layout that it has no better code for.
  const bool is_reference = std::string_view(chosen.impl_info_str()).find("ref") != std::string_view::npos;
  if (is_reference && !accept_reference) return nullptr;

  const auto operand = [&](const Shape& shape, Tag plain_tag, int argument, bool written) {
    Operand made{argument, describe(shape, plain_tag), chosen.query_md(dnnl::query::exec_arg_md, argument), {}};
    if (made.wanted != made.plain)
      made.reorder = written ? dnnl::reorder(dnnl::reorder::primitive_desc(engine_, made.wanted, engine_, made.plain))
                             : dnnl::reorder(dnnl::reorder::primitive_desc(engine_, made.plain, engine_, made.wanted));
    return made;
  };
  const bool writes_x = pass == ConvPass::backward_input, writes_w = pass == ConvPass::backward_weight;
  const bool writes_y = pass == ConvPass::forward;
  return std::make_unique<Plan>(
      Plan{dnnl::primitive(chosen),
           operand(problem.input_shape(), Tag::nchw, writes_x ? DNNL_ARG_DIFF_SRC : DNNL_ARG_SRC, writes_x),
           operand(weight_shape(problem), problem.groups > 1 ? Tag::goihw : Tag::oihw,
                   writes_w ? DNNL_ARG_DIFF_WEIGHTS : DNNL_ARG_WEIGHTS, writes_w),
           operand(problem.output_shape(), Tag::nchw, writes_y ? DNNL_ARG_DST : DNNL_ARG_DIFF_DST, writes_y),
           chosen.query_md(dnnl::query::scratchpad_md).get_size()});
} catch (const dnnl::error&) {
  return nullptr;
}

void OnednnEngine::run(Context& ctx, const ConvProblem& problem, ConvPass pass, ConvOperands& operands) {
  const Plan* const ready = plan(problem, pass, pass == ConvPass::forward && operands.bias.defined());
  require(ready != nullptr, "oneDNN has no ", name_, " for ", to_string(pass), " of ", to_string(problem));
  try {
    execute(*ready, ctx, pass, operands);
  } catch (const dnnl::error& error) {
    throw Error(join("oneDNN failed in ", to_string(pass), " of ", to_string(problem), ": ", error.what()));
  }
}

void OnednnEngine::execute(const Plan& plan, Context& ctx, ConvPass pass, ConvOperands& operands) {
  // Only the very next pass may take it; backward_weight does not, so that timing it again and again times all of it.
  if (pass != ConvPass::backward_input) gradient_.reset();
  std::array<std::shared_ptr<void>, 3> holders;
  const std::array<std::pair<const Operand*, Tensor*>, 3> sides{
      {{&plan.x, &operands.x}, {&plan.w, &operands.w}, {&plan.y, &operands.y}}};
  const std::size_t written = pass == ConvPass::forward ? 2 : pass == ConvPass::backward_input ? 0 : 1;

  std::unordered_map<int, dnnl::memory> arguments;
  dnnl::memory plain_result, result;
  for (std::size_t i = 0; i < sides.size(); ++i) {
    const auto& [operand, tensor] = sides[i];
    if (i != written) {
      arguments[operand->argument] = wanted(*ctx.stream, *operand, *tensor, holders[i]);
      continue;
    }
    plain_result = result = wrap(operand->plain, tensor->write());
    if (operand->reorder) {
      holders[i] = ctx.stream->allocate(operand->wanted.get_size());
      result = wrap(operand->wanted, holders[i].get());
    }
    arguments[operand->argument] = result;
  }
  if (pass == ConvPass::forward && operands.bias.defined())
    arguments[DNNL_ARG_BIAS] = wrap(describe(operands.bias.shape(), Tag::x), operands.bias.read());
  std::shared_ptr<void> scratchpad;
  if (plan.scratchpad > 0) {
    scratchpad = ctx.stream->allocate(plan.scratchpad);
    arguments[DNNL_ARG_SCRATCHPAD] =
        wrap(Description({static_cast<std::int64_t>(plan.scratchpad)}, dnnl::memory::data_type::u8, Tag::x),
             scratchpad.get());
  }

  plan.convolution.execute(stream_, arguments);
  const dnnl::primitive& back = sides[written].first->reorder;
  if (back) back.execute(stream_, {{DNNL_ARG_FROM, result}, {DNNL_ARG_TO, plain_result}});
  stream_.wait();

  gradient_.reset();
  if (pass == ConvPass::backward_weight && plan.y.reorder)
    gradient_ = Reordered{operands.y.version(), plan.y.wanted, holders[2]};
}

dnnl::memory OnednnEngine::wanted(Stream& stream, const Operand& operand, const Tensor& tensor,
                                  std::shared_ptr<void>& holder) {
  if (!operand.reorder) return wrap(operand.plain, tensor.read());
  if (gradient_ && gradient_->version == tensor.version() && gradient_->layout == operand.wanted) {
    holder = gradient_->bytes;
    return wrap(operand.wanted, holder.get());
  }
  holder = stream.allocate(operand.wanted.get_size());
  const dnnl::memory memory = wrap(operand.wanted, holder.get());
  operand.reorder.execute(stream_, {{DNNL_ARG_FROM, wrap(operand.plain, tensor.read())}, {DNNL_ARG_TO, memory}});
  return memory;
}

}  // namespace

std::unique_ptr<ConvEngine> make_onednn_engine() {
  return std::make_unique<OnednnEngine>("onednn", dnnl::algorithm::convolution_direct);
}

std::unique_ptr<ConvEngine> make_onednn_winograd_engine() {
  return std::make_unique<OnednnEngine>("onednn:winograd", dnnl::algorithm::convolution_winograd);
}

}  // namespace twiddle
