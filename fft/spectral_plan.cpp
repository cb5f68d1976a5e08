#include "fft/spectral_plan.h"

#include <algorithm>
#include <utility>

#include "framework/error.h"

namespace twiddle {

namespace {

const char* stage_name(ConvOperand operand) {
  return operand == ConvOperand::x ? "fft of x" : operand == ConvOperand::w ? "fft of w" : "fft of y";
}

SpectralSlice roles_of(ConvPass pass) {
  using enum ConvOperand;
  switch (pass) {
    case ConvPass::forward:
      return {x, w, y};  // Y = X conj(W)', summed over channels
    case ConvPass::backward_input:
      return {y, w, x};  // X = Y W, over filters
    default:
      return {y, x, w};  // W = conj(Y)' X, over batch and tiles
  }
}

// Returns the number of images after the last full slice, or a full slice if none are left.
int images_left(int batch, int images) {
  return batch % images > 0 ? batch % images : images;
}

// Returns the scratch of a full slice or of the smaller last one, whichever is larger: a product of fewer rows may be
// split into more parts, which need more scratch.
std::size_t scratch_of(const SpectralSlice& whole, const SpectralSlice& last) {
  return std::max(whole.scratch_bytes, last.scratch_bytes);
}

}  // namespace

SpectralSlice slice_of(const ConvProblem& problem, ConvPass pass, const SpectralParts& parts, int images) {
  const auto planes = [&](ConvOperand operand) { return planes_of(problem, operand, parts.grid, 0, images); };
  const std::int64_t channels = problem.channels / problem.groups, filters = problem.filters / problem.groups;
  SpectralSlice slice = roles_of(pass);
  slice.a = planes(slice.a_is), slice.b = planes(slice.b_is), slice.c = planes(slice.c_is);
  FrequencyGemm& gemm = slice.gemm;
  gemm.bins = parts.transform->bins(parts.grid);
  gemm.groups = problem.groups;
  if (pass == ConvPass::backward_weight) {
    gemm.m = filters, gemm.n = channels, gemm.k = slice.a.matrix_rows();
    gemm.transpose_a = gemm.conjugate_a = true;
  } else {
    gemm.m = slice.c.matrix_rows(), gemm.n = filters, gemm.k = channels;
    if (pass == ConvPass::backward_input) std::swap(gemm.n, gemm.k);
  }
  gemm.transpose_b = gemm.conjugate_b = pass == ConvPass::forward;
  const SpectralTransform& transform = *parts.transform;
  slice.a_bytes = transform.spectrum_bytes(slice.a);
  slice.b_bytes = transform.spectrum_bytes(slice.b);
  slice.scratch_bytes = std::max(transform.scratch_bytes(slice.a), transform.scratch_bytes(slice.b));
  if (parts.fused != nullptr) slice.scratch_bytes = std::max(slice.scratch_bytes, parts.fused->scratch_bytes(slice.c));
  if (parts.product != nullptr) {
    slice.c_bytes = transform.product_bytes(slice.c);
    slice.scratch_bytes =
        std::max({slice.scratch_bytes, transform.scratch_bytes(slice.c), parts.product->scratch_bytes(gemm)});
  }
  return slice;
}

std::size_t scratch_bytes(const ConvProblem& problem, ConvPass pass, const SpectralParts& parts, int images) {
  SpectralSlice slice = slice_of(problem, pass, parts, images);
  slice.scratch_bytes = scratch_of(slice, slice_of(problem, pass, parts, images_left(problem.batch, images)));
  return slice.bytes();
}

int images_within(std::size_t limit, const ConvProblem& problem, ConvPass pass, const SpectralParts& parts) {
  for (int images = problem.batch;; images = (images + 1) / 2) {
    if (scratch_bytes(problem, pass, parts, images) <= limit) return images;
    if (images == 1) return 0;
  }
}

SpectralPlan::SpectralPlan(Facts facts, std::shared_ptr<const SpectralBackend> backend,
                           std::shared_ptr<FrequencyBuffers> buffers, const ConvProblem& problem, ConvPass pass,
                           const SpectralParts& parts, int images_at_once)
    : ConvPlan(std::move(facts)),
      backend_(std::move(backend)),
      buffers_(std::move(buffers)),
      problem_(problem),
      pass_(pass),
      parts_(parts),
      images_(images_at_once),
      whole_(slice_of(problem, pass, parts, images_)),
      last_(slice_of(problem, pass, parts, images_left(problem.batch, images_))),
      kind_of_spectrum_(join(parts.transform->name(), ", ", static_cast<int>(parts.transform->storage()))) {}

std::shared_ptr<void> SpectralPlan::spectrum(Context& ctx, ConvOperands& operands, ConvOperand operand,
                                             const Planes& planes, void* scratch) const {
  const Tensor& source = tensor_of(operands, operand);
  const Tensor mask = operand == ConvOperand::y ? operands.mask : Tensor();
  const std::size_t bytes = parts_.transform->spectrum_bytes(planes);
  const auto compute = [&](void* spectrum) {
    const StageRange stage(ctx.profiler, *ctx.stream, stage_name(operand));
    parts_.transform->forward(ctx, planes, {source.read(), mask.defined() ? mask.read() : nullptr}, spectrum, scratch);
  };
  // In evaluation no other pass reads x, and w does not change between batches.
  const bool evaluates = !ctx.training;
  if (evaluates && operand == ConvOperand::x) {
    std::shared_ptr<void> spectrum = buffers_->scratch(*ctx.stream, bytes);
    compute(spectrum.get());
    return spectrum;
  }
  const bool in_turn = evaluates && operand == ConvOperand::w;
  return buffers_->spectrum(*ctx.stream, {source, planes, kind_of_spectrum_, mask, in_turn}, bytes, compute);
}

void SpectralPlan::run(Context& ctx, ConvOperands& operands) const {
  Stream& stream = *ctx.stream;
  const bool forward = pass_ == ConvPass::forward, sums_up = pass_ == ConvPass::backward_weight;
  const float* const bias = forward && operands.bias.defined() ? operands.bias.read() : nullptr;
  float* const bias_sums = sums_up && operands.bias.defined() ? operands.bias.write() : nullptr;
  float* const target = tensor_of(operands, whole_.c_is).write();
  const std::shared_ptr<void> scratch = buffers_->scratch(stream, scratch_of(whole_, last_));

  std::shared_ptr<void> c, weights;  // weights stay for all slices
  for (int first = 0; first < problem_.batch; first += images_) {
    const bool is_last = first + images_ >= problem_.batch;
    const int images = std::min(images_, problem_.batch - first);
    SpectralSlice slice = is_last ? last_ : whole_;
    const auto offset = [&](ConvOperand operand) {
      return planes_of(problem_, operand, parts_.grid, first, images).offset;
    };
    slice.a.offset = offset(slice.a_is), slice.b.offset = offset(slice.b_is), slice.c.offset = offset(slice.c_is);

    const std::shared_ptr<void> a = spectrum(ctx, operands, slice.a_is, slice.a, scratch.get());
    const std::shared_ptr<void> b = spectrum(ctx, operands, slice.b_is, slice.b, scratch.get());
    if (slice.b_is == ConvOperand::w) weights = b;
    slice.gemm.accumulate = sums_up && first > 0;
    if (bias_sums != nullptr) parts_.transform->sum_columns(ctx, slice.a, a.get(), first > 0, bias_sums);
    const PlaneEpilogue epilogue{bias, forward && operands.relu};
    if (parts_.fused != nullptr) {
      const StageRange stage(ctx.profiler, stream, "inverse");
      parts_.fused->run(ctx, slice.gemm, a.get(), b.get(), slice.c, target, epilogue, scratch.get());
      continue;
    }
    if (!slice.gemm.accumulate) c = nullptr, c = buffers_->scratch(stream, slice.c_bytes);
    {
      const StageRange stage(ctx.profiler, stream, "product");
      parts_.product->run(ctx, slice.gemm, a.get(), b.get(), c.get(), scratch.get());
    }
    if (sums_up && !is_last) continue;
    const StageRange stage(ctx.profiler, stream, "inverse");
    parts_.transform->inverse(ctx, slice.c, c.get(), target, epilogue, scratch.get());
  }
}

}  // namespace twiddle
