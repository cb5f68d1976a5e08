#pragma once
#include <cstddef>
#include <memory>
#include <oneapi/dnnl/dnnl.hpp>

#include "layers/conv/tuner/pieces.h"

namespace twiddle::onednn {

// A piece of one of a pass's tensors, in our layout and in the primitive's. The reorder is empty if both are equal.
struct Operand {
  int argument;
  dnnl::memory::desc plain, wanted;
  dnnl::primitive reorder;
};

// Everything about a piece and pass that can be prepared once.
struct Plan {
  dnnl::primitive convolution;
  Operand x, w, y;
  dnnl::memory::desc bias;
  std::size_t scratchpad;
  dnnl::primitive add;  // backward_weight: w's reorder that accumulates
};

// In the layout that is fastest by a rule; null: oneDNN has no such implementation.
std::unique_ptr<Plan> make_plan(const dnnl::engine& engine, dnnl::algorithm algorithm, const ConvProblem& problem,
                                const Piece& piece, ConvPass pass, bool biased);

}  // namespace twiddle::onednn
