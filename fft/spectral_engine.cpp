#include "fft/spectral_engine.h"

#include <algorithm>

#include "framework/error.h"
#include "framework/text.h"

namespace twiddle {

namespace {

struct Roles {
  ConvOperand a, b, c;
};

// C = op(A) op(B): which operand is which.
Roles roles_of(ConvPass pass) {
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

Tensor& tensor_of(ConvOperands& operands, ConvOperand operand) {
  return operand == ConvOperand::x ? operands.x : operand == ConvOperand::w ? operands.w : operands.y;
}

const char* stage_name(ConvOperand operand) {
  return operand == ConvOperand::x ? "fft of x" : operand == ConvOperand::w ? "fft of w" : "fft of y";
}

}  // namespace

// What one pass does to one slice of one group. Where the inverse is fused, the product's spectrum takes no bytes.
struct SpectralEngine::Plan {
  Roles roles;
  Planes a, b, c;
  FrequencyGemm gemm;
  std::size_t a_bytes, b_bytes, c_bytes, scratch_bytes;
  std::size_t bytes() const { return a_bytes + b_bytes + c_bytes + scratch_bytes; }
};

SpectralEngine::SpectralEngine(SpectralBackend backend, std::shared_ptr<FrequencyBuffers> buffers, std::size_t limit,
                               Tuner tuner)
    : backend_(std::move(backend)),
      buffers_(std::move(buffers)),
      limit_(std::min(limit, buffers_->budget())),
      tuner_(std::move(tuner)) {}

SpectralEngine::Plan SpectralEngine::plan(const ConvProblem& problem, ConvPass pass, const SpectralStrategy& strategy,
                                          int images) const {
  const SpectralTransform& transform = *backend_.transforms[strategy.transform];
  const auto planes = [&](ConvOperand operand) { return planes_of(problem, operand, strategy.grid, 0, 0, images); };
  Plan plan{roles_of(pass), {}, {}, {}, {}, 0, 0, 0, 0};
  plan.a = planes(plan.roles.a), plan.b = planes(plan.roles.b), plan.c = planes(plan.roles.c);
  FrequencyGemm& gemm = plan.gemm;
  gemm.bins = transform.bins(strategy.grid);
  gemm.m = plan.c.matrix_rows(), gemm.n = plan.c.columns;
  if (pass == ConvPass::backward_weight) {
    gemm.k = plan.a.matrix_rows();
    gemm.transpose_a = gemm.conjugate_a = true;
  } else {
    gemm.k = plan.a.columns;
  }
  gemm.transpose_b = gemm.conjugate_b = pass == ConvPass::forward;
  plan.a_bytes = transform.spectrum_bytes(plan.a);
  plan.b_bytes = transform.spectrum_bytes(plan.b);
  plan.scratch_bytes = std::max(transform.scratch_bytes(plan.a), transform.scratch_bytes(plan.b));
  if (!fuses(strategy)) {
    plan.c_bytes = transform.spectrum_bytes(plan.c);
    plan.scratch_bytes = std::max({plan.scratch_bytes, transform.scratch_bytes(plan.c),
                                   backend_.products[strategy.product]->scratch_bytes(gemm)});
  }
  return plan;
}

// The largest slice of such a pass, with scratch for the last one, too, which is smaller and may want more of it: a
// product of fewer rows may be cut into more parts.
SpectralEngine::Plan SpectralEngine::plan_in_slices(const ConvProblem& problem, ConvPass pass,
                                                    const SpectralStrategy& strategy, int images) const {
  Plan largest = plan(problem, pass, strategy, images);
  if (const int last = problem.batch % images; last > 0)
    largest.scratch_bytes = std::max(largest.scratch_bytes, plan(problem, pass, strategy, last).scratch_bytes);
  return largest;
}

bool SpectralEngine::fuses(const SpectralStrategy& strategy) const {
  return strategy.product == backend_.products.size();
}

std::size_t SpectralEngine::usual_product(std::size_t transform) const {
  const auto found = std::find_if(backend_.products.begin(), backend_.products.end(), [&](const auto& product) {
    return product->storage() == backend_.transforms[transform]->storage();
  });
  return static_cast<std::size_t>(found - backend_.products.begin());
}

SpectralStrategy SpectralEngine::in_pass(SpectralStrategy strategy, ConvPass pass) const {
  if (fuses(strategy) && pass != ConvPass::forward) strategy.product = usual_product(strategy.transform);
  return strategy;
}

// As many as fit the limit; nothing: not even one does.
std::optional<int> SpectralEngine::most_images(const ConvProblem& problem, ConvPass pass,
                                               const SpectralStrategy& strategy) const {
  for (int images = problem.batch;; images = (images + 1) / 2) {
    if (plan_in_slices(problem, pass, strategy, images).bytes() <= limit_) return images;
    if (images == 1) return std::nullopt;
  }
}

// Nothing fits where somebody set such a strategy, or where threads, each with scratch of its own, have become more
// since the strategies were found.
int SpectralEngine::images_at_once(const ConvProblem& problem, ConvPass pass, const SpectralStrategy& strategy) const {
  if (const std::optional<int> images = most_images(problem, pass, strategy)) return *images;
  throw Error(join(name(), " (", describe(strategy), ") needs ", format_bytes(plan(problem, pass, strategy, 1).bytes()),
                   " for one image of ", to_string(problem), " (", to_string(pass), "), and may take ",
                   format_bytes(limit_), ": raise convolution.workspace_limit or use fewer threads"));
}

std::vector<SpectralStrategy> SpectralEngine::strategies(const ConvProblem& problem) const {
  return known_strategies(problem);
}

const std::vector<SpectralStrategy>& SpectralEngine::known_strategies(const ConvProblem& problem) const {
  const auto known = strategies_.find(problem);
  if (known != strategies_.end()) return known->second;
  std::vector<SpectralStrategy> found;
  const auto add = [&](const SpectralStrategy& strategy) {
    const auto fits = [&](ConvPass pass) { return most_images(problem, pass, in_pass(strategy, pass)).has_value(); };
    if (std::all_of(std::begin(every_pass), std::end(every_pass), fits)) found.push_back(strategy);
  };
  const bool served =
      problem.stride_h == 1 && problem.stride_w == 1 && problem.dilation == 1 && problem.precision != Precision::bf16;
  for (std::size_t transform = 0; served && transform < backend_.transforms.size(); ++transform) {
    const SpectrumStorage storage = backend_.transforms[transform]->storage();
    const bool can_fuse = backend_.fused && backend_.fused->storage() == storage &&
                          usual_product(transform) < backend_.products.size();  // for the passes that do not
    for (const FrequencyGrid& grid : backend_.transforms[transform]->grids(problem)) {
      const SpectralStrategy fused{grid, transform, backend_.products.size()};
      const Plan forward = plan(problem, ConvPass::forward, fused, problem.batch);
      if (can_fuse && backend_.fused->supports(forward.gemm, forward.c)) add(fused);
      for (std::size_t product = 0; product < backend_.products.size(); ++product)
        if (backend_.products[product]->storage() == storage &&
            (backend_.products[product]->keeps_fp32() || problem.precision != Precision::fp32))
          add({grid, transform, product});
    }
  }
  return strategies_.emplace(problem, std::move(found)).first->second;
}

bool SpectralEngine::supports(const ConvProblem& problem, ConvPass) const {
  return !known_strategies(problem).empty();
}

bool SpectralEngine::does_epilogue_backward() const {
  return std::all_of(backend_.transforms.begin(), backend_.transforms.end(),
                     [](const auto& transform) { return transform->masks_and_sums(); });
}

void SpectralEngine::set_strategy(const ConvProblem& problem, ConvPass pass, const SpectralStrategy& strategy) {
  chosen_[{problem, pass}] = strategy;
}

SpectralStrategy SpectralEngine::strategy(const ConvProblem& problem, ConvPass pass) const {
  const auto taken = [&]() -> const SpectralStrategy& {
    const auto chosen = chosen_.find({problem, pass});
    if (chosen != chosen_.end()) return chosen->second;
    const std::vector<SpectralStrategy>& all = known_strategies(problem);
    require(!all.empty(), name(), " cannot do ", to_string(problem));
    return all.front();
  };
  return in_pass(taken(), pass);
}

std::string SpectralEngine::describe(const SpectralStrategy& strategy) const {
  std::string text = to_string(strategy.grid);
  if (backend_.transforms.size() > 1) text += join(", ", backend_.transforms[strategy.transform]->name());
  if (fuses(strategy))
    text += join(", ", backend_.fused->name());
  else if (backend_.products.size() > 1)
    text += join(", ", backend_.products[strategy.product]->name());
  return text;
}

std::string SpectralEngine::details(const ConvProblem& problem, ConvPass pass) const {
  const SpectralStrategy taken = strategy(problem, pass);
  const int images = images_at_once(problem, pass, taken);
  return describe(taken) + (images < problem.batch ? join(", ", images, " images at once") : "");
}

std::size_t SpectralEngine::workspace_bytes(const ConvProblem& problem, ConvPass pass) const {
  const SpectralStrategy taken = strategy(problem, pass);
  return plan_in_slices(problem, pass, taken, images_at_once(problem, pass, taken)).bytes();
}

std::size_t SpectralEngine::kept_bytes(const ConvProblem& problem, ConvPass pass) const {
  const Plan whole = plan(problem, pass, strategy(problem, pass), problem.batch);
  return std::min(buffers_->budget(), (whole.a_bytes + whole.b_bytes) * static_cast<std::size_t>(problem.groups));
}

void SpectralEngine::tune(Context& ctx, const ConvProblem& problem) {
  if (!tuner_ || tuned_.contains(problem) || known_strategies(problem).empty()) return;
  tuner_(ctx, *this, problem);
  tuned_.insert(problem);
}

void SpectralEngine::run(Context& ctx, const ConvProblem& problem, ConvPass pass, ConvOperands& operands) {
  const SpectralStrategy taken = strategy(problem, pass);
  SpectralTransform& transform = *backend_.transforms[taken.transform];
  const std::string way = join(transform.name(), ", ", to_string(transform.storage()));
  const int at_once = images_at_once(problem, pass, taken);
  Stream& stream = *ctx.stream;

  const Roles roles = roles_of(pass);
  Tensor& result = tensor_of(operands, roles.c);
  float* const target = result.write();
  const std::shared_ptr<void> scratch =
      buffers_->scratch(stream, plan_in_slices(problem, pass, taken, at_once).scratch_bytes);

  const auto spectrum_of = [&](ConvOperand operand, const Planes& planes) {
    const Tensor& source = tensor_of(operands, operand);
    const Tensor mask = operand == ConvOperand::y ? operands.mask : Tensor();
    return buffers_->spectrum(stream, {source, planes, way, mask}, transform.spectrum_bytes(planes), [&](void* bytes) {
      const StageRange stage(ctx.profiler, stream, stage_name(operand));
      transform.forward(ctx, planes, {source.read(), mask.defined() ? mask.read() : nullptr}, bytes, scratch.get());
    });
  };

  float* const bias_sums =
      pass == ConvPass::backward_weight && operands.bias.defined() ? operands.bias.write() : nullptr;
  for (int group = 0; group < problem.groups; ++group) {
    std::shared_ptr<void> c;
    for (int first = 0; first < problem.batch; first += at_once) {
      const int images = std::min(at_once, problem.batch - first);
      Plan slice = plan(problem, pass, taken, images);
      const auto placed = [&](ConvOperand operand, Planes& planes) {
        planes.offset = planes_of(problem, operand, taken.grid, group, first, images).offset;
      };
      placed(roles.a, slice.a), placed(roles.b, slice.b), placed(roles.c, slice.c);

      const std::shared_ptr<void> a = spectrum_of(roles.a, slice.a), b = spectrum_of(roles.b, slice.b);
      const bool sums_up = pass == ConvPass::backward_weight;
      slice.gemm.accumulate = sums_up && first > 0;
      if (bias_sums != nullptr)
        transform.sum_columns(ctx, slice.a, a.get(), first > 0, bias_sums + group * slice.a.columns);
      const bool forward = pass == ConvPass::forward;
      const PlaneEpilogue epilogue{
          forward && operands.bias.defined() ? operands.bias.read() + group * slice.c.columns : nullptr,
          forward && operands.relu};
      if (fuses(taken)) {
        const StageRange stage(ctx.profiler, stream, "inverse");
        backend_.fused->run(ctx, slice.gemm, a.get(), b.get(), slice.c, target, epilogue);
        continue;
      }
      if (!slice.gemm.accumulate) c = nullptr, c = buffers_->scratch(stream, slice.c_bytes);
      {
        const StageRange stage(ctx.profiler, stream, "product");
        backend_.products[taken.product]->run(ctx, slice.gemm, a.get(), b.get(), c.get(), scratch.get());
      }
      if (sums_up && first + images < problem.batch) continue;
      const StageRange stage(ctx.profiler, stream, "inverse");
      transform.inverse(ctx, slice.c, c.get(), target, epilogue, scratch.get());
    }
  }
}

}  // namespace twiddle
