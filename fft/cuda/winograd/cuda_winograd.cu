#include "fft/cuda/winograd/cuda_winograd.h"

#include "fft/cuda/device/dependent_launch.h"
#include "fft/cuda/device/resident_blocks.h"
#include "fft/cuda/winograd/tile_kernels.h"
#include "fft/winograd/winograd_transform.h"
#include "framework/error.h"

namespace twiddle {

namespace winograd_blocks {
namespace {

template <class Block>
__global__ void __launch_bounds__(most_threads, small_fft::resident_blocks<most_threads>(least_blocks))
    forward_kernel(const Block block, bool dependents_early) {
  extern __shared__ float staged[];
  small_fft::grid_dependency_wait();
  if (dependents_early) small_fft::launch_dependents();
  const auto thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
  const TileBlocks::Place at = block.blocks.place(blockIdx.x);
  block.load(at, thread, threads, staged);
  __syncthreads();
  block.transform(at, thread, threads, staged);
}

template <class Block>
__global__ void __launch_bounds__(most_threads, small_fft::resident_blocks<most_threads>(least_blocks))
    inverse_kernel(const Block block, bool dependents_early) {
  extern __shared__ float staged[];
  small_fft::grid_dependency_wait();
  if (dependents_early) small_fft::launch_dependents();
  const auto thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
  const TileBlocks::Place at = block.blocks.place(blockIdx.x);
  block.transform(at, thread, threads, staged);
  __syncthreads();
  block.store(at, thread, threads, staged);
}

template <class Block>
__global__ void __launch_bounds__(most_threads, small_fft::resident_blocks<most_threads>(least_blocks))
    overlap_add_kernel(const Block block, bool dependents_early) {
  extern __shared__ float staged[];
  small_fft::grid_dependency_wait();
  if (dependents_early) small_fft::launch_dependents();
  const auto thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
  const TileBlocks::Place at = block.blocks.place(blockIdx.x);
  block.clear(thread, threads, staged);
  for (int item = thread, round = 0; round < block.rounds(threads); item += threads, ++round) {
    typename Block::Sums sums;
    block.transform(at, item, sums);
    for (int parity = 0; parity < Block::parities; ++parity) {
      __syncthreads();
      block.add(at, item, parity, sums, staged);
    }
  }
  __syncthreads();
  block.store(at, thread, threads, staged);
}

// The sum over a column's planes of y.
template <int outputs>
struct ColumnSum {
  using Form = WinogradForm<outputs>;
  std::int64_t columns, bin_size;
  const float* spectrum;
  bool add;
  float* sums;
  TWIDDLE_HD float term(std::int64_t row, std::int64_t column) const {
    float bins[Form::points][Form::points], rows[Form::points];
    const float* from = spectrum + row * columns + column;
    for (int i = 0; i < Form::points; ++i)
      for (int j = 0; j < Form::points; ++j, from += bin_size) bins[i][j] = *from;
    for (int i = 0; i < Form::points; ++i) rows[i] = Form::sum(bins[i]);
    return Form::sum(rows);
  }
  TWIDDLE_HD void store(std::int64_t column, double sum) const {
    sums[column] = static_cast<float>(add ? sums[column] + sum : sum);
  }
};

template <auto Kernel, class Block>
void launch(Stream& stream, const Block& block) {
  const TileBlocks& blocks = block.blocks;
  small_fft::launch_dependent<Kernel>(stream, blocks.count(), blocks.threads(), blocks.staged_bytes(), block);
}

}  // namespace
}  // namespace winograd_blocks

namespace {

template <int outputs>
class CudaWinograd final : public WinogradTransform<outputs> {
 public:
  void forward(Context& ctx, const Planes& planes, const PlaneSource& source, void* spectrum, void*) override {
    using namespace winograd_blocks;
    using Form = WinogradForm<outputs>;
    const auto run = [&]<int size, auto line>() {
      using Block = ForwardBlock<outputs, size, line>;
      launch<forward_kernel<Block>>(
          *ctx.stream, Block{blocks_of(ctx, planes, 0), source.values, source.mask, static_cast<float*>(spectrum)});
    };
    switch (operand_of(planes)) {
      case ConvOperand::x:
        return run.template operator()<Form::points, Form::template input<float>>();
      case ConvOperand::y:
        return run.template operator()<outputs, Form::template output_transposed<float>>();
      case ConvOperand::w:
        return run.template operator()<3, Form::template filter<float>>();
    }
  }

  void inverse(Context& ctx, const Planes& planes, const void* spectrum, float* target, const PlaneEpilogue& epilogue,
               void*) override {
    using namespace winograd_blocks;
    using Form = WinogradForm<outputs>;
    const auto* const from = static_cast<const float*>(spectrum);
    const auto run = [&]<int size, auto line>() {
      using Block = InverseBlock<outputs, size, line>;
      launch<inverse_kernel<Block>>(*ctx.stream, Block{blocks_of(ctx, planes, 0), from, target, epilogue});
    };
    switch (operand_of(planes)) {
      case ConvOperand::x: {
        require(epilogue.bias == nullptr && !epilogue.relu, "bias and relu are for tiles that do not overlap");
        using Block = OverlapAddBlock<outputs>;
        return launch<overlap_add_kernel<Block>>(*ctx.stream, Block{blocks_of(ctx, planes, 2), from, target});
      }
      case ConvOperand::y:
        return run.template operator()<outputs, Form::template output<float>>();
      case ConvOperand::w:
        return run.template operator()<3, Form::template filter_transposed<float>>();
    }
  }

  void sum_columns(Context& ctx, const Planes& planes, const void* spectrum, bool add, float* sums) override {
    const std::int64_t bin_size = planes.matrix_rows() * planes.columns;
    reduce_columns(
        *ctx.stream, planes.matrix_rows(), planes.columns,
        winograd_blocks::ColumnSum<outputs>{planes.columns, bin_size, static_cast<const float*>(spectrum), add, sums});
  }

 private:
  static winograd_blocks::TileBlocks blocks_of(Context& ctx, const Planes& planes, int overlap) {
    const std::int64_t wanted = winograd_blocks::blocks_a_multiprocessor * multiprocessors(ctx.stream->device());
    return {planes, overlap, wanted};
  }
};

}  // namespace

std::vector<std::unique_ptr<SpectralTransform>> make_cuda_winograd() {
  std::vector<std::unique_ptr<SpectralTransform>> transforms;
  transforms.push_back(std::make_unique<CudaWinograd<4>>());
  transforms.push_back(std::make_unique<CudaWinograd<2>>());
  return transforms;
}

}  // namespace twiddle
