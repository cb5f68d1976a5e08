#include "fft/pair_product.h"

#include <algorithm>

#include "fft/cuda/pair_products/few_rows.h"
#include "fft/cuda/pair_products/pair_kernel.h"
#include "fft/cuda/pair_products/short_sums.h"
#include "fft/cuda/pair_products/split_launch.h"
#include "fft/cuda/pair_products/tuned_on_h100.h"
#include "framework/cuda/check.h"
#include "framework/error.h"
#include "framework/quotient_up.h"

namespace twiddle {

namespace pairs {
namespace {

// k is split into parts that blocks sum in parallel and that are added in order. This is done if a thread's sums would
// be too long, or if there are too few tiles for all multiprocessors.
constexpr std::int64_t most_parts = 65535, most_batch = 65535;  // of a grid's other dimensions

std::int64_t part_of(const PairProduct& p, std::int64_t parts) {
  return std::max(quotient_up(quotient_up(p.k, parts), depth) * depth, least_part);
}

// Estimates a product's time for this length of parts, in steps of blocks that share a multiprocessor; a block alone on
// one is faster. Each part has extra steps for its start and end, and parts must be written and read.
double estimate(const PairProduct& p, std::int64_t tiles, std::int64_t part, int multiprocessors) {
  const std::int64_t parts = quotient_up(p.k, part), blocks = tiles * parts;
  const std::int64_t at_a_time = std::int64_t(resident) * multiprocessors, left = blocks % at_a_time;
  const double waves = static_cast<double>(blocks / at_a_time) + (left == 0 ? 0 : left <= multiprocessors ? alone : 1);
  const double steps = waves * (static_cast<double>(part / depth) + ends_of_a_tile);
  if (parts == 1) return steps;
  return steps + step_of_a_last_kernel + static_cast<double>(p.batch * p.m * p.n * (2 * parts + 1)) / floats_a_step;
}

// Returns whether C has no gaps, within a matrix and between those of a batch, so that it can be written as one row.
bool is_dense(const PairProduct& p) {
  const std::int64_t across = p.transpose_c ? p.m : p.n;
  return p.c.stride == across && p.c.period >= across && (p.batch == 1 || p.c_step == p.m * p.n);
}

struct Tiling {
  std::int64_t tiles_m, tiles_n, steps, part, parts;
  bool sums;     // whether the results of parts, or one that is added to C, are written by a last kernel
  bool split_b;  // before the product, too
};
Tiling tiling_of(const PairProduct& p, TensorCores cores, int multiprocessors) {
  const std::int64_t tiles_m = quotient_up(p.m, rows_of_a), tiles_n = quotient_up(p.n, columns);
  const std::int64_t tiles = tiles_m * tiles_n * p.batch, fewest = quotient_up(p.k, p.longest_sum);
  const std::int64_t enough =
      quotient_up(std::int64_t(2) * resident * multiprocessors, std::max<std::int64_t>(tiles, 1));
  std::int64_t part = quotient_up(p.k, depth) * depth;
  if (is_dense(p)) {
    part = part_of(p, std::min(fewest, most_parts));
    for (std::int64_t parts = fewest + 1; parts <= std::min(fewest + enough, most_parts); ++parts)
      if (const std::int64_t other = part_of(p, parts);
          estimate(p, tiles, other, multiprocessors) < estimate(p, tiles, part, multiprocessors))
        part = other;
  }
  const std::int64_t parts = quotient_up(p.k, part);
  return {.tiles_m = tiles_m,
          .tiles_n = tiles_n,
          .steps = quotient_up(p.k, depth),
          .part = part,
          .parts = parts,
          .sums = parts > 1 || p.add,
          .split_b = cores == TensorCores::wgmma && tiles_m >= tiles_that_share_b};
}

// Offsets of a product's buffers in its scratch.
struct Scratch {
  Scratch(const PairProduct& p, const Tiling& tiling)
      : b(p.batch * tiling.tiles_m * tiling.steps * sizeof(SplitPart<rows_of_a>)),
        scales(b + (tiling.split_b ? p.batch * tiling.tiles_n * tiling.steps * sizeof(SplitPart<rows_of_b>) : 0)),
        results(scales + p.batch * tiling.steps * depth * sizeof(float)),
        bytes(results + (tiling.sums ? tiling.parts * p.batch * p.m * p.n * sizeof(float) : 0)) {}
  std::size_t b, scales, results, bytes;
};

struct SumOfParts {
  const float* parts;
  std::int64_t count, of;
  bool add;
  const float* bias;
  Divisor matrix, across;  // numbers of a matrix, and those that lie side by side in it
  bool bias_across, relu;
  float* c;
  TWIDDLE_HD void operator()(std::int64_t i) const {
    float sum = add ? c[i] : 0;
    for (std::int64_t part = 0; part < of; ++part) sum += parts[part * count + i];
    if (bias != nullptr) sum += bias[bias_across ? across.remainder(i) : across.quotient(matrix.remainder(i))];
    c[i] = relu && sum < 0 ? 0 : sum;
  }
};

void sum_parts(Stream& stream, const PairProduct& p, const Tiling& tiling, const float* results) {
  const std::int64_t count = p.batch * p.m * p.n;
  for_each_index(stream, count,
                 SumOfParts{.parts = results,
                            .count = count,
                            .of = tiling.parts,
                            .add = p.add,
                            .bias = p.bias,
                            .matrix = Divisor(p.m * p.n),
                            .across = Divisor(p.transpose_c ? p.m : p.n),
                            .bias_across = p.bias_of_columns != p.transpose_c,
                            .relu = p.relu,
                            .c = p.c.values});
}

Arguments arguments_of(const PairProduct& p, const Tiling& tiling, const SplitPart<rows_of_a>* parts,
                       const SplitPart<rows_of_b>* parts_of_b, const float* scales, float* results) {
  const bool whole = !tiling.sums;
  return {.a = parts,
          .split_b = parts_of_b,
          .scales = scales,
          .b = factor(p.b, p.n, p.b_step),
          .m = p.m,
          .k = static_cast<int>(p.k),
          .part = static_cast<int>(tiling.part),
          .steps = static_cast<int>(tiling.steps),
          .tiles_m = static_cast<int>(tiling.tiles_m),
          .tiles_n = static_cast<int>(tiling.tiles_n),
          .c = whole ? p.c.values : results,
          .c_stride = p.c.stride,
          .c_piece_stride = p.c.piece_stride,
          .c_part_stride = p.batch * p.m * p.n,
          .c_matrix_step = p.c_step,
          .c_period = Divisor(p.c.period),
          .transpose = p.transpose_c,
          .paired = is_aligned<2>(p.c, p.c_step) && (whole || p.m * p.n % 2 == 0),
          .bias = whole ? p.bias : nullptr,
          .bias_of_columns = p.bias_of_columns,
          .relu = whole && p.relu};
}

}  // namespace
}  // namespace pairs

std::vector<TensorCores> tensor_cores(const Device& device) {
  if (device.kind != Device::Kind::cuda || device.index >= cuda_device_count()) return {};
  int major = 0, minor = 0;
  check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device.index));
  check(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device.index));
  if (major < 8) return {};
  // TWIDDLE_WGMMA=OFF leaves only the kernels of other GPUs, so that they can be timed here.
  if (TWIDDLE_WGMMA && major == 9 && minor == 0) return {TensorCores::wgmma, TensorCores::mma};
  return {TensorCores::mma};
}

