#pragma once
#include "framework/convolution.h"

// Where the rule of a CPU takes which engine: found by measurement (docs/results/spectral.md, winograd.md) and not a
// measurement at run time, so that the same run gives the same bits again.
namespace twiddle {

// Spectra, in a build with oneDNN and in one where matrix products are the rival.
bool spectra_pay_beside_onednn(const ConvProblem& problem);
bool spectra_pay_beside_products(const ConvProblem& problem);

// Winograd's tiles, of kernels that the engine can do.
bool winograd_pays_beside_onednn(const ConvProblem& problem);

// Depthwise convolutions tap by tap, for which spectra are too much; in a build with oneDNN and in one without.
bool depthwise_pays_beside_onednn(const ConvProblem& problem);
bool depthwise_pays(const ConvProblem& problem);

// oneDNN: everywhere else, unless a convolution is a product of two matrices in their own layout, or has few filters.
bool onednn_pays(const ConvProblem& problem);

}  // namespace twiddle
