#include "layers/conv/engines/engines.h"

#include <omp.h>

#include <algorithm>
#include <exception>

#include "framework/context.h"
#include "framework/for_each.h"
#include "layers/conv/engines/epilogue.h"
#include "layers/conv/engines/plan_of.h"
#include "layers/conv/kernels/cuda/transposed.h"
#include "layers/conv/pass_arrays.h"

namespace twiddle {

namespace {

// What im2col and its adjoint need to know of a problem, for one image.
struct Unrolling {
  int height, width, kernel_h, kernel_w, stride_h, stride_w, pad_h, pad_w, dilation, out_h, out_w;
};

// The outputs whose position `output * stride + offset` lies in [0, size), as a range within [0, count).
struct Range {
  int begin, end;
};
TWIDDLE_HD inline Range visible(int offset, int stride, int size, int count) {
  const int begin = offset >= 0 ? 0 : (-offset + stride - 1) / stride;
  const int end = offset >= size ? 0 : (size - 1 - offset) / stride + 1;
  const int last = end < count ? end : count;
  return {begin < last ? begin : last, last};
}

// Row (channel, ky, kx, output row) of columns [channels * kernel_h * kernel_w][out_h * out_w].
struct Im2colRow {
  Unrolling u;
  const float* image;
  float* columns;
  TWIDDLE_HD void operator()(std::int64_t index) const {
    const int row = static_cast<int>(index % u.out_h);
    const int kx = static_cast<int>(index / u.out_h % u.kernel_w);
    const int ky = static_cast<int>(index / u.out_h / u.kernel_w % u.kernel_h);
    const std::int64_t channel = index / u.out_h / u.kernel_w / u.kernel_h;
    float* const to = columns + index * u.out_w;
    const int y = row * u.stride_h - u.pad_h + ky * u.dilation, offset = kx * u.dilation - u.pad_w;
    const bool row_visible = y >= 0 && y < u.height;
    const Range range = row_visible ? visible(offset, u.stride_w, u.width, u.out_w) : Range{u.out_w, u.out_w};
    for (int i = 0; i < range.begin; ++i) to[i] = 0;
    if (row_visible) {
      const float* const from = image + (channel * u.height + y) * u.width + offset;
      if (u.stride_w == 1)
        for (int i = range.begin; i < range.end; ++i) to[i] = from[i];
      else
        for (int i = range.begin; i < range.end; ++i) to[i] = from[std::int64_t(i) * u.stride_w];
    }
    for (int i = range.end; i < u.out_w; ++i) to[i] = 0;
  }
};

// Row (channel, y) of the image: the sum of all the columns' elements that were read from there.
struct Col2imRow {
  Unrolling u;
  const float* columns;
  float* image;
  TWIDDLE_HD void operator()(std::int64_t index) const {
    const std::int64_t channel = index / u.height;
    const int y = static_cast<int>(index % u.height);
    float* const to = image + index * u.width;
    for (int i = 0; i < u.width; ++i) to[i] = 0;
    for (int ky = 0; ky < u.kernel_h; ++ky) {
      const int from_y = y + u.pad_h - ky * u.dilation;
      if (from_y < 0 || from_y % u.stride_h != 0 || from_y / u.stride_h >= u.out_h) continue;
      for (int kx = 0; kx < u.kernel_w; ++kx) {
        const std::int64_t tap = (channel * u.kernel_h + ky) * u.kernel_w + kx;
        const float* const from = columns + (tap * u.out_h + from_y / u.stride_h) * u.out_w;
        const int offset = kx * u.dilation - u.pad_w;
        const Range range = visible(offset, u.stride_w, u.width, u.out_w);
        if (u.stride_w == 1)
          for (int i = range.begin; i < range.end; ++i) to[i + offset] += from[i];
        else
          for (int i = range.begin; i < range.end; ++i) to[std::int64_t(i) * u.stride_w + offset] += from[i];
      }
    }
  }
};

// The same two on a GPU: one call an element, neighbours side by side.
struct Im2colElement {
  Unrolling u;
  Divisor out_w, out_h, kernel_w, kernel_h;
  const float* image;
  float* columns;
  TWIDDLE_HD void operator()(std::int64_t i) const {
    const std::int64_t row = out_w.quotient(i), tap = out_h.quotient(row);
    const std::int64_t tap_row = kernel_w.quotient(tap), channel = kernel_h.quotient(tap_row);
    const int out_x = static_cast<int>(i - row * u.out_w), out_y = static_cast<int>(row - tap * u.out_h);
    const int kx = static_cast<int>(tap - tap_row * u.kernel_w), ky = static_cast<int>(tap_row - channel * u.kernel_h);
    const int x = out_x * u.stride_w + kx * u.dilation - u.pad_w, y = out_y * u.stride_h + ky * u.dilation - u.pad_h;
    const bool inside = x >= 0 && x < u.width && y >= 0 && y < u.height;
    columns[i] = inside ? image[(channel * u.height + y) * u.width + x] : 0;
  }
};

// Only every stride-th tap of an undilated kernel can have read a given element.
struct Col2imElement {
  Unrolling u;
  Divisor width, height, stride_w, stride_h;
  const float* columns;
  float* image;
  TWIDDLE_HD void operator()(std::int64_t i) const {
    const std::int64_t row = width.quotient(i), channel = height.quotient(row);
    const int x = static_cast<int>(i - row * u.width) + u.pad_w,
              y = static_cast<int>(row - channel * u.height) + u.pad_h;
    const bool sparse = u.dilation == 1;
    const int step_y = sparse ? u.stride_h : 1, step_x = sparse ? u.stride_w : 1;
    const int first_y = sparse ? static_cast<int>(stride_h.remainder(y)) : 0;
    const int first_x = sparse ? static_cast<int>(stride_w.remainder(x)) : 0;
    float sum = 0;
    for (int ky = first_y; ky < u.kernel_h; ky += step_y) {
      const int from_y = y - ky * u.dilation;
      if (from_y < 0) break;
      const int out_y = static_cast<int>(stride_h.quotient(from_y));
      if (out_y >= u.out_h || out_y * u.stride_h != from_y) continue;
      for (int kx = first_x; kx < u.kernel_w; kx += step_x) {
        const int from_x = x - kx * u.dilation;
        if (from_x < 0) break;
        const int out_x = static_cast<int>(stride_w.quotient(from_x));
        if (out_x >= u.out_w || out_x * u.stride_w != from_x) continue;
        const std::int64_t tap = (channel * u.kernel_h + ky) * u.kernel_w + kx;
        sum += columns[(tap * u.out_h + out_y) * u.out_w + out_x];
      }
    }
    image[i] = sum;
  }
};

// The shares of a pass: each one image, or in backward_weight a stretch of the batch. They are done in turn, each
// product by all threads, or `apart`, each by one thread of a CPU.
struct Shares {
  int count;
  bool apart = false;
};

// Shares are for images that need no columns. Threads then wait for each other once a pass and not after every product,
// many of which take some microseconds: docs/notes/cpu.md. The schedule is dynamic.
Shares shares_of(Device device, const ConvProblem& p, ConvPass pass) {
  const int threads = omp_get_max_threads();
  const bool possible = device.kind == Device::Kind::cpu && is_product(p) && threads > 1;
  if (pass != ConvPass::backward_weight) return {.count = p.batch, .apart = possible && p.batch >= 2 * threads};
  // Each has separate sums, which must not be larger than their operands (few images of many channels).
  const int count = std::max(8, threads);
  const std::int64_t operands = count_of(p.input_shape()) + count_of(p.output_shape());
  const bool pays = p.batch >= count && count * count_of(p.weight_shape()) <= operands;
  return possible && pays ? Shares{count, true} : Shares{1};
}

// An element of the weights' gradient: `first`, of the first share, and those of the others.
struct SumOfShares {
  const float* sums;
  std::int64_t shares, size;
  TWIDDLE_HD float operator()(std::int64_t i, float first) const {
    for (std::int64_t share = 1; share < shares; ++share) first += sums[share * size + i];
    return first;
  }
};

// The matrix products that a pass of a problem comes to. Those of one image and group are of w [filters][depth],
// columns [depth][places] and y [filters][places]; the image of a product is its own column matrix.
class Products {
 public:
  Products(Device device, const ConvProblem& p, ConvPass pass)
      : problem_(p),
        pass_(pass),
        shares_(shares_of(device, p, pass)),
        unrolling_{p.height, p.width, p.kernel_h, p.kernel_w,     p.stride_h,   p.stride_w,
                   p.pad_h,  p.pad_w, p.dilation, p.out_height(), p.out_width()},
        unrolled_(!is_product(p)),
        tf32_(p.precision != Precision::fp32),
        filters_(p.filters / p.groups),
        depth_(std::int64_t(p.channels) / p.groups * p.kernel_h * p.kernel_w),
        places_(std::int64_t(p.out_height()) * p.out_width()) {}

