#include "layers/pool_window.h"

#include <algorithm>

#include "framework/config/params.h"
#include "framework/text.h"
#include "layers/planes.h"

namespace twiddle {

namespace {

int pooled_size(int size, int kernel, int stride, int pad, bool ceil) {
  const int last = size + 2 * pad - kernel;
  int count = (ceil ? last + stride - 1 : last) / stride + 1;
  // Rounded up, the last window may begin beyond the input and its padding before it; both Caffe and PyTorch drop it.
  if (ceil && (count - 1) * stride >= size + pad) --count;
  return count;
}

}  // namespace

std::string PoolWindow::describe() const {
  std::string text = join(kernel_h, "x", kernel_w, ", stride ", format_sides(stride_h, stride_w));
  if (pad_h > 0 || pad_w > 0) text += ", pad " + format_sides(pad_h, pad_w);
  return text;
}

std::array<int, 2> read_pad(Params& params, const std::array<int, 2>& kernel, int most) {
  const ConfigNode* const written = params.node("pad");
  if (written == nullptr || written->text != "same") return params.pair("pad", {{0, 0}}, 0, most);
  const int half_h = kernel[0] / 2, half_w = kernel[1] / 2;
  params.error("pad", "'pad' is a number, found \"same\"",
               join("write ", half_h == half_w ? join(half_h) : join("[", half_h, ", ", half_w, "]"),
                    ": kernel / 2, which keeps the size of a plane if the kernel is odd and the stride 1"));
  return {0, 0};
}

PoolWindow read_pool_window(const Site& site, Params& params) {
  const std::string& kind = params.owner();
  const auto kernel = params.pair("kernel", std::nullopt, 1, 4096);
  const auto stride = params.pair("stride", kernel, 1, 4096);
  const auto pad = read_pad(params, kernel, 2048);
  const bool ceil = params.choice("rounding", "floor", {"floor", "ceil"}) == "ceil";

  const auto fail = [](const std::string& message) { throw Error(ErrorKind::config, message); };
  require_planes(site, params);
  if (2 * pad[0] > kernel[0] || 2 * pad[1] > kernel[1])
    fail(join(kind, ": pad ", format_sides(pad[0], pad[1]), " is more than half the kernel ", kernel[0], "x", kernel[1],
              ", so that windows would lie in the padding alone; at most ", format_sides(kernel[0] / 2, kernel[1] / 2),
              " fits"));
  // Positions within a plane are ints, including those of a window that extends beyond it.
  if (site.input[1] * site.input[2] >= std::int64_t(1) << 30)
    fail(join(kind, " pools planes of less than 2^30 values, and gets ", to_string(site.input)));
  const int height = static_cast<int>(site.input[1]), width = static_cast<int>(site.input[2]);
  const int padded_h = height + 2 * pad[0], padded_w = width + 2 * pad[1];
  if (kernel[0] > padded_h || kernel[1] > padded_w)
    fail(join(kind, ": a kernel of ", kernel[0], "x", kernel[1], " does not fit its input ", to_string(site.input),
              " with pad ", format_sides(pad[0], pad[1]), "; at most ", padded_h, "x", padded_w,
              " fits: use a smaller kernel, fewer strides before it, or a larger model input"));

  return {kernel[0],
          kernel[1],
          stride[0],
          stride[1],
          pad[0],
          pad[1],
          height,
          width,
          pooled_size(height, kernel[0], stride[0], pad[0], ceil),
          pooled_size(width, kernel[1], stride[1], pad[1], ceil)};
}

Shape pooled_shape(const Site& site, const PoolWindow& window) {
  return {site.input[0], window.out_height, window.out_width};
}

}  // namespace twiddle
