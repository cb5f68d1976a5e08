#include "layers/conv/engines/onednn_plan.h"

#include <array>
#include <string_view>

#include "layers/conv/engines/onednn_shim.h"

namespace twiddle::onednn {

namespace {

using Description = dnnl::memory::desc;
using Tag = dnnl::memory::format_tag;

Description describe(const Shape& shape, Tag tag) {
  return {shape, dnnl::memory::data_type::f32, tag};
}

// The same rectangle of some planes of a plain tensor.
Description describe_within(const Shape& plain, const Shape& shape) {
  return {shape, dnnl::memory::data_type::f32, Shape{plain[1] * plain[2] * plain[3], plain[2] * plain[3], plain[3], 1}};
}

Shape input_shape(const Piece& piece) {
  const ConvProblem& p = piece.problem;
  return {p.batch, p.channels, p.height, p.width};
}

Shape output_shape(const Piece& piece) {
  return {piece.problem.batch, piece.problem.filters, piece.out_height, piece.out_width};
}

// oneDNN has a separate axis for groups.
Shape weight_shape(const ConvProblem& p) {
  if (p.groups == 1) return p.weight_shape();
  return {p.groups, p.filters / p.groups, p.channels / p.groups, p.kernel_h, p.kernel_w};
}

Description describe_weights(const ConvProblem& whole, const ConvProblem& piece) {
  if (whole.groups > 1) return describe(weight_shape(whole), Tag::goihw);
  return describe_within(whole.weight_shape(), piece.weight_shape());
}

// The layout of x and y that a pass is asked to work in. Our tensors are plain; another layout costs reorders.
enum class Layout { blocked, plain, channels_last };

Tag tag_of(Layout layout) {
  return layout == Layout::plain ? Tag::nchw : layout == Layout::channels_last ? Tag::nhwc : Tag::any;
}

// The layouts to try, fastest first with the reorders they cost. A rule found by measurement
// (tests/bench/conv_bench.cpp) and not a measurement at run time, so that equal runs are bitwise identical.
std::array<Layout, 3> layouts_for(const ConvProblem& p, ConvPass pass) {
  using enum Layout;
  const int channels = p.channels / p.groups, filters = p.filters / p.groups;
  const bool few_channels = channels <= 4;
  if (p.groups > 1) return {blocked, channels_last, plain};
  // With few channels a blocked gradient is mostly padding.
  if (few_channels && pass == ConvPass::backward_input) return {plain, channels_last, blocked};
  // A first layer reads plain images; otherwise blocks of 16 need multiples of 16.
  if (few_channels || (channels % 16 == 0 && filters % 16 == 0)) return {blocked, channels_last, plain};
  return {channels_last, blocked, plain};
}

std::unique_ptr<Plan> make_plan(const dnnl::engine& engine, dnnl::algorithm algorithm, const ConvProblem& problem,
                                const Piece& piece, ConvPass pass, bool biased, Layout layout,
                                bool accept_reference) try {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  attributes.set_fpmath_mode(dnnl::fpmath_mode::strict);
  const Tensors tensors{describe(input_shape(piece), tag_of(layout)), describe(weight_shape(piece.problem), Tag::any),
                        describe(output_shape(piece), tag_of(layout)),
                        biased ? describe({problem.filters}, Tag::x) : Description()};
  const dnnl::primitive_desc chosen = plan(engine, piece, pass, algorithm, tensors, attributes);
  if (!chosen) return nullptr;
  // Plain loops, which oneDNN has for every layout that it has no better code for.
  const bool is_reference = std::string_view(chosen.impl_info_str()).find("ref") != std::string_view::npos;
  if (is_reference && !accept_reference) return nullptr;

  const auto operand = [&](const Description& plain, int argument, bool written) {
    Operand made{argument, plain, chosen.query_md(dnnl::query::exec_arg_md, argument), {}};
    if (made.wanted != made.plain)
      made.reorder = written ? dnnl::reorder(dnnl::reorder::primitive_desc(engine, made.wanted, engine, made.plain))
                             : dnnl::reorder(dnnl::reorder::primitive_desc(engine, made.plain, engine, made.wanted));
    return made;
  };
  const bool writes_x = pass == ConvPass::backward_input, writes_w = pass == ConvPass::backward_weight;
  const bool writes_y = pass == ConvPass::forward;
  auto made = std::make_unique<Plan>(Plan{
      dnnl::primitive(chosen),
      operand(describe_within(problem.input_shape(), input_shape(piece)), writes_x ? DNNL_ARG_DIFF_SRC : DNNL_ARG_SRC,
              writes_x),
      operand(describe_weights(problem, piece.problem), writes_w ? DNNL_ARG_DIFF_WEIGHTS : DNNL_ARG_WEIGHTS, writes_w),
      operand(describe_within(problem.output_shape(), output_shape(piece)), writes_y ? DNNL_ARG_DST : DNNL_ARG_DIFF_DST,
              writes_y),
      tensors.bias,
      chosen.query_md(dnnl::query::scratchpad_md).get_size(),
      {}});
  if (writes_w) {
    dnnl::post_ops sum;
    sum.append_sum();
    dnnl::primitive_attr adding;
    adding.set_post_ops(sum);
    made->add = dnnl::reorder(dnnl::reorder::primitive_desc(engine, made->w.wanted, engine, made->w.plain, adding));
  }
  return made;
} catch (const dnnl::error&) {
  return nullptr;
}

}  // namespace

std::unique_ptr<Plan> make_plan(const dnnl::engine& engine, dnnl::algorithm algorithm, const ConvProblem& problem,
                                const Piece& piece, ConvPass pass, bool biased) {
  for (const bool accept_reference : {false, true})
    for (const Layout layout : layouts_for(problem, pass))
      if (auto made = make_plan(engine, algorithm, problem, piece, pass, biased, layout, accept_reference)) return made;
  return nullptr;
}

}  // namespace twiddle::onednn
