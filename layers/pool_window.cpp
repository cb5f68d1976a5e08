#include "layers/pool_window.h"

#include <algorithm>

namespace twiddle {

namespace {

std::int64_t pooled_size(std::int64_t size, std::int64_t kernel, std::int64_t stride, std::int64_t pad, bool ceil) {
  const std::int64_t room = size + 2 * pad - kernel;
  std::int64_t count = (ceil ? room + stride - 1 : room) / stride + 1;
  // Rounded up, the last window may begin beyond the input and its padding before it; both Caffe and PyTorch drop it.
  if (ceil && (count - 1) * stride >= size + pad) --count;
  return count;
}

std::string pair_text(std::int64_t h, std::int64_t w, const char* separator) {
  return h == w ? join(h) : join(h, separator, w);
}

}  // namespace

std::string PoolWindow::describe() const {
  std::string text = join(kernel_h, "x", kernel_w, ", stride ", pair_text(stride_h, stride_w, "x"));
  if (pad_h > 0 || pad_w > 0) text += ", pad " + pair_text(pad_h, pad_w, "x");
  return text;
}

PoolWindow read_pool_window(const Site& site, Params& params) {
  const std::string& kind = params.owner();
  const auto kernel = params.pair("kernel", std::nullopt, 1, 4096);
  const auto stride = params.pair("stride", kernel, 1, 4096);
  const auto pad = params.pair("pad", std::array<int, 2>{0, 0}, 0, 2048);
  const bool ceil = params.choice("rounding", "floor", {"floor", "ceil"}) == "ceil";

  const auto fail = [](const std::string& message) { throw Error(ErrorKind::config, message); };
  if (site.input.size() != 3)
    fail(join(kind, " pools planes: it needs an input channels x height x width, and gets ", to_string(site.input),
              "; put it before any flatten or linear"));
  if (2 * pad[0] > kernel[0] || 2 * pad[1] > kernel[1])
    fail(join(kind, ": pad ", pair_text(pad[0], pad[1], "x"), " is more than half the kernel ", kernel[0], "x",
              kernel[1], ", so that windows would lie in the padding alone; at most ",
              pair_text(kernel[0] / 2, kernel[1] / 2, "x"), " fits"));
  const std::int64_t room_h = site.input[1] + 2 * pad[0], room_w = site.input[2] + 2 * pad[1];
  if (kernel[0] > room_h || kernel[1] > room_w)
    fail(join(kind, ": a kernel of ", kernel[0], "x", kernel[1], " does not fit its input ", to_string(site.input),
              " with pad ", pair_text(pad[0], pad[1], "x"), "; at most ", room_h, "x", room_w,
              " fits: take a smaller kernel, fewer strides before it, or a larger model input"));

  return {kernel[0],
          kernel[1],
          stride[0],
          stride[1],
          pad[0],
          pad[1],
          site.input[1],
          site.input[2],
          pooled_size(site.input[1], kernel[0], stride[0], pad[0], ceil),
          pooled_size(site.input[2], kernel[1], stride[1], pad[1], ceil)};
}

Shape pooled_shape(const Site& site, const PoolWindow& window) {
  return {site.input[0], window.out_height, window.out_width};
}

}  // namespace twiddle
