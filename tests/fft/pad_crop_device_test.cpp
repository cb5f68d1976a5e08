// Runs the GPU threads that pad and crop planes on the CPU and compares them with plain loops.
#include "fft/cuda/cufft/pad_crop_device.h"

#include <gtest/gtest.h>

#include <cmath>

#include "framework/error.h"
#include "tests/support/limits.h"
#include "tests/support/noise.h"

namespace twiddle {
namespace {

template <class Work>
void follow(const Work& work) {
  for (std::int64_t block = 0; block < work.blocks.count(); ++block)
    for (int y = 0; y < work.blocks.down; ++y)
      for (int x = 0; x < work.blocks.along; ++x) work(static_cast<unsigned>(block), x, y);
  EXPECT_LE(work.blocks.along * work.blocks.down, plane_threads);
}

struct PadCropCase {
  Planes planes;
  std::int64_t first, count;

  std::int64_t tensor_size() const {
    return planes.offset + (planes.rows - 1) * planes.row_stride + planes.columns * planes.column_stride;
  }
  std::int64_t padded_plane() const { return std::int64_t(planes.grid.height) * padded_width(planes.grid); }
  std::int64_t place(std::int64_t plane, int y, int x) const {
    const std::int64_t row = (first + plane) / planes.columns, column = (first + plane) % planes.columns;
    return planes.offset + row * planes.row_stride + column * planes.column_stride + y * planes.width + x;
  }
  // Returns whether element (i, j) of the grid is in the plane, and sets (y, x) to its position there.
  bool in_window(int i, int j, int& y, int& x) const {
    y = i + planes.first_h, x = j + planes.first_w;
    return i >= 0 && j >= 0 && i < planes.window_h && j < planes.window_w && i < planes.grid.height &&
           j < planes.grid.width && y >= 0 && x >= 0 && y < planes.height && x < planes.width;
  }

