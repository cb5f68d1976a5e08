#pragma once
#include "framework/tensor.h"
#include "layers/mean_windows.h"
#include "layers/pool_window.h"

namespace twiddle {

// Pooling on a GPU by way of shared memory: a block takes a piece of the batch, whole planes or a strip of one, reads
// and writes it as the stretch of memory that it is, and does windows in between. All return false, having done
// nothing, where a piece does not fit or windows are none that pieces know: then it goes output by output, or input by
// input.
bool max_pool_in_pieces(Stream& stream, const PoolWindow& window, const Tensor& x, Tensor& y, Tensor& index);
bool max_pool_backward_in_pieces(Stream& stream, const PoolWindow& window, const Tensor& grad_y, const Tensor& index,
                                 Tensor& grad_x);
bool avg_pool_in_pieces(Stream& stream, const MeanWindows& mean, const Tensor& x, Tensor& y);
bool avg_pool_backward_in_pieces(Stream& stream, const MeanWindows& mean, const Tensor& grad_y, Tensor& grad_x);

}  // namespace twiddle
