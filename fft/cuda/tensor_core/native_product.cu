#include "fft/native_product.h"

#include <algorithm>

#include "fft/cuda/tensor_core/native_task.h"
#include "fft/cuda/tensor_core/native_tiling.h"
#include "fft/pair_product.h"
#include "framework/cuda/check.h"
#include "framework/cuda/driver_function.h"
#include "framework/error.h"
#include "framework/for_each.h"

namespace twiddle {

namespace tensor_core {
namespace {

// A matrix with `width` adjacent numbers in rows, in boxes of 64 x `height`. Numbers outside are zero.
CUtensorMap map_of(const NativeProduct& product, const void* matrix, std::int64_t width, std::int64_t rows, bool one,
                   int height) {
  static const auto encode = driver_function<decltype(&cuTensorMapEncodeTiled)>("cuTensorMapEncodeTiled");
  require(encode != nullptr, "the driver knows no tensor maps");
  const cuuint64_t sizes[] = {static_cast<cuuint64_t>(width), static_cast<cuuint64_t>(rows),
                              static_cast<cuuint64_t>(one ? 1 : product.matrices)};
  const cuuint64_t strides[] = {static_cast<cuuint64_t>(width * 2), static_cast<cuuint64_t>(width * rows * 2)};
  const cuuint32_t box[] = {64, static_cast<cuuint32_t>(height), 1}, steps[] = {1, 1, 1};
  CUtensorMap map;
  const CUresult result =
      encode(&map, product.type == DType::bf16 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 : CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 3,
             const_cast<void*>(matrix), sizes, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
             CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  require(result == CUDA_SUCCESS, "no tensor map of ", rows, " x ", width);
  return map;
}

template <class Half, int Columns, bool AAlongK, bool BAlongK>
void launch_native(Stream& stream, const NativeProduct& product, NativeArguments arguments) {
  using Task = NativeTask<Half, Columns, AAlongK, BAlongK>;
  const auto map = [&](const void* matrix, bool along_k, std::int64_t lines, bool one, int lines_of_tile) {
    return along_k ? map_of(product, matrix, product.k, lines, one, lines_of_tile)
                   : map_of(product, matrix, lines, product.k, one, Task::depth);
  };
  arguments.a = map(product.a, AAlongK, product.m, product.one_a, Task::rows);
  arguments.b = map(product.b, BAlongK, product.n, product.one_b, Task::columns);
  small_fft::launch_dependent<tile_kernel<Task>>(stream, std::min(arguments.tiles, multiprocessors(stream.device())),
                                                 threads_of<Task>, sizeof(Shared<Task>), arguments);
}

template <class Half, int Columns>
void multiply_columns(Stream& stream, const NativeProduct& product, const NativeArguments& arguments) {
  if (product.a_along_k && product.b_along_k)
    launch_native<Half, Columns, true, true>(stream, product, arguments);
  else if (product.a_along_k)
    launch_native<Half, Columns, true, false>(stream, product, arguments);
  else
    launch_native<Half, Columns, false, false>(stream, product, arguments);
}

// C = the sum of the parts, with bias and ReLU.
template <class To>
struct FinishParts {
  const float* parts;
  To* c;
  std::int64_t count, m, n;
  int number;
  const float* bias;
  bool bias_of_rows, relu;
  TWIDDLE_HD void operator()(std::int64_t i) const {
    float sum = 0;
    for (int part = 0; part < number; ++part) sum += parts[part * count + i];
    if (bias != nullptr) sum += bias[bias_of_rows ? i / n % m : i % n];
    c[i] = from_float<To>(relu && sum < 0 ? 0 : sum);
  }
};

template <class Half>
void multiply_as(Stream& stream, const NativeProduct& product, void* scratch) {
  const NativeTiling tiling = tiling_of(product, multiprocessors(stream.device()));
  const std::int64_t count = matrices_of_c(product) * product.m * product.n;
  const bool whole = tiling.parts == 1;
  const NativeArguments arguments{shape_of(product, tiling),
                                  {},
                                  {},
                                  nullptr,
                                  whole ? product.c : scratch,
                                  whole ? product.type_of_c : DType::f32,
                                  count,
                                  whole ? product.bias : nullptr,
                                  product.bias_of_rows,
                                  whole && product.relu};
  if (tiling.columns == 256)
    multiply_columns<Half, 256>(stream, product, arguments);
  else
    multiply_columns<Half, 128>(stream, product, arguments);
  if (whole) return;
  with_type(product.type_of_c, [&](auto type) {
    using To = decltype(type);
    for_each_index(
        stream, count,
        FinishParts<To>{static_cast<const float*>(scratch), static_cast<To*>(product.c), count, product.m, product.n,
                        static_cast<int>(tiling.parts), product.bias, product.bias_of_rows, product.relu});
  });
}

}  // namespace
}  // namespace tensor_core

bool can_multiply_native(const Device& device, const NativeProduct& product) {
  const std::vector<TensorCores> cores = tensor_cores(device);
  constexpr std::int64_t aligned = 8, largest = std::int64_t(1) << 30;  // numbers of 16 bytes; of a side
  const std::int64_t width_of_a = product.a_along_k ? product.k : product.m,
                     width_of_b = product.b_along_k ? product.k : product.n;
  return std::find(cores.begin(), cores.end(), TensorCores::wgmma) != cores.end() && width_of_a % aligned == 0 &&
         width_of_b % aligned == 0 && std::max({product.m, product.n, product.k}) < largest &&
         (product.a_along_k || !product.b_along_k);
}

std::size_t scratch_bytes(const Device& device, const NativeProduct& product) {
  const tensor_core::NativeTiling tiling = tensor_core::tiling_of(product, multiprocessors(device));
  if (tiling.parts == 1) return 0;
  return static_cast<std::size_t>(tiling.parts * tensor_core::matrices_of_c(product) * product.m * product.n) *
         sizeof(float);
}

void multiply_native(Stream& stream, const NativeProduct& product, void* scratch) {
  require(std::min({product.m, product.n, product.k, product.matrices}) > 0, "a product of an empty matrix");
  if (product.type == DType::bf16)
    tensor_core::multiply_as<__nv_bfloat16>(stream, product, scratch);
  else
    tensor_core::multiply_as<__half>(stream, product, scratch);
}

}  // namespace twiddle
