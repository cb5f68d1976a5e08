#pragma once
#include <limits>
#include <memory>
#include <utility>

#include "layers/layer.h"

namespace twiddle {

// A layer that forwards its input, and from a given forward pass on returns an infinite gradient.
class BadGradient final : public Layer {
 public:
  BadGradient(Shape shape, int first) : Layer("bad", std::move(shape)), from(first) {}
  Variable forward(Context& ctx, const Variable& x) override {
    Tensor y(*ctx.stream, x.value().shape());
    ctx.stream->copy(y.write(), x.value().read(), y.bytes());
    const bool bad = passes_++ >= from;
    return ctx.tape.record("bad", y, {x}, [x, bad](Context& back, const Tensor& grad_y) {
      Tensor grad_x(*back.stream, grad_y.shape());
      back.stream->copy(grad_x.write(), grad_y.read(), grad_x.bytes());
      if (bad) back.stream->fill(grad_x.write(), 1, std::numeric_limits<float>::infinity());
      x.add_grad(back, grad_x);
    });
  }
  int from;

 private:
  int passes_ = 0;
};

}  // namespace twiddle
