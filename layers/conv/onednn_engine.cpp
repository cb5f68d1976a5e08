#include "layers/conv/onednn_engine.h"

#include <omp.h>

#include <algorithm>
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
  if (p.groups > 1) return {blocked, channels_last, plain};
  // With few channels a blocked gradient is mostly filling.
  if (few_channels && pass == ConvPass::backward_input) return {plain, channels_last, blocked};
  // A first layer reads plain images; otherwise blocks of 16 want multiples of 16.
  if (few_channels || (channels % 16 == 0 && filters % 16 == 0)) return {blocked, channels_last, plain};
  return {channels_last, blocked, plain};
}

// oneDNN sums a weight's gradient one by one in float, which loses 1.9e-8 times the root of their number (measured):
// more than this many, and fp32's promise is broken. Longer sums are taken in slices of the batch.
constexpr std::int64_t longest_sum = 8192;

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
  Description bias;
  std::size_t scratchpad;
  dnnl::primitive add;  // backward_weight: a slice's result onto the plain one

  std::size_t workspace() const {
    std::size_t bytes = scratchpad;
    for (const Operand* operand : {&x, &w, &y})
      if (operand->reorder) bytes += operand->wanted.get_size();
    return bytes;
  }
};

// Where the plain tensors of a run lie.
struct Places {
  const float *x, *w, *y, *bias;
  bool add = false;                 // the result is added to what is there
  std::optional<Version> gradient;  // of y, where it may be kept or was kept
};

class OnednnEngine : public ConvEngine {
 public:
  OnednnEngine(std::string name, dnnl::algorithm algorithm) : name_(std::move(name)), algorithm_(algorithm) {}
  std::string_view name() const override { return name_; }
  bool supports(const ConvProblem& problem, ConvPass pass) const override {
    const ConvProblem slice = slice_of(problem, pass);
    const bool exact = !sums_long(slice, pass);
    return exact && plan(slice, pass, false) != nullptr;
  }
  std::size_t workspace_bytes(const ConvProblem& problem, ConvPass pass) const override {
    const ConvProblem slice = slice_of(problem, pass);
    const Plan* const found = plan(slice, pass, false);
    if (!found) return 0;
    const bool adds = slice.batch < problem.batch && !found->w.reorder;
    return found->workspace() + (adds ? found->w.wanted.get_size() : 0);
  }
  void run(Context& ctx, const ConvProblem& problem, ConvPass pass, ConvOperands& operands) override;

 private:
  using Key = std::tuple<ConvProblem, ConvPass, bool, int>;
  bool sums_long(const ConvProblem& problem, ConvPass pass) const;
  ConvProblem slice_of(const ConvProblem& problem, ConvPass pass) const;           // of as many images as one run takes
  const Plan* plan(const ConvProblem& problem, ConvPass pass, bool biased) const;  // null: oneDNN cannot
  std::unique_ptr<Plan> make_plan(const ConvProblem& problem, ConvPass pass, bool biased, Layout layout,
                                  bool accept_reference) const;
  dnnl::memory wrap(const Description& description, const void* bytes) const {
    return {description, engine_, const_cast<void*>(bytes)};
  }
  void execute(const Plan& plan, Stream& stream, ConvPass pass, const Places& places);
  dnnl::memory input(Stream& stream, const Operand& operand, const float* values, std::shared_ptr<void>& holder);

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

bool OnednnEngine::sums_long(const ConvProblem& p, ConvPass pass) const {
  return pass == ConvPass::backward_weight && p.precision == Precision::fp32 &&
         algorithm_ == dnnl::algorithm::convolution_direct &&
         std::int64_t(p.batch) * p.out_height() * p.out_width() > longest_sum;
}

ConvProblem OnednnEngine::slice_of(const ConvProblem& problem, ConvPass pass) const {
  ConvProblem slice = problem;
  if (!sums_long(problem, pass)) return slice;
  const std::int64_t most = std::max<std::int64_t>(1, longest_sum / (problem.out_height() * problem.out_width()));
  const std::int64_t slices = (problem.batch + most - 1) / most;
  const std::int64_t equal = (problem.batch + slices - 1) / slices;
  slice.batch = static_cast<int>(std::min(most, equal + equal % 2));  // even, as the images are dealt to threads
  return slice;
}

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
  auto made = std::make_unique<Plan>(
      Plan{dnnl::primitive(chosen),
           operand(problem.input_shape(), Tag::nchw, writes_x ? DNNL_ARG_DIFF_SRC : DNNL_ARG_SRC, writes_x),
           operand(weight_shape(problem), problem.groups > 1 ? Tag::goihw : Tag::oihw,
                   writes_w ? DNNL_ARG_DIFF_WEIGHTS : DNNL_ARG_WEIGHTS, writes_w),
           operand(problem.output_shape(), Tag::nchw, writes_y ? DNNL_ARG_DST : DNNL_ARG_DIFF_DST, writes_y),
           tensors.bias,
           chosen.query_md(dnnl::query::scratchpad_md).get_size(),
           {}});
  if (writes_w) {
    dnnl::post_ops sum;
    sum.append_sum();
    dnnl::primitive_attr adding;
    adding.set_post_ops(sum);
    made->add = dnnl::reorder(dnnl::reorder::primitive_desc(engine_, made->w.wanted, engine_, made->w.plain, adding));
  }
  return made;
} catch (const dnnl::error&) {
  return nullptr;
}

