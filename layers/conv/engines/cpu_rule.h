#pragma once
#include "framework/convolution.h"

// Which engine a CPU's heuristic selects. Its thresholds were measured (docs/notes/spectral.md, docs/results/cpu.md).
// It does not measure at run time, so equal runs are bitwise identical.
namespace twiddle {

// Spectra, in a build with oneDNN and in one where matrix products are the rival.
bool spectra_pay_over_onednn(const ConvProblem& problem);
bool spectra_pay_over_products(const ConvProblem& problem);

// Winograd's tiles, of kernels that the engine can do.
bool winograd_pays_over_onednn(const ConvProblem& problem);

// Depthwise convolutions tap by tap, for which spectra are too much; in a build with oneDNN and in one without.
bool depthwise_pays_over_onednn(const ConvProblem& problem);
bool depthwise_pays(const ConvProblem& problem);

// oneDNN: everywhere else, unless a convolution is a product of two matrices in their own layout, or has few filters.
bool onednn_pays(const ConvProblem& problem);

}  // namespace twiddle
