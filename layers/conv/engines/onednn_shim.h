#pragma once
#include <oneapi/dnnl/dnnl.hpp>

#include "framework/convolution.h"
#include "layers/conv/tuner/pieces.h"

namespace twiddle::onednn {

// The descriptors of a convolution's three tensors; with format `any` oneDNN chooses the layout.
struct Tensors {
  dnnl::memory::desc x, w, y;
  dnnl::memory::desc bias;  // of no dimensions: none
};

// The plan of one pass, empty where oneDNN has no such implementation. The only place that knows how oneDNN 2 and 3
// differ.
inline dnnl::primitive_desc plan(const dnnl::engine& engine, const Piece& piece, ConvPass pass,
                                 dnnl::algorithm algorithm, const Tensors& t, const dnnl::primitive_attr& attributes) {
  const ConvProblem& p = piece.problem;
  const dnnl::memory::dims strides{p.stride_h, p.stride_w}, dilation{p.dilation - 1, p.dilation - 1};
  const dnnl::memory::dims before{p.pad_h, p.pad_w};
  // Input left over after the last output counts as negative padding.
  const auto padding_after = [&](int out, int stride, int kernel, int size, int pad) {
    return (out - 1) * stride + p.dilation * (kernel - 1) + 1 - size - pad;
  };
  const dnnl::memory::dims after{padding_after(piece.out_height, p.stride_h, p.kernel_h, p.height, p.pad_h),
                                 padding_after(piece.out_width, p.stride_w, p.kernel_w, p.width, p.pad_w)};
  using dnnl::convolution_backward_data, dnnl::convolution_backward_weights, dnnl::convolution_forward;
  const auto training = pass == ConvPass::forward ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward;
#if DNNL_VERSION_MAJOR >= 3
  const convolution_forward::primitive_desc forward(engine, training, algorithm, t.x, t.w, t.bias, t.y, strides,
                                                    dilation, before, after, attributes, true);
  if (pass == ConvPass::forward || !forward) return forward;
  if (pass == ConvPass::backward_input)
    return convolution_backward_data::primitive_desc(engine, algorithm, t.x, t.w, t.y, strides, dilation, before, after,
                                                     forward, attributes, true);
  return convolution_backward_weights::primitive_desc(engine, algorithm, t.x, t.w, t.y, strides, dilation, before,
                                                      after, forward, attributes, true);
#else
  const convolution_forward::primitive_desc forward(
      convolution_forward::desc(training, algorithm, t.x, t.w, t.bias, t.y, strides, dilation, before, after),
      attributes, engine, true);
  if (pass == ConvPass::forward || !forward) return forward;
  if (pass == ConvPass::backward_input)
    return convolution_backward_data::primitive_desc(
        convolution_backward_data::desc(algorithm, t.x, t.w, t.y, strides, dilation, before, after), attributes, engine,
        forward, true);
  return convolution_backward_weights::primitive_desc(
      convolution_backward_weights::desc(algorithm, t.x, t.w, t.y, strides, dilation, before, after), attributes,
      engine, forward, true);
#endif
}

}  // namespace twiddle::onednn