std::size_t scratch_of_pair_product(const Device& device, TensorCores cores, const PairProduct& product) {
  using namespace pairs;
  const std::size_t bytes = Scratch(product, tiling_of(product, cores, multiprocessors(device))).bytes;
  if (cores != TensorCores::wgmma) return bytes;
  // Also at least the scratch of the general form, which runs if operands are not aligned for the others.
  if (has_few_rows(product)) return std::max(bytes, scratch_of_few_rows(device, product));
  if (has_short_sums(product)) return std::max(bytes, scratch_of_short_sums(product));
  return bytes;
}

void run_pair_product(Stream& stream, TensorCores cores, const PairProduct& p, void* scratch) {
  using namespace pairs;
  if (p.m == 0 || p.n == 0) return;
  require(p.k > 0 && p.k < std::int64_t(1) << 31, "a product over ", p.k, " terms: 1 to 2^31 - 1 can be summed");
  require(p.batch <= most_batch, "a batch of ", p.batch, " products: ", most_batch, " can be launched");
  require(is_dense(p) || !p.add, "a product is added to a matrix without gaps");
  if (cores == TensorCores::wgmma && has_few_rows(p)) return multiply_few_rows(stream, p, scratch);
  if (cores == TensorCores::wgmma && has_short_sums(p)) return multiply_short_sums(stream, p, scratch);
  const Tiling tiling = pairs::tiling_of(p, cores, multiprocessors(stream.device()));
  const Scratch places(p, tiling);
  auto* const bytes = static_cast<char*>(scratch);
  auto* const parts = reinterpret_cast<SplitPart<rows_of_a>*>(bytes);
  auto* const parts_of_b = tiling.split_b ? reinterpret_cast<SplitPart<rows_of_b>*>(bytes + places.b) : nullptr;
  auto* const scales = reinterpret_cast<float*>(bytes + places.scales);
  auto* const results = reinterpret_cast<float*>(bytes + places.results);

  split_a<Order::plain>(stream, p, tiling.steps, tiling.tiles_m, parts, scales);
  if (tiling.split_b) split_b(stream, p, tiling.steps, tiling.tiles_n, scales, parts_of_b);
  const dim3 grid(static_cast<unsigned>(tiling.tiles_m * tiling.tiles_n), static_cast<unsigned>(tiling.parts),
                  static_cast<unsigned>(p.batch));
  const auto multiply = cores == TensorCores::wgmma ? multiply_by_wgmma : multiply_by_mma;
  multiply(stream, arguments_of(p, tiling, parts, parts_of_b, scales, results), grid, p.b_along_k,
           is_aligned<4>(p.b, p.b_step));
  if (tiling.sums) sum_parts(stream, p, tiling, results);
}

void run_pair_product(Stream& stream, TensorCores cores, const PairProduct& product) {
  const std::size_t bytes = scratch_of_pair_product(stream.device(), cores, product);
  run_pair_product(stream, cores, product, stream.allocate(bytes).get());
}

}  // namespace twiddle
