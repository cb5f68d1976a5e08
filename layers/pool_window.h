#pragma once
#include <array>

#include "framework/host_device.h"
#include "layers/layer.h"

namespace twiddle {

// The windows of a pooling layer over one plane: what max_pool and avg_pool share. They are ints, as all within a plane
// is: a GPU computes with 64 bits at half the pace.
struct PoolWindow {
  int kernel_h = 1, kernel_w = 1, stride_h = 1, stride_w = 1, pad_h = 0, pad_w = 0;
  int height = 1, width = 1, out_height = 1, out_width = 1;

  bool is_square(int kernel, int stride) const {
    return kernel_h == kernel && kernel_w == kernel && stride_h == stride && stride_w == stride;
  }
  std::string describe() const;  // "3x3, stride 2, pad 1"

  // The windows that hold a row or column of the plane: begin <= window < end.
  struct Range {
    int begin, end;
  };
  TWIDDLE_HD Range over_row(int row) const { return over(row + pad_h, kernel_h, stride_h, out_height); }
  TWIDDLE_HD Range over_column(int column) const { return over(column + pad_w, kernel_w, stride_w, out_width); }

 private:
  TWIDDLE_HD static Range over(int padded, int kernel, int stride, int windows) {
    const int past = padded / stride + 1;
    return {padded < kernel ? 0 : (padded - kernel) / stride + 1, past < windows ? past : windows};
  }
};

// Reads kernel, stride, pad and rounding (floor, as PyTorch by default; ceil, as Caffe). Throws where the input is not
// planes or a window does not fit.
PoolWindow read_pool_window(const Site& site, Params& params);

// Reads `pad`; of `same`, which other programs have, the error says the number for this kernel.
std::array<int, 2> read_pad(Params& params, const std::array<int, 2>& kernel, int most);

// [channels, out_height, out_width]
Shape pooled_shape(const Site& site, const PoolWindow& window);

}  // namespace twiddle
