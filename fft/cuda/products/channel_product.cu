#include "fft/cuda/products/channel_product.h"

#include <algorithm>

#include "fft/cuda/device/tuned_on_h200.h"
#include "fft/cuda/products/channel_sum.h"
#include "fft/cuda/products/sum_parts.h"
#include "fft/cuda/products/tuned_on_h200.h"
#include "framework/cuda/check.h"
#include "framework/error.h"
#include "framework/quotient_up.h"

namespace twiddle {

namespace small_fft {
namespace {

// c[bin][row][column] = a[bin][row][column] b[bin][column], or times its conjugate.
struct MultiplyChannels {
  const Complex *a, *b;
  Complex* c;
  Divisor columns, bin_size;
  float sign;  // of b's imaginary part
  TWIDDLE_HD void operator()(std::int64_t i) const {
    const Complex left = a[i], right = b[bin_size.quotient(i) * columns.value() + columns.remainder(i)];
    const float im = sign * right.im;
    c[i] = {left.re * right.re - left.im * im, left.re * im + left.im * right.re};
  }
};

__global__ void __launch_bounds__(ChannelSumBlock::threads) channel_sum_kernel(const ChannelSumArguments arguments) {
  __shared__ ChannelSumBlock::Shared shared;
  const auto thread = static_cast<int>(threadIdx.x);
  ChannelSumBlock::sum(arguments, blockIdx.x, thread, shared);
  __syncthreads();
  ChannelSumBlock::store(arguments, blockIdx.x, thread, shared);
}

// Returns the length of the parts that blocks sum in parallel: short enough to fill a GPU if there are few bins and
// channels, and for a sum in fp32. It is the same on every GPU, so that sums are bitwise identical.
std::int64_t part_of_rows(const FrequencyGemm& gemm) {
  const std::int64_t blocks = gemm.bins * quotient_up(gemm.groups, ChannelSumBlock::columns);
  const std::int64_t wanted = std::max<std::int64_t>(1, 2 * channel_sum_blocks * multiprocessors_of_an_h200 / blocks);
  return std::clamp(quotient_up(gemm.k, wanted), least_rows_of_a_sum, longest_sum_of_rows);
}

}  // namespace
}  // namespace small_fft

using small_fft::ChannelSumBlock;
using small_fft::Complex;

namespace {

class ChannelProduct final : public FrequencyProduct {
 public:
  std::string_view name() const override { return "channels"; }
  SpectrumStorage storage() const override { return SpectrumStorage::interleaved; }
  bool supports(const FrequencyGemm& gemm) const override { return gemm.is_depthwise(); }
  std::size_t scratch_bytes(const FrequencyGemm& gemm) const override {
    const std::int64_t parts = parts_of(gemm);
    return parts == 1 ? 0 : static_cast<std::size_t>(parts * gemm.bins * gemm.groups) * sizeof(Complex);
  }
  void run(Context& ctx, const FrequencyGemm& gemm, const void* a, const void* b, void* c, void* scratch) override {
    const auto *const left = static_cast<const Complex*>(a), *const right = static_cast<const Complex*>(b);
    if (gemm.transpose_a)
      sum(*ctx.stream, gemm, left, right, static_cast<Complex*>(c), static_cast<Complex*>(scratch));
    else
      for_each_index(*ctx.stream, gemm.bins * gemm.m * gemm.groups,
                     small_fft::MultiplyChannels{left, right, static_cast<Complex*>(c), Divisor(gemm.groups),
                                                 Divisor(gemm.m * gemm.groups), gemm.conjugate_b ? -1.0f : 1.0f});
  }

 private:
  static std::int64_t parts_of(const FrequencyGemm& gemm) {
    return gemm.transpose_a ? quotient_up(gemm.k, small_fft::part_of_rows(gemm)) : 1;
  }
  static void sum(Stream& stream, const FrequencyGemm& gemm, const Complex* a, const Complex* b, Complex* c,
                  Complex* scratch) {
    const std::int64_t parts = parts_of(gemm), count = gemm.bins * gemm.groups;
    const small_fft::ChannelSumArguments arguments{
        .a = a,
        .b = b,
        .c = parts == 1 ? c : scratch,
        .bins = gemm.bins,
        .rows = gemm.k,
        .columns = gemm.groups,
        .part = small_fft::part_of_rows(gemm),
        .parts = Divisor(parts),
        .blocks_across = Divisor(quotient_up(gemm.groups, ChannelSumBlock::columns)),
        .accumulate = gemm.accumulate && parts == 1};
    const std::int64_t blocks = arguments.blocks();
    require(blocks < std::int64_t(1) << 31, blocks, " sums of channels are more than one launch can take");
    small_fft::
        channel_sum_kernel<<<static_cast<unsigned>(blocks), ChannelSumBlock::threads, 0, detail::native(stream)>>>(
            arguments);
    detail::check_launch();
    if (parts > 1)
      for_each_index(stream, count, small_fft::SumParts<Complex>{scratch, c, count, parts, gemm.accumulate});
  }
};

}  // namespace

std::unique_ptr<FrequencyProduct> make_channel_product() {
  return std::make_unique<ChannelProduct>();
}

}  // namespace twiddle
