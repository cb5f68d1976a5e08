#pragma once
#include <cstdint>

namespace twiddle {
namespace {

// The stored bins of one column of a plane's bins. The first and the middle column are their own mirror images: their
// bins, except for the first and the middle one, form conjugate pairs. Only one of each pair is stored.
struct StoredColumn {
  std::int64_t first;  // bins before it
  int bins;
};

inline StoredColumn stored_column(int height, int width, int column) {
  const int half = height / 2 + 1;
  const bool own_mirror = column == 0 || 2 * column == width;
  return {column == 0 ? 0 : half + std::int64_t(column - 1) * height, own_mirror ? half : height};
}

inline std::int64_t stored_bins(int height, int width) {
  const StoredColumn last = stored_column(height, width, width / 2);
  return last.first + last.bins;
}

}  // namespace
}  // namespace twiddle
