#include "layers/conv/engines/cpu_rule.h"

#include <algorithm>

#include "fft/grid.h"
#include "layers/conv/engines/engines.h"
#include "layers/conv/pass_arrays.h"

namespace twiddle {

namespace {

// Counts the taps along an axis that read data, not padding, over all outputs.
double taps_on_data(int size, int outputs, int kernel, int pad) {
  double taps = 0;
  for (int first = -pad; first < outputs - pad; ++first)
    taps += std::max(0, std::min(first + kernel, size) - std::max(first, 0));
  return taps / outputs;
}

// Multiply-adds for each value of a result, in a group and in the pass that has fewest: what spectra replace by a few
// for each bin, and pay for with transforms of every plane.
double multiply_adds(const ConvProblem& p) {
  return taps_on_data(p.height, p.out_height(), p.kernel_h, p.pad_h) *
         taps_on_data(p.width, p.out_width(), p.kernel_w, p.pad_w) * std::min(p.channels, p.filters) / p.groups;
}

constexpr double enough_work = 40, enough_of_one_channel = 64;

bool is_enough_work(const ConvProblem& problem) {
  const bool one_channel = std::min(problem.channels, problem.filters) == problem.groups;  // for which others are good
  return multiply_adds(problem) >= (one_channel ? enough_of_one_channel : enough_work);
}

int least_kernel(const ConvProblem& problem) {
  return std::min(problem.kernel_h, problem.kernel_w);
}

// Below this, most of a spectrum is padding.
bool has_large_outputs(const ConvProblem& problem) {
  return std::min(problem.out_height(), problem.out_width()) >= 8;
}

// Spectra and oneDNN's depthwise kernels have a channel in each lane: with fewer channels, most lanes are padding.
bool fills_a_vector(const ConvProblem& problem) {
  return problem.channels >= 16;
}

// Planes of one row, of which no height is transformed.
bool has_long_rows(const ConvProblem& problem) {
  const bool rows = problem.height == 1 && problem.kernel_h == 1 && problem.out_height() == 1;
  return rows && problem.kernel_w >= 9 && problem.out_width() >= 8;
}

}  // namespace

bool spectra_pay_over_onednn(const ConvProblem& problem) {
  if (is_depthwise(problem)) return !depthwise_pays(problem);
  return is_enough_work(problem) &&
         (has_long_rows(problem) || (least_kernel(problem) >= 5 && has_large_outputs(problem)));
}

// Small kernels leave little to win, and nothing where they are more than the images: their spectra are much larger.
bool spectra_pay_over_products(const ConvProblem& problem) {
  if (is_depthwise(problem)) return !depthwise_pays(problem);
  const bool few_kernels = count_of(problem.weight_shape()) <= 2 * count_of(problem.input_shape());
  return least_kernel(problem) >= (few_kernels ? 3 : 5) && has_large_outputs(problem) && is_enough_work(problem);
}

// Its matrix products are of tiles by channels by filters: few channels leave little but the transforms of x and y, and
// few tiles little but those of the kernels, whose bins are four times as many numbers as they have. Groups usually
// have few channels. If outputs are smaller than a tile, most of the tile is discarded.
bool winograd_pays_over_onednn(const ConvProblem& problem) {
  constexpr int tile = 4, fewest_channels = 32, fewest_tiles = 32;
  const auto tiles = [](int outputs) { return std::int64_t(outputs + tile - 1) / tile; };
  return problem.groups == 1 && std::min(problem.channels, problem.filters) >= fewest_channels &&
         std::min(problem.out_height(), problem.out_width()) >= tile &&
         problem.batch * tiles(problem.out_height()) * tiles(problem.out_width()) >= fewest_tiles;
}

// The engine `fft` does neither strides nor dilation. 5x5 kernels take it half of the time on planes of 14x14, and a
// quarter more on 32x32.
bool depthwise_pays(const ConvProblem& problem) {
  constexpr int least_for_spectra = 5, small = 24;
  if (problem.stride_h > 1 || problem.stride_w > 1 || problem.dilation > 1) return true;
  const bool small_planes = std::max(problem.out_height(), problem.out_width()) <= small;
  const bool spectra_pay = least_kernel(problem) >= least_for_spectra && small_planes && fills_a_vector(problem);
  return !spectra_pay && multiply_adds(problem) < enough_work;
}

// oneDNN is up to three times as fast with kernels of up to 3x3; its weight gradient has no quick way with larger or
// dilated ones.
bool depthwise_pays_over_onednn(const ConvProblem& problem) {
  const bool quick = std::max(problem.kernel_h, problem.kernel_w) <= 3 && problem.dilation == 1;
  return depthwise_pays(problem) && !(quick && fills_a_vector(problem) && onednn_pays(problem));
}

// A product handles one image at a time, too slow for small images; a linear layer is one product. With few filters
// most of oneDNN's lanes are padding: the three passes of 64 to 3 channels with 3x3 kernels on 64x64 take it four times
// as long (one thread, AVX2). With more weights than images it is the copy of those that takes the product's time.
bool onednn_pays(const ConvProblem& problem) {
  constexpr int few_filters = 4;
  const bool few = problem.filters / problem.groups <= few_filters && 4 * problem.filters <= problem.channels &&
                   2 * count_of(problem.weight_shape()) <= count_of(problem.input_shape());
  if (few && unrolls_output(problem)) return false;
  return !is_linear(problem) && (!is_product(problem) || !has_large_outputs(problem));
}

}  // namespace twiddle
