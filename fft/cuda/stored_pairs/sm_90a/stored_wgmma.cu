#include "fft/cuda/stored_pairs/sm_90a/stored_wgmma.h"

#include <algorithm>

#include "fft/cuda/device/dependent_launch.h"
#include "fft/cuda/stored_pairs/sm_90a/stored_block.h"
#include "fft/cuda/stored_pairs/stored_boxes.h"
#include "framework/cuda/check.h"
#include "framework/cuda/driver_function.h"
#include "framework/error.h"
#include "framework/quotient_up.h"

namespace twiddle::stored_pairs {

namespace {

using EncodeTiled = decltype(&cuTensorMapEncodeTiled);
EncodeTiled encode_tiled() {
  const auto encode = driver_function<EncodeTiled>("cuTensorMapEncodeTiled");
  require(encode != nullptr, "the driver knows no tensor maps");
  return encode;
}

// Elements outside of a bin's matrix are zero.
CUtensorMap tensor_map(const void* values, const StoredSpectrum& spectrum, bool along_k, int lines) {
  static const EncodeTiled encode = encode_tiled();
  const BoxMap map(spectrum, along_k, lines, depth);
  cuuint64_t sizes[4], strides[3];
  cuuint32_t box[4];
  const cuuint32_t steps[] = {1, 1, 1, 1};
  std::copy(map.sizes.begin(), map.sizes.end(), sizes);
  std::copy(map.strides.begin(), map.strides.end(), strides);
  std::transform(map.box.begin(), map.box.end(), box, [](std::uint64_t side) { return static_cast<cuuint32_t>(side); });
  CUtensorMap made;
  const CUresult result =
      encode(&made, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 4, const_cast<void*>(values), sizes, strides, box, steps,
             CU_TENSOR_MAP_INTERLEAVE_NONE, along_k ? CU_TENSOR_MAP_SWIZZLE_128B : CU_TENSOR_MAP_SWIZZLE_64B,
             CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  require(result == CUDA_SUCCESS, "no tensor map of ", spectrum.bins, " bins of ", spectrum.rows, " x ",
          spectrum.columns);
  return made;
}

StoredSpectrum spectrum_of(const FrequencyGemm& gemm, int halves_a_float, const GroupedMatrix& matrix) {
  return {halves_a_float, gemm.bins, matrix.rows, matrix.columns};
}

struct Factors {
  const void *a, *b;
};

template <int Fp16PerFloat, int Rows, int Columns, bool AAlongK, bool BAlongK>
void launch(Stream& stream, const FrequencyGemm& gemm, const Factors& factors, StoredArguments arguments) {
  using Block = StoredBlock<Rows, Columns, AAlongK, BAlongK, Fp16PerFloat>;
  const std::int64_t down = quotient_up(gemm.m, Rows), across = quotient_up(gemm.n, Columns);
  const std::int64_t slabs = arguments.whole_bins + (gemm.bins - arguments.whole_bins) * arguments.parts.value();
  const std::int64_t tiles = slabs * down * across;
  require(tiles < std::int64_t(1) << 30, tiles, " tiles are more than one launch can count");
  arguments.tiles_down = Divisor(down), arguments.tiles_across = Divisor(across);
  arguments.tiles = static_cast<int>(tiles);
  arguments.a = tensor_map(factors.a, spectrum_of(gemm, Fp16PerFloat, gemm.a()), AAlongK, Rows);
  arguments.b = tensor_map(factors.b, spectrum_of(gemm, Fp16PerFloat, gemm.b()), BAlongK, Columns);
  if (arguments.taken != nullptr)
    check(cudaMemsetAsync(arguments.taken, 0, sizeof *arguments.taken, static_cast<cudaStream_t>(stream.native())));
  const int blocks = std::min(arguments.tiles, multiprocessors(stream.device()));
  constexpr int bytes = sizeof(typename Block::Shared);
  small_fft::launch_dependent<stored_kernel<Block>>(stream, blocks, threads, bytes, arguments);
}

template <int Fp16PerFloat, int Rows, int Columns>
void multiply_tiles(Stream& stream, const FrequencyGemm& gemm, const Factors& factors,
                    const StoredArguments& arguments) {
  if (gemm.transpose_a)
    launch<Fp16PerFloat, Rows, Columns, false, false>(stream, gemm, factors, arguments);
  else if (gemm.transpose_b)
    launch<Fp16PerFloat, Rows, Columns, true, true>(stream, gemm, factors, arguments);
  else
    launch<Fp16PerFloat, Rows, Columns, true, false>(stream, gemm, factors, arguments);
}

template <int Fp16PerFloat>
void multiply_in(TileShape tile, Stream& stream, const FrequencyGemm& gemm, const Factors& factors,
                 const StoredArguments& arguments) {
  if (tile == TileShape::high_128x64)
    multiply_tiles<Fp16PerFloat, 128, 64>(stream, gemm, factors, arguments);
  else
    multiply_tiles<Fp16PerFloat, 64, 128>(stream, gemm, factors, arguments);
}

}  // namespace

void multiply_stored(Stream& stream, const FrequencyGemm& gemm, int halves_a_float, const void* a, const void* b,
                     const Tiling& tiling, small_fft::Complex* c, small_fft::Complex* of_parts, int* taken) {
  const StoredSpectrum of_a = spectrum_of(gemm, halves_a_float, gemm.a());
  const StoredSpectrum of_b = spectrum_of(gemm, halves_a_float, gemm.b());
  const bool a_along_k = !gemm.transpose_a, b_along_k = gemm.transpose_b;
  const StoredArguments arguments{.a = {},
                                  .b = {},
                                  .a_of_k = a_along_k ? of_a.of_columns(a) : of_a.of_rows(a),
                                  .b_of_k = b_along_k ? of_b.of_columns(b) : of_b.of_rows(b),
                                  .of_rows = a_along_k ? of_a.of_rows(a) : of_a.of_columns(a),
                                  .of_columns = b_along_k ? of_b.of_rows(b) : of_b.of_columns(b),
                                  .c = c,
                                  .of_parts = of_parts,
                                  .bins = static_cast<int>(gemm.bins),
                                  .m = static_cast<int>(gemm.m),
                                  .n = static_cast<int>(gemm.n),
                                  .k = static_cast<int>(gemm.k),
                                  .steps = static_cast<int>(quotient_up(gemm.k, depth)),
                                  .whole_bins = static_cast<int>(tiling.whole_bins),
                                  .steps_a_part = static_cast<int>(tiling.part / depth),
                                  .parts = Divisor(quotient_up(gemm.k, tiling.part)),
                                  .tiles_down = Divisor(1),
                                  .tiles_across = Divisor(1),
                                  .tiles = 0,
                                  .taken = taken,
                                  .accumulate = gemm.accumulate};
  if (halves_a_float == 2)
    multiply_in<2>(tiling.tile, stream, gemm, {a, b}, arguments);
  else
    multiply_in<1>(tiling.tile, stream, gemm, {a, b}, arguments);
}

}  // namespace twiddle::stored_pairs
