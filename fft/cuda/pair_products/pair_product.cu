#include "fft/pair_product.h"

#include <algorithm>

#include "fft/cuda/pair_products/pair_kernel.h"
#include "framework/cuda/check.h"
#include "framework/error.h"

namespace twiddle {

namespace pairs {
namespace {

// A sum of more terms is cut into parts, which blocks sum side by side and which are added in their order: what one
// thread adds one after the other loses digits with its length. And into more where there are too few tiles for all
// multiprocessors.
constexpr std::int64_t longest_part = 8192, least_part = 256;
constexpr std::int64_t most_parts = 65535;  // of a grid's second dimension

std::int64_t quotient_up(std::int64_t count, std::int64_t each) {
  return (count + each - 1) / each;
}

struct Cut {
  std::int64_t tiles_m, tiles_n, steps, part, parts;
  bool sums;  // whether the results of parts, or one to be transposed, are written by a last kernel
};
Cut cut(const PairProduct& p, int multiprocessors) {
  const std::int64_t tiles_m = quotient_up(p.m, rows_of_a), tiles_n = quotient_up(p.n, columns);
  const bool may_cut = p.bias == nullptr && !p.relu && (p.c.period >= p.n || p.transpose_c);
  const std::int64_t filling = resident * multiprocessors / std::max<std::int64_t>(tiles_m * tiles_n, 1);
  const std::int64_t cuts = std::max<std::int64_t>({quotient_up(p.k, longest_part), filling, 1});
  const std::int64_t wanted = may_cut ? std::min(cuts, most_parts) : 1;
  const std::int64_t part = std::max(quotient_up(quotient_up(p.k, wanted), depth) * depth, least_part);
  const std::int64_t parts = std::max<std::int64_t>(quotient_up(p.k, part), 1);
  return {tiles_m, tiles_n, quotient_up(p.k, depth), part, parts, parts > 1 || p.transpose_c};
}

// What a product takes from the pool, one behind the other.
struct Scratch {
  Scratch(const PairProduct& p, const Cut& cut)
      : scales(cut.tiles_m * cut.steps * sizeof(SplitPart)),
        results(scales + cut.steps * depth * sizeof(float)),
        bytes(results + (cut.sums ? cut.parts * p.m * p.n * sizeof(float) : 0)) {}
  std::size_t scales, results, bytes;
};

Factor factor(const StridedMatrix<const float>& matrix, std::int64_t rows) {
  return {matrix.values, matrix.stride, matrix.piece_stride, Divisor(matrix.period), rows};
}

// Whether so many adjacent elements may be copied at once.
template <int Count, class Number>
bool is_aligned(const StridedMatrix<Number>& matrix) {
  return reinterpret_cast<std::uintptr_t>(matrix.values) % (Count * sizeof(float)) == 0 && matrix.stride % Count == 0 &&
         matrix.period % Count == 0 && matrix.piece_stride % Count == 0;
}

template <bool AlongK, int Width>
void launch_split(Stream& stream, const SplitArguments& arguments) {
  const cudaStream_t native = twiddle::detail::native(stream);
  split_kernel<AlongK, Width><<<static_cast<unsigned>(arguments.steps), threads, 0, native>>>(arguments);
  twiddle::detail::check_launch();
}

struct SumOfParts {
  const float* parts;
  std::int64_t count, of;
  Divisor columns;
  std::int64_t stride;
  bool transpose;
  float* c;
  TWIDDLE_HD void operator()(std::int64_t i) const {
    float sum = 0;
    for (std::int64_t part = 0; part < of; ++part) sum += parts[part * count + i];
    const std::int64_t row = columns.quotient(i), column = i - row * columns.value();
    c[transpose ? column * stride + row : row * stride + column] = sum;
  }
};

void split(Stream& stream, const PairProduct& p, const Cut& cut, SplitPart* parts, float* scales) {
  const SplitArguments arguments{factor(p.a, p.m),
                                 static_cast<int>(p.k),
                                 static_cast<int>(cut.steps),
                                 static_cast<int>(cut.tiles_m),
                                 p.balance,
                                 parts,
                                 scales};
  const bool by_fours = is_aligned<4>(p.a);
  if (p.a_along_k)
    by_fours ? launch_split<true, 4>(stream, arguments) : launch_split<true, 1>(stream, arguments);
  else
    by_fours ? launch_split<false, 4>(stream, arguments) : launch_split<false, 1>(stream, arguments);
}

Arguments arguments_of(const PairProduct& p, const Cut& cut, const SplitPart* parts, const float* scales,
                       float* results) {
  return {.a = parts,
          .scales = scales,
          .b = factor(p.b, p.n),
          .m = p.m,
          .k = static_cast<int>(p.k),
          .part = static_cast<int>(cut.part),
          .steps = static_cast<int>(cut.steps),
          .tiles_m = static_cast<int>(cut.tiles_m),
          .c = cut.sums ? results : p.c.values,
          .c_stride = cut.sums ? p.n : p.c.stride,
          .c_piece_stride = p.c.piece_stride,
          .c_part_stride = p.m * p.n,
          .c_period = Divisor(cut.sums ? p.n : p.c.period),
          .paired = cut.sums ? p.n % 2 == 0 : is_aligned<2>(p.c),
          .bias = p.bias,
          .relu = p.relu};
}

}  // namespace
}  // namespace pairs

std::vector<TensorCores> tensor_cores(const Device& device) {
  if (device.kind != Device::Kind::cuda) return {};
  int major = 0, minor = 0;
  check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device.index));
  check(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device.index));
  if (major < 8) return {};
  // TWIDDLE_WGMMA=OFF leaves the kernels of all other GPUs alone to compete, to be timed here.
  if (TWIDDLE_WGMMA && major == 9 && minor == 0) return {TensorCores::wgmma, TensorCores::mma};
  return {TensorCores::mma};
}

std::size_t scratch_of_pair_product(const Device& device, const PairProduct& product) {
  return pairs::Scratch(product, pairs::cut(product, multiprocessors(device))).bytes;
}

void run_pair_product(Stream& stream, TensorCores cores, const PairProduct& p) {
  using namespace pairs;
  if (p.m == 0 || p.n == 0) return;
  require(p.k > 0 && p.k < std::int64_t(1) << 31, "a product over ", p.k, " terms: 1 to 2^31 - 1 can be summed");
  const Cut cut = pairs::cut(p, multiprocessors(stream.device()));
  const Scratch places(p, cut);
  const std::shared_ptr<void> scratch = stream.allocate(places.bytes);
  auto* const bytes = static_cast<char*>(scratch.get());
  auto* const parts = reinterpret_cast<SplitPart*>(bytes);
  auto* const scales = reinterpret_cast<float*>(bytes + places.scales);
  auto* const results = reinterpret_cast<float*>(bytes + places.results);

  split(stream, p, cut, parts, scales);
  const dim3 grid(static_cast<unsigned>(cut.tiles_m * cut.tiles_n), static_cast<unsigned>(cut.parts));
  const auto multiply = cores == TensorCores::wgmma ? multiply_by_wgmma : multiply_by_mma;
  multiply(stream, arguments_of(p, cut, parts, scales, results), grid, p.b_along_k, is_aligned<4>(p.b));
  if (cut.sums)
    for_each_index(stream, p.m * p.n,
                   SumOfParts{results, p.m * p.n, cut.parts, Divisor(p.n), p.c.stride, p.transpose_c, p.c.values});
}

}  // namespace twiddle