  // The columns of one image, or the sums of all shares.
  std::int64_t scratch_floats() const {
    if (is_linear(problem_)) return 0;
    if (unrolled_) return problem_.groups * depth_ * places_;
    return pass_ == ConvPass::backward_weight && shares_.apart ? shares_.count * weight_size() : 0;
  }

  void run(Stream& stream, const PassArrays& arrays, float* scratch) const {
    if (is_linear(problem_)) {
      const auto [a, b] = linear_factors(pass_, arrays);
      return stream.gemm(linear_product(problem_, pass_), a, b, arrays.result);
    }
    switch (pass_) {
      case ConvPass::forward:
        return forward(stream, arrays, scratch);
      case ConvPass::backward_input:
        return backward_input(stream, arrays, scratch);
      case ConvPass::backward_weight:
        return backward_weight(stream, arrays, scratch);
    }
  }

 private:
  std::int64_t image_size() const { return std::int64_t(problem_.channels) * problem_.height * problem_.width; }
  std::int64_t output_size() const { return problem_.filters * places_; }
  std::int64_t weight_size() const { return problem_.filters * depth_; }

  // work(share) for every share.
  template <class Work>
  void for_each_share(const Work& work) const {
    if (shares_.apart) return for_each_share_apart(work);
    for (int share = 0; share < shares_.count; ++share) work(share);
  }

