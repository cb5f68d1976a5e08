#pragma once
#include <memory>
#include <vector>

#include "framework/convolution.h"

namespace twiddle {

// Phases of strided convolutions are kept from pass to pass, too. Each of two or three engines may use 1 / phases_share
// of the spectra's budget for them.
constexpr std::size_t phases_share = 8;

struct ConvEngineOptions {
  std::size_t workspace_limit = std::size_t(4) << 30;   // a batch that needs more goes in slices where an engine can
  std::size_t frequency_budget = std::size_t(4) << 30;  // for spectra that are kept from pass to pass
};

// The engines of a device; their order is the selection rule.
std::vector<std::unique_ptr<ConvEngine>> make_conv_engines(Device device, const ConvEngineOptions& options = {});

// Each engine alone; null if the build or the device has none. Those that multiply spectra are in
// fft/spectral_engine.h.

// Seven loops with sums in double, on the CPU: slow, and right. Supports every valid problem.
std::unique_ptr<ConvEngine> make_direct_engine();

// The unrolled baseline: each image's patches as the columns of a matrix (im2col), and one matrix product per image and
// group. Supports every valid problem, on either device.
std::unique_ptr<ConvEngine> make_gemm_engine(Device device = {});

// 1x1 convolutions as matrix products by a GPU's tensor cores, within the fp32 error limit.
std::unique_ptr<ConvEngine> make_pairs_engine(Device device);

// Layers with few channels, such as a network's first, as matrix products by a GPU's tensor cores, whose one factor is
// gathered from x while it is multiplied; backward_input where filters are few and the stride is 1.
std::unique_ptr<ConvEngine> make_implicit_gemm_engine(Device device);

// Depthwise convolutions (groups = channels = filters) summed tap by tap, for small kernels and small planes: each
// plane is read once, and bias, ReLU and the backward pass of both are done in the same pass. On the CPU for any
// kernel, stride and dilation; on a GPU undilated, for kernels of up to 11 x 11 with strides of 1 or 2, and with stride
// 1 of any size on planes of up to 16 x 16 and of up to 2,040 taps on planes of one row.
//
// `pays`: whether the heuristic selects it for a problem; null: whenever it supports the problem.
std::unique_ptr<ConvEngine> make_depthwise_engine(Device device, bool (*pays)(const ConvProblem&) = nullptr);

// A convolution of stride s as one of stride 1 over s x s times the channels: phase (a, b) of x holds its rows a, a +
// s, a + 2s ... and columns b, b + s ..., and the kernel has the same phases. Their convolutions add up to y. `inner`
// runs stride 1 only; its name becomes "polyphase(inner)".
// What is split stays for the next pass, within `budget` bytes.
std::unique_ptr<ConvEngine> make_polyphase_engine(std::shared_ptr<ConvEngine> inner,
                                                  std::size_t budget = std::size_t(512) << 20);

// oneDNN's convolutions: "direct" and "winograd".
std::unique_ptr<ConvEngine> make_onednn_engine();

// What cuDNN's heuristics name, in their order, then its older algorithms. The first call to the engine loads the
// library, and throws if it is missing.
std::unique_ptr<ConvEngine> make_cudnn_engine(Device device);

// Whether the engine `gemm` unrolls y instead of x on a CPU, which has fewer planes: then a layer of few filters is as
// fast as its rotated one, of few channels.
bool unrolls_output(const ConvProblem& problem);

// One element of a pass's result (flat index into the written tensor), summed in double from host arrays: the
// reference for every engine.
double conv_reference(const ConvProblem& problem, ConvPass pass, const float* x, const float* w, const float* y,
                      const float* bias, std::int64_t index);

}  // namespace twiddle