  std::vector<float> padded(const std::vector<float>& tensor) const {
    std::vector<float> all(static_cast<std::size_t>(count * padded_plane()), 0);
    for (std::int64_t plane = 0; plane < count; ++plane)
      for (int i = 0, y, x; i < planes.grid.height; ++i)
        for (int j = 0; j < padded_width(planes.grid); ++j)
          if (in_window(i, j, y, x))
            all.at(static_cast<std::size_t>(plane * padded_plane() + i * padded_width(planes.grid) + j)) =
                tensor.at(static_cast<std::size_t>(place(plane, y, x)));
    return all;
  }
  std::vector<float> cropped(const std::vector<float>& from, const PlaneEpilogue& epilogue) const {
    std::vector<float> all(static_cast<std::size_t>(tensor_size()), not_a_number);
    const auto scale = static_cast<float>(1 / (double(planes.grid.height) * planes.grid.width));
    for (std::int64_t plane = 0; plane < count; ++plane)
      for (int y = 0, back_y, back_x; y < planes.height; ++y)
        for (int x = 0; x < planes.width; ++x) {
          const int i = y - planes.first_h, j = x - planes.first_w;
          float value = 0;
          if (in_window(i, j, back_y, back_x))
            value =
                scale * from.at(static_cast<std::size_t>(plane * padded_plane() + i * padded_width(planes.grid) + j));
          if (epilogue.bias != nullptr) value += epilogue.bias[(first + plane) % planes.columns];
          all.at(static_cast<std::size_t>(place(plane, y, x))) = epilogue.relu ? std::max(value, 0.0f) : value;
        }
    return all;
  }
};

void expect_same(const std::vector<float>& actual, const std::vector<float>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i)
    ASSERT_TRUE(std::isnan(expected[i]) ? std::isnan(actual[i]) : std::abs(actual[i] - expected[i]) <= 1e-6f)
        << "element " << i << " is " << actual[i] << ", expected " << expected[i];
}

template <int at_once>
void expect_as_by_loops(const PadCropCase& c) {
  const Planes& planes = c.planes;
  SCOPED_TRACE(join(at_once, " at once, planes ", c.first, " and ", c.count - 1, " more of ", planes.rows, "x",
                    planes.columns, ", each ", planes.height, "x", planes.width, " in ", to_string(planes.grid)));
  const std::vector<float> tensor = noise(c.tensor_size());
  std::vector<float> padded(static_cast<std::size_t>(c.count * c.padded_plane()), not_a_number);
  follow(PadPlanes<at_once>(planes, c.first, c.count, tensor.data(), padded.data()));
  expect_same(padded, c.padded(tensor));

  const std::vector<float> grids = noise(c.count * c.padded_plane()), bias = noise(planes.columns);
  for (const PlaneEpilogue& epilogue :
       {PlaneEpilogue{}, PlaneEpilogue{bias.data(), false}, PlaneEpilogue{nullptr, true}, {bias.data(), true}}) {
    std::vector<float> target(tensor.size(), not_a_number);
    follow(CropPlanes<at_once>(planes, c.first, c.count, grids.data(), target.data(), epilogue));
    expect_same(target, c.cropped(grids, epilogue));  // NaN where another group lies
  }
}

// If `groups`, returns the planes of the second of two groups.
Planes planes_of_size(int rows, int columns, int height, int width, bool groups = false) {
  Planes planes;
  planes.rows = rows, planes.columns = columns;
  planes.column_stride = std::int64_t(height) * width;
  planes.row_stride = (groups ? 2 : 1) * columns * planes.column_stride;
  planes.offset = groups ? columns * planes.column_stride : 0;
  planes.height = height, planes.width = width;
  return planes;
}

Planes in_grid(Planes planes, int pad_h, int pad_w, int height, int width, int window_h = 0, int window_w = 0) {
  planes.first_h = -pad_h, planes.first_w = -pad_w;
  planes.window_h = window_h == 0 ? height : window_h, planes.window_w = window_w == 0 ? width : window_w;
  planes.grid = {height, width, 1, 1, height, width};
  return planes;
}

void expect_in_all_ways(const Planes& planes) {
  const std::int64_t all = planes.rows * planes.columns;
  for (const PadCropCase& c :
       {PadCropCase{planes, 0, all}, PadCropCase{planes, all / 3, all - all / 3}, PadCropCase{planes, all / 2, 1}}) {
    expect_as_by_loops<1>(c);
    if (in_pairs(planes, nullptr)) expect_as_by_loops<2>(c);
  }
}

TEST(PadCropDevice, HandlesPlanesSmallerThanBlock) {
  expect_in_all_ways(in_grid(planes_of_size(3, 7, 13, 13), 1, 1, 14, 14));
  expect_in_all_ways(in_grid(planes_of_size(5, 9, 3, 3), 0, 0, 16, 14));
  expect_in_all_ways(in_grid(planes_of_size(31, 37, 1, 1), 0, 0, 2, 2));  // more planes at once than a row has
  expect_in_all_ways(in_grid(planes_of_size(70, 3, 2, 2), 0, 0, 4, 3));
  expect_in_all_ways(in_grid(planes_of_size(4, 5, 4, 6), 2, 2, 9, 10));
}

TEST(PadCropDevice, HandlesRangesOfPlanes) {
  expect_in_all_ways(in_grid(planes_of_size(2, 5, 27, 27), 2, 2, 30, 30));
  expect_in_all_ways(in_grid(planes_of_size(3, 4, 32, 32), 4, 4, 40, 40));
  expect_in_all_ways(in_grid(planes_of_size(2, 3, 30, 29), 0, 2, 32, 35));
  expect_in_all_ways(in_grid(planes_of_size(1, 3, 5, 600), 0, 0, 6, 602));
  expect_in_all_ways(in_grid(planes_of_size(3, 4, 1, 50), 0, 4, 1, 54));
}

TEST(PadCropDevice, HandlesRowsStridedByGroups) {
  expect_in_all_ways(in_grid(planes_of_size(5, 3, 5, 7, true), 1, 1, 8, 9));
  expect_in_all_ways(in_grid(planes_of_size(6, 4, 6, 8, true), 2, 2, 8, 12));
  expect_in_all_ways(in_grid(planes_of_size(40, 3, 1, 2, true), 0, 0, 2, 4));
}

TEST(PadCropDevice, HandlesWindowsSmallerThanPlane) {
  expect_in_all_ways(in_grid(planes_of_size(3, 4, 9, 11), 1, 1, 8, 8, 6, 7));
  expect_in_all_ways(in_grid(planes_of_size(3, 4, 9, 12), -2, -2, 8, 8));
  expect_in_all_ways(in_grid(planes_of_size(3, 4, 9, 12), -12, 0, 8, 8));  // nothing is left
  expect_in_all_ways(in_grid(planes_of_size(3, 4, 6, 6), 0, 0, 12, 12, 3, 5));
}

}  // namespace
}  // namespace twiddle