  // An exception must not leave a parallel loop, so one of those thrown there is rethrown after it.
  template <class Work>
  void for_each_share_apart(const Work& work) const {
    std::exception_ptr failure;
#pragma omp parallel for schedule(dynamic)
    for (int share = 0; share < shares_.count; ++share) try {
        work(share);
      } catch (...) {
#pragma omp critical
        failure = std::current_exception();
      }
    if (failure) std::rethrow_exception(failure);
  }

  // One for each group, of matrices that follow each other.
  void multiply(Stream& stream, const Gemm& gemm, const float* a, const float* b, float* c) const {
    for (std::int64_t group = 0; group < problem_.groups; ++group)
      stream.gemm(gemm, a + group * gemm.m * gemm.k, b + group * gemm.k * gemm.n, c + group * gemm.m * gemm.n);
  }

  // y = w columns
  void forward(Stream& stream, const PassArrays& arrays, float* columns) const {
    for_each_share([&](int image) {
      const float* const patches = unroll(stream, arrays.x + image * image_size(), columns);
      multiply(stream, {.m = filters_, .n = places_, .k = depth_, .tf32 = tf32_}, arrays.w, patches,
               arrays.result + image * output_size());
    });
  }

  // columns = w^T grad_y, and back to where they came from
  void backward_input(Stream& stream, const PassArrays& arrays, float* columns) const {
    for_each_share([&](int image) {
      float* const of_image = arrays.result + image * image_size();
      multiply(stream, {.transpose_a = true, .m = depth_, .n = places_, .k = filters_, .tf32 = tf32_}, arrays.w,
               arrays.y + image * output_size(), unrolled_ ? columns : of_image);
      if (unrolled_) roll_up(stream, columns, of_image);
    });
  }

  // grad_w = sum over the images of grad_y columns^T
  void backward_weight(Stream& stream, const PassArrays& arrays, float* scratch) const {
    for_each_share([&](int share) {
      const std::int64_t batch = problem_.batch, first = batch * share / shares_.count;
      const std::int64_t end = batch * (share + 1) / shares_.count;
      float* const sum = shares_.apart ? scratch + share * weight_size() : arrays.result;
      for (std::int64_t image = first; image < end; ++image)
        multiply(stream,
                 {.transpose_b = true,
                  .m = filters_,
                  .n = depth_,
                  .k = places_,
                  .beta = image > first ? 1.0f : 0.0f,
                  .tf32 = tf32_},
                 arrays.y + image * output_size(), unroll(stream, arrays.x + image * image_size(), scratch), sum);
    });
    if (shares_.apart)
      map_indexed(stream, weight_size(), SumOfShares{scratch, shares_.count, weight_size()}, shares_.count,
                  arrays.result, scratch);
  }

  // The image's column matrix: written to `columns`, or the image itself.
  const float* unroll(Stream& stream, const float* image, float* columns) const {
    if (!unrolled_) return image;
    const Unrolling& u = unrolling_;
    const std::int64_t count = problem_.groups * depth_ * places_;
    if (on_gpu(stream))
      for_each_index(stream, count,
                     Im2colElement{u, Divisor(u.out_w), Divisor(u.out_h), Divisor(u.kernel_w), Divisor(u.kernel_h),
                                   image, columns});
    else
      for_each_index(stream, count / u.out_w, Im2colRow{u, image, columns}, u.out_w);
    return columns;
  }