void OnednnEngine::run(Context& ctx, const ConvProblem& problem, ConvPass pass, ConvOperands& operands) try {
  auto& [x, w, y, bias] = operands;
  const bool forward = pass == ConvPass::forward, input_gradient = pass == ConvPass::backward_input;
  const bool biased = forward && bias.defined();
  Places places{input_gradient ? x.write() : x.read(),
                pass == ConvPass::backward_weight ? w.write() : w.read(),
                forward ? y.write() : y.read(),
                biased ? bias.read() : nullptr,
                false,
                {}};
  ConvProblem slice = slice_of(problem, pass);
  if (!forward && slice.batch == problem.batch) places.gradient = y.version();
  for (int done = 0; done < problem.batch; done += slice.batch) {
    slice.batch = std::min(slice.batch, problem.batch - done);
    const Plan* const ready = plan(slice, pass, biased);
    require(ready != nullptr, "oneDNN has no ", name_, " for ", to_string(pass), " of ", to_string(problem));
    places.add = done > 0;
    execute(*ready, *ctx.stream, pass, places);
    places.x += count_of(slice.input_shape());
    places.y += count_of(slice.output_shape());
  }
} catch (const dnnl::error& error) {
  throw Error(join("oneDNN failed in ", to_string(pass), " of ", to_string(problem), ": ", error.what()));
}

void OnednnEngine::execute(const Plan& plan, Stream& stream, ConvPass pass, const Places& places) {
  // Only the very next pass may take it; backward_weight does not, so that timing it again and again times all of it.
  if (pass != ConvPass::backward_input || !places.gradient || !gradient_ || gradient_->version != *places.gradient)
    gradient_.reset();
  std::array<std::shared_ptr<void>, 3> holders;
  const std::array<std::pair<const Operand*, const float*>, 3> sides{
      {{&plan.x, places.x}, {&plan.w, places.w}, {&plan.y, places.y}}};
  const std::size_t written = pass == ConvPass::forward ? 2 : pass == ConvPass::backward_input ? 0 : 1;

  std::unordered_map<int, dnnl::memory> arguments;
  dnnl::memory plain_result, result;
  for (std::size_t i = 0; i < sides.size(); ++i) {
    const auto& [operand, values] = sides[i];
    if (i != written) {
      arguments[operand->argument] = input(stream, *operand, values, holders[i]);
      continue;
    }
    plain_result = result = wrap(operand->plain, values);
    if (operand->reorder || places.add) {
      holders[i] = stream.allocate(operand->wanted.get_size());
      result = wrap(operand->wanted, holders[i].get());
    }
    arguments[operand->argument] = result;
  }
  if (places.bias) arguments[DNNL_ARG_BIAS] = wrap(plan.bias, places.bias);
  std::shared_ptr<void> scratchpad;
  if (plan.scratchpad > 0) {
    scratchpad = stream.allocate(plan.scratchpad);
    arguments[DNNL_ARG_SCRATCHPAD] =
        wrap(Description({static_cast<std::int64_t>(plan.scratchpad)}, dnnl::memory::data_type::u8, Tag::x),
             scratchpad.get());
  }

  plan.convolution.execute(stream_, arguments);
  const dnnl::primitive& back = places.add ? plan.add : sides[written].first->reorder;
  if (back) back.execute(stream_, {{DNNL_ARG_FROM, result}, {DNNL_ARG_TO, plain_result}});
  stream_.wait();

  gradient_.reset();
  if (pass == ConvPass::backward_weight && places.gradient && plan.y.reorder)
    gradient_ = Reordered{*places.gradient, plan.y.wanted, holders[2]};
}

dnnl::memory OnednnEngine::input(Stream& stream, const Operand& operand, const float* values,
                                 std::shared_ptr<void>& holder) {
  if (!operand.reorder) return wrap(operand.plain, values);
  if (gradient_ && operand.argument == DNNL_ARG_DIFF_DST && gradient_->layout == operand.wanted) {
    holder = gradient_->bytes;
    return wrap(operand.wanted, holder.get());
  }
  holder = stream.allocate(operand.wanted.get_size());
  const dnnl::memory memory = wrap(operand.wanted, holder.get());
  operand.reorder.execute(stream_, {{DNNL_ARG_FROM, wrap(operand.plain, values)}, {DNNL_ARG_TO, memory}});
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
