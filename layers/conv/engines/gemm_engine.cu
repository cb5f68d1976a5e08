#include "layers/conv/engines/engines.h"

#include <omp.h>

#include <algorithm>
#include <exception>

#include "framework/context.h"
#include "framework/for_each.h"
#include "layers/conv/engines/epilogue.h"

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

// Of the taps of an undilated kernel, only each stride-th can have read a given place.
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

// A 1x1 kernel without stride or padding: the image is its own column matrix.
bool is_product(const ConvProblem& p) {
  return p.kernel_h == 1 && p.kernel_w == 1 && p.stride_h == 1 && p.stride_w == 1 && p.pad_h == 0 && p.pad_w == 0;
}

// The shares of a pass: each one image, or in backward_weight a stretch of the batch. They are done in turn, each
// product by all threads, or `apart`, each by one thread of a CPU.
struct Shares {
  int count;
  bool apart = false;
};

// Shares are for images that need no columns. Threads then wait for each other once a pass and not after every product,
// many of which take some microseconds: docs/notes/cpu.md. Whoever is free takes the next share.
Shares shares_of(Device device, const ConvProblem& p, ConvPass pass) {
  const int threads = omp_get_max_threads();
  const bool possible = device.kind == Device::Kind::cpu && is_product(p) && threads > 1;
  if (pass != ConvPass::backward_weight) return {.count = p.batch, .apart = possible && p.batch >= 2 * threads};
  // Each has sums of its own, which may not be larger than what they are made of (few images of many channels).
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

// What a pass reads, null for what it does not, and what it writes.
struct Arrays {
  const float *x, *w, *y;
  float* result;
};

// The matrix products that a pass of a problem comes to.
class Products {
 public:
  Products(Device device, const ConvProblem& problem, ConvPass pass)
      : problem_(problem), pass_(pass), shares_(shares_of(device, problem, pass)) {}

  // The columns of one image, or the sums of all shares.
  std::int64_t scratch_floats() const {
    const ConvProblem& p = problem_;
    if (!is_product(p)) return std::int64_t(p.channels) * p.kernel_h * p.kernel_w * p.out_height() * p.out_width();
    return pass_ == ConvPass::backward_weight && shares_.apart ? shares_.count * count_of(p.weight_shape()) : 0;
  }

  void run(Stream& stream, const Arrays& arrays, float* scratch) const {
    const Matrices m(problem_);
    switch (pass_) {
      case ConvPass::forward:
        return forward(stream, m, arrays, scratch);
      case ConvPass::backward_input:
        return backward_input(stream, m, arrays, scratch);
      case ConvPass::backward_weight:
        return backward_weight(stream, m, arrays, scratch);
    }
  }

 private:
  // The matrices of one image and group: w [filters][depth], columns [depth][places], y [filters][places].
  struct Matrices {
    explicit Matrices(const ConvProblem& p)
        : unrolling{p.height, p.width, p.kernel_h, p.kernel_w,     p.stride_h,   p.stride_w,
                    p.pad_h,  p.pad_w, p.dilation, p.out_height(), p.out_width()},
          unrolled(!is_product(p)),
          filters(p.filters / p.groups),
          depth(std::int64_t(p.channels) / p.groups * p.kernel_h * p.kernel_w),
          places(std::int64_t(p.out_height()) * p.out_width()),
          image_size(std::int64_t(p.channels) * p.height * p.width),
          output_size(p.filters * places),
          weight_size(p.filters * depth),
          tf32(p.precision != Precision::fp32) {}
    Unrolling unrolling;
    bool unrolled;
    std::int64_t filters, depth, places, image_size, output_size, weight_size;
    bool tf32;
  };

  // work(share) for every share.
  template <class Work>
  void for_each_share(const Work& work) const {
    if (shares_.apart) return for_each_share_apart(work);
    for (int share = 0; share < shares_.count; ++share) work(share);
  }

  // An exception may not leave a parallel loop, so one of those that were thrown there is thrown behind it.
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

  // y = w columns
  void forward(Stream& stream, const Matrices& m, const Arrays& arrays, float* columns) const {
    const float *const x = arrays.x, *const w = arrays.w;
    float* const y = arrays.result;
    for_each_share([&](int image) {
      const float* const patches = unroll(stream, problem_, m, x + image * m.image_size, columns);
      for (std::int64_t group = 0; group < problem_.groups; ++group)
        stream.gemm({.m = m.filters, .n = m.places, .k = m.depth, .tf32 = m.tf32}, w + group * m.filters * m.depth,
                    patches + group * m.depth * m.places, y + image * m.output_size + group * m.filters * m.places);
    });
  }

  // columns = w^T grad_y, and back to where they came from
  void backward_input(Stream& stream, const Matrices& m, const Arrays& arrays, float* columns) const {
    const float *const w = arrays.w, *const grad_y = arrays.y;
    float* const grad_x = arrays.result;
    for_each_share([&](int image) {
      float* const of_image = grad_x + image * m.image_size;
      float* const patches = m.unrolled ? columns : of_image;
      for (std::int64_t group = 0; group < problem_.groups; ++group)
        stream.gemm({.transpose_a = true, .m = m.depth, .n = m.places, .k = m.filters, .tf32 = m.tf32},
                    w + group * m.filters * m.depth, grad_y + image * m.output_size + group * m.filters * m.places,
                    patches + group * m.depth * m.places);
      if (m.unrolled) roll_up(stream, problem_, m, columns, of_image);
    });
  }

  // grad_w = sum over the images of grad_y columns^T
  void backward_weight(Stream& stream, const Matrices& m, const Arrays& arrays, float* scratch) const {
    const float *const x = arrays.x, *const grad_y = arrays.y;
    float* const grad_w = arrays.result;
    for_each_share([&](int share) {
      const std::int64_t batch = problem_.batch, first = batch * share / shares_.count;
      const std::int64_t end = batch * (share + 1) / shares_.count;
      float* const sum = shares_.apart ? scratch + share * m.weight_size : grad_w;
      for (std::int64_t image = first; image < end; ++image) {
        const float* const patches = unroll(stream, problem_, m, x + image * m.image_size, scratch);
        for (std::int64_t group = 0; group < problem_.groups; ++group)
          stream.gemm({.transpose_b = true,
                       .m = m.filters,
                       .n = m.depth,
                       .k = m.places,
                       .beta = image > first ? 1.0f : 0.0f,
                       .tf32 = m.tf32},
                      grad_y + image * m.output_size + group * m.filters * m.places,
                      patches + group * m.depth * m.places, sum + group * m.filters * m.depth);
      }
    });
    if (shares_.apart)
      map_indexed(stream, m.weight_size, SumOfShares{scratch, shares_.count, m.weight_size}, shares_.count, grad_w,
                  scratch);
  }

  // The image's column matrix: written to `columns`, or the image itself.
  static const float* unroll(Stream& stream, const ConvProblem& p, const Matrices& m, const float* image,
                             float* columns) {
    if (!m.unrolled) return image;
    const Unrolling& u = m.unrolling;
    if (on_gpu(stream))
      for_each_index(stream, p.channels * m.places * u.kernel_h * u.kernel_w,
                     Im2colElement{u, Divisor(u.out_w), Divisor(u.out_h), Divisor(u.kernel_w), Divisor(u.kernel_h),
                                   image, columns});
    else
      for_each_index(stream, std::int64_t(p.channels) * p.kernel_h * p.kernel_w * u.out_h, Im2colRow{u, image, columns},
                     u.out_w);
    return columns;
  }

  static void roll_up(Stream& stream, const ConvProblem& p, const Matrices& m, const float* columns, float* image) {
    const Unrolling& u = m.unrolling;
    if (on_gpu(stream))
      for_each_index(stream, m.image_size,
                     Col2imElement{u, Divisor(u.width), Divisor(u.height), Divisor(u.stride_w), Divisor(u.stride_h),
                                   columns, image});
    else
      for_each_index(stream, std::int64_t(p.channels) * p.height, Col2imRow{u, columns, image},
                     std::int64_t(p.width) * p.kernel_h * p.kernel_w);
  }

  ConvProblem problem_;
  ConvPass pass_;
  Shares shares_;
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

// The same convolution with x and y in each other's place, for strides of 1: the passes of one are those of the other.
ConvProblem rotated(const ConvProblem& p) {
  ConvProblem other = p;
  other.channels = p.filters, other.filters = p.channels;
  other.height = p.out_height(), other.width = p.out_width();
  other.pad_h = p.dilation * (p.kernel_h - 1) - p.pad_h, other.pad_w = p.dilation * (p.kernel_w - 1) - p.pad_w;
  return other;
}
ConvPass rotated(ConvPass pass) {
  if (pass == ConvPass::backward_weight) return pass;
  return pass == ConvPass::forward ? ConvPass::backward_input : ConvPass::forward;
}

class GemmPlan final : public ConvPlan {
 public:
  static std::shared_ptr<const ConvPlan> make(Device device, const ConvProblem& p, ConvPass pass) {
    const bool rotates = device.kind == Device::Kind::cpu && unrolls_output(p);  // on a GPU that was not measured
    const Products products(device, rotates ? rotated(p) : p, rotates ? rotated(pass) : pass);
    return std::shared_ptr<const ConvPlan>(new GemmPlan(p, pass, rotates, products));
  }

  void run(Context& ctx, ConvOperands& operands) const override {
    Stream& stream = *ctx.stream;
    const std::shared_ptr<void> workspace =
        facts().scratch_bytes > 0 ? stream.allocate(facts().scratch_bytes) : nullptr;
    float* const scratch = static_cast<float*>(workspace.get());
    const bool forward = pass_ == ConvPass::forward, of_weight = pass_ == ConvPass::backward_weight;
    Tensor& result = forward ? operands.y : of_weight ? operands.w : operands.x;
    const auto read = [&](const Tensor& tensor) { return &tensor == &result ? nullptr : tensor.read(); };
    const Arrays arrays{read(operands.x), read(operands.w), read(operands.y), result.write()};
    if (rotates_)
      run_rotated(stream, arrays, scratch);
    else
      products_.run(stream, arrays, scratch);
    if (forward) add_bias_and_relu(stream, operands);
  }

 private:
  GemmPlan(const ConvProblem& p, ConvPass pass, bool rotates, const Products& products)
      : ConvPlan(
            {.engine = "gemm",
             .scratch_bytes = sizeof(float) * static_cast<std::size_t>(products.scratch_floats() +
                                                                       (rotates ? count_of(p.weight_shape()) : 0))}),
        problem_(p),
        pass_(pass),
        rotates_(rotates),
        products_(products) {}

  void run_rotated(Stream& stream, const Arrays& arrays, float* scratch) const {
    float* const kernels = scratch + products_.scratch_floats();
    const std::int64_t count = count_of(problem_.weight_shape());
    const std::int64_t filters = problem_.filters / problem_.groups, channels = problem_.channels / problem_.groups;
    const std::int64_t taps = std::int64_t(problem_.kernel_h) * problem_.kernel_w;
    if (pass_ == ConvPass::backward_weight) {
      products_.run(stream, {arrays.y, nullptr, arrays.x, kernels}, scratch);
      for_each_index(stream, count, RotatedKernels{kernels, channels, filters, taps, arrays.result});
    } else {
      for_each_index(stream, count, RotatedKernels{arrays.w, filters, channels, taps, kernels});
      products_.run(stream, {arrays.y, kernels, arrays.x, arrays.result}, scratch);
    }
  }

  ConvProblem problem_;
  ConvPass pass_;
  bool rotates_;
  Products products_;
};

class GemmEngine final : public ConvEngine {
 public:
  explicit GemmEngine(Device device) : device_(device) {}
  std::string_view name() const override { return "gemm"; }
  ConvPlans plans(const ConvProblem& problem, ConvPass pass, std::size_t) const override {
    return {GemmPlan::make(device_, problem, pass)};
  }

 private:
  Device device_;
};

}  // namespace

// With few filters a product has few rows, and its time is that of the columns, which every tap of every channel has.
// The rotated problem has columns for the taps of the filters instead.
bool unrolls_output(const ConvProblem& p) {
  const ConvProblem other = rotated(p);
  return !is_product(p) && p.stride_h == 1 && p.stride_w == 1 && other.pad_h >= 0 && other.pad_w >= 0 &&
         2 * p.filters <= p.channels && p.filters <= std::int64_t(p.height) * p.width;
}

std::unique_ptr<ConvEngine> make_gemm_engine(Device device) {
  return std::make_unique<GemmEngine>(device);
}

}  // namespace twiddle