  void roll_up(Stream& stream, const float* columns, float* image) const {
    const Unrolling& u = unrolling_;
    if (on_gpu(stream))
      for_each_index(stream, image_size(),
                     Col2imElement{u, Divisor(u.width), Divisor(u.height), Divisor(u.stride_w), Divisor(u.stride_h),
                                   columns, image});
    else
      for_each_index(stream, std::int64_t(problem_.channels) * u.height, Col2imRow{u, columns, image},
                     std::int64_t(u.width) * u.kernel_h * u.kernel_w);
  }

  ConvProblem problem_;
  ConvPass pass_;
  Shares shares_;
  Unrolling unrolling_;
  bool unrolled_, tf32_;
  std::int64_t filters_, depth_, places_;
};

// The kernels of the rotated problem: [groups][channels][filters][taps] of w [groups][filters][channels][taps], the
// taps in reverse. Applied twice, with filters and channels swapped, it returns w.
struct RotatedKernels {
  const float* w;
  std::int64_t filters, channels, taps;  // of one group of w
  float* rotated;
  TWIDDLE_HD void operator()(std::int64_t i) const {
    const std::int64_t tap = i % taps, filter = i / taps % filters, channel = i / taps / filters % channels;
    const std::int64_t group = i / taps / filters / channels;
    rotated[i] = w[((group * filters + filter) * channels + channel) * taps + taps - 1 - tap];
  }
};

// The pass of the convolution with x and y in each other's place that is this one's.
ConvPass transposed(ConvPass pass) {
  if (pass == ConvPass::backward_weight) return pass;
  return pass == ConvPass::forward ? ConvPass::backward_input : ConvPass::forward;
}

// A pass by the products of the rotated problem. The rotated kernels follow the products' scratch.
void run_rotated(Stream& stream, const Products& products, const ConvProblem& p, ConvPass pass,
                 const PassArrays& arrays, float* scratch) {
  float* const kernels = scratch + products.scratch_floats();
  const std::int64_t count = count_of(p.weight_shape());
  const std::int64_t filters = p.filters / p.groups, channels = p.channels / p.groups;
  const std::int64_t taps = std::int64_t(p.kernel_h) * p.kernel_w;
  if (pass == ConvPass::backward_weight) {
    products.run(stream, {arrays.y, nullptr, arrays.x, kernels}, scratch);
    for_each_index(stream, count, RotatedKernels{kernels, channels, filters, taps, arrays.result});
  } else {
    for_each_index(stream, count, RotatedKernels{arrays.w, filters, channels, taps, kernels});
    products.run(stream, {arrays.y, kernels, arrays.x, arrays.result}, scratch);
  }
}

class GemmEngine final : public ConvEngine {
 public:
  explicit GemmEngine(Device device) : device_(device) {}
  std::string_view name() const override { return "gemm"; }
  ConvPlans plans(const ConvProblem& p, ConvPass pass, std::size_t) const override {
    const bool rotates = device_.kind == Device::Kind::cpu && unrolls_output(p);  // on a GPU that was not measured
    const Products products(device_, rotates ? transposed(p) : p, rotates ? transposed(pass) : pass);
    const std::int64_t floats = products.scratch_floats() + (rotates ? count_of(p.weight_shape()) : 0);
    const std::size_t bytes = static_cast<std::size_t>(floats) * sizeof(float);
    const auto run = [=](Context& ctx, ConvOperands& operands) {
      Stream& stream = *ctx.stream;
      const std::shared_ptr<void> workspace = bytes > 0 ? stream.allocate(bytes) : nullptr;
      float* const scratch = static_cast<float*>(workspace.get());
      const PassArrays arrays = arrays_of(pass, operands);
      if (rotates)
        run_rotated(stream, products, p, pass, arrays, scratch);
      else
        products.run(stream, arrays, scratch);
      if (pass == ConvPass::forward) add_bias_and_relu(stream, operands);
    };
    return {plan_of({.engine = "gemm", .scratch_bytes = bytes}, run)};
  }

 private:
  Device device_;
};

}  // namespace

// With few filters a product has few rows, and its time is that of the columns, which every tap of every channel has.
// The rotated problem has columns for the taps of the filters instead.
bool unrolls_output(const ConvProblem& p) {
  const ConvProblem other = transposed(p);
  return !is_product(p) && p.stride_h == 1 && p.stride_w == 1 && other.pad_h >= 0 && other.pad_w >= 0 &&
         2 * p.filters <= p.channels && p.filters <= std::int64_t(p.height) * p.width;
}

std::unique_ptr<ConvEngine> make_gemm_engine(Device device) {
  return std::make_unique<GemmEngine>(device);
}

}  // namespace twiddle
