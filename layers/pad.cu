#include "layers/pad.h"

#include <algorithm>

#include "framework/config/params.h"
#include "framework/error.h"
#include "framework/for_each_in_rows.h"
#include "framework/text.h"
#include "layers/planes.h"

namespace twiddle {

namespace {

// One axis of a plane, and how much is put before and after it.
struct PaddedAxis {
  int size, before, after;
  bool mirror;
  TWIDDLE_HD int padded() const { return before + size + after; }
  // The place that an output is taken from; outside the plane: it is zero.
  TWIDDLE_HD int source(int out) const {
    const int place = out - before;
    if (!mirror || (place >= 0 && place < size)) return place;
    return place < 0 ? -place : 2 * (size - 1) - place;
  }
  TWIDDLE_HD bool holds(int place) const { return place >= 0 && place < size; }

  // The outputs that are taken from one place: itself, and what mirrors it before and after the plane.
  struct Takers {
    int at[3], count;
  };
  TWIDDLE_HD Takers takers(int place) const {
    Takers all{{before + place, 0, 0}, 1};
    if (mirror && place >= 1 && place <= before) all.at[all.count++] = before - place;
    if (mirror && place <= size - 2 && place >= size - 1 - after) all.at[all.count++] = before + 2 * (size - 1) - place;
    return all;
  }
};

template <class T>
struct PadForward {
  Divisor padded_height;
  PaddedAxis down, across;
  const T* x;
  T* y;
  struct Row {
    PaddedAxis across;
    const T* from;  // null: a row of zeros
    T* to;
    TWIDDLE_HD void operator()(std::int64_t column) const {
      const int place = across.source(static_cast<int>(column));
      to[column] = from != nullptr && across.holds(place) ? from[place] : T{};
    }
  };
  TWIDDLE_HD Row row(std::int64_t row) const {
    const std::int64_t plane = padded_height.quotient(row);
    const int place = down.source(static_cast<int>(padded_height.remainder(row)));
    const T* const from = down.holds(place) ? x + (plane * down.size + place) * across.size : nullptr;
    return {across, from, y + row * across.padded()};
  }
};

// Each place gathers what was taken from it, in a fixed order.
template <class T>
struct PadBackward {
  Divisor height;
  PaddedAxis down, across;
  const T* grad_y;
  T* grad_x;
  struct Row {
    PaddedAxis across;
    PaddedAxis::Takers rows;
    const T* plane;
    T* to;
    TWIDDLE_HD void operator()(std::int64_t column) const {
      const PaddedAxis::Takers columns = across.takers(static_cast<int>(column));
      float sum = 0;
      for (int h = 0; h < rows.count; ++h)
        for (int w = 0; w < columns.count; ++w)
          sum += to_float(plane[std::int64_t(rows.at[h]) * across.padded() + columns.at[w]]);
      to[column] = from_float<T>(sum);
    }
  };
  TWIDDLE_HD Row row(std::int64_t row) const {
    const std::int64_t plane = height.quotient(row);
    return {across, down.takers(static_cast<int>(height.remainder(row))),
            grad_y + plane * down.padded() * across.padded(), grad_x + row * across.size};
  }
};

// top, bottom, left, right
std::array<int, 4> read_sizes(Params& params) {
  constexpr int most = 1 << 15;
  const std::size_t errors = params.diagnostics().size();
  const ConfigNode* const node = params.node("size");
  const bool list = node != nullptr && node->kind == ConfigNode::Kind::sequence;
  std::vector<std::int64_t> given = list ? params.integers("size", 0, most)
                                         : std::vector<std::int64_t>{params.integer("size", std::nullopt, 0, most)};
  if (given.size() == 1 && !list) given.push_back(given[0]);
  if (given.size() == 2) given = {given[0], given[0], given[1], given[1]};
  if (given.size() != 4) {
    if (params.diagnostics().size() == errors)
      params.error("size", join("'size' must be one number or a list of two or four, found a list of ", given.size()),
                   "[height, width] or [top, bottom, left, right]");
    return {};
  }
  std::array<int, 4> sizes{};
  for (std::size_t i = 0; i < sizes.size(); ++i) sizes[i] = static_cast<int>(given[i]);
  return sizes;
}

}  // namespace

Pad::Pad(const Site& site, Params& params)
    : Layer(site.name, {}),
      sizes_(read_sizes(params)),
      mirror_(params.choice("mode", "zero", {"zero", "mirror"}) == "mirror") {
  require_planes(site, params);
  const auto [top, bottom, left, right] = sizes_;
  const std::int64_t height = site.input[1], width = site.input[2];
  if (mirror_ && (std::max(top, bottom) >= height || std::max(left, right) >= width))
    throw Error(ErrorKind::config,
                join(params.owner(), " can mirror at most ", height - 1, " rows and ", width - 1, " columns of ",
                     to_string(site.input), ", because the border itself is not repeated; requested: ", describe()));
  set_output_shape({site.input[0], height + top + bottom, width + left + right});
}

std::string Pad::describe() const {
  const auto [top, bottom, left, right] = sizes_;
  const std::string mode = mirror_ ? ", mirror" : "";
  if (top == bottom && left == right) return format_sides(top, left) + mode;
  return join("top ", top, ", bottom ", bottom, ", left ", left, ", right ", right) + mode;
}

Variable Pad::forward(Context& ctx, const Variable& x) {
  return pad_planes(ctx, name(), x, sizes_, mirror_);
}

Variable pad_planes(Context& ctx, const std::string& name, const Variable& x, const std::array<int, 4>& sizes,
                    bool mirror) {
  const Tensor value = x.value();
  const Shape shape = value.shape();
  const PaddedAxis down{static_cast<int>(shape.at(2)), sizes[0], sizes[1], mirror};
  const PaddedAxis across{static_cast<int>(shape.at(3)), sizes[2], sizes[3], mirror};
  const std::int64_t planes = shape[0] * shape[1];
  Tensor y(*ctx.stream, {shape[0], shape[1], down.padded(), across.padded()}, value.type());
  with_type(value.type(), [&](auto t) {
    using T = decltype(t);
    for_each_in_rows(*ctx.stream, planes * down.padded(), across.padded(),
                     PadForward<T>{Divisor(down.padded()), down, across, value.read<T>(), y.write<T>()});
  });
  return ctx.tape.record(name, y, {x}, [x, shape, planes, down, across](Context& back, const Tensor& grad_y) {
    Tensor grad_x(*back.stream, shape, grad_y.type());
    with_type(grad_y.type(), [&](auto t) {
      using T = decltype(t);
      for_each_in_rows(*back.stream, planes * down.size, across.size,
                       PadBackward<T>{Divisor(down.size), down, across, grad_y.read<T>(), grad_x.write<T>()});
    });
    x.add_grad(back, grad_x);
  });
}

}  // namespace twiddle
