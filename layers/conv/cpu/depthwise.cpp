#include "layers/conv/cpu/depthwise.h"

#include <omp.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <vector>

#include "layers/conv/cpu/depthwise_kernels.h"

namespace twiddle {

namespace {

struct Axis {
  int size, outputs, kernel, stride, pad, dilation;
  // Padded element i of the plane is element i / stride of phase i % stride, and tap k of output 0 meets padded element
  // k * dilation: of its phase, output o meets the o-th behind it.
  int phase(int tap) const { return tap * dilation % stride; }
  int step(int tap) const { return tap * dilation / stride; }
  int reach() const { return step(kernel - 1); }
};

Axis rows_of(const ConvProblem& p) {
  return {p.height, p.out_height(), p.kernel_h, p.stride_h, p.pad_h, p.dilation};
}
Axis columns_of(const ConvProblem& p) {
  return {p.width, p.out_width(), p.kernel_w, p.stride_w, p.pad_w, p.dilation};
}

// A plane's row, without what the mask does not let pass.
void copy_row(const float* from, const float* mask, int count, float* to) {
  if (mask == nullptr) {
    std::memcpy(to, from, sizeof(float) * static_cast<std::size_t>(count));
    return;
  }
#pragma omp simd
  for (int i = 0; i < count; ++i) to[i] = mask[i] > 0 ? from[i] : 0;
}

// The padded input as its phases, one behind the other, where output (r, c) is at r * pitch + c, and a tap meets the
// element that is its offset behind that. So all rows of a plane are one long row to the loops. (Between the outputs of
// two rows they compute a few that nobody asked for.)
struct InputPhases {
  Axis h, w;
  std::int64_t rows, pitch;

  explicit InputPhases(const ConvProblem& p)
      : h(rows_of(p)), w(columns_of(p)), rows(h.outputs + h.reach()), pitch(w.outputs + w.reach()) {}

  std::int64_t floats() const { return h.stride * w.stride * rows * pitch; }
  std::int64_t count() const { return (h.outputs - 1) * pitch + w.outputs; }
  std::vector<std::int64_t> offsets() const {
    std::vector<std::int64_t> offsets;
    for (int ky = 0; ky < h.kernel; ++ky)
      for (int kx = 0; kx < w.kernel; ++kx)
        offsets.push_back(phase_at(h.phase(ky), w.phase(kx)) + h.step(ky) * pitch + w.step(kx));
    return offsets;
  }
  // Where there is padding, `phases` is zero already.
  void fill(const float* plane, float* phases) const {
    for (int y = 0; y < h.size; ++y, plane += w.size) {
      const int row = (y + h.pad) / h.stride;
      if (row >= rows) break;
      for (int phase = 0; phase < w.stride; ++phase) {
        float* const to = phases + phase_at((y + h.pad) % h.stride, phase) + row * pitch;
        const int begin = (std::max(0, w.pad - phase) + w.stride - 1) / w.stride;
        const auto end =
            static_cast<int>(std::min<std::int64_t>(pitch, (w.size + w.pad - phase + w.stride - 1) / w.stride));
        const float* const from = plane + phase - w.pad;
        for (int i = begin; i < end; ++i) to[i] = from[std::int64_t(i) * w.stride];
      }
    }
  }

 private:
  std::int64_t phase_at(int row_phase, int column_phase) const {
    return (row_phase * w.stride + column_phase) * rows * pitch;
  }
};

// The taps that meet a phase of x, and where in the gradient of y.
struct PhaseTaps {
  int row, column;
  std::vector<int> taps = {};
  std::vector<std::int64_t> offsets = {};
};

// The gradient of y for backward_input, which computes a phase of x at a time: element (r, c) of the phase's part that
// is not padding is at r * pitch + c, and lies before what the taps of that phase meet.
struct OutputGradient {
  Axis h, w;
  int first_row, first_column;  // of a phase that may hold an element of x
  std::int64_t rows, pitch;

  explicit OutputGradient(const ConvProblem& p)
      : h(rows_of(p)),
        w(columns_of(p)),
        first_row(h.pad / h.stride),
        first_column(w.pad / w.stride),
        rows((h.pad + h.size - 1) / h.stride - first_row + 1),
        pitch((w.pad + w.size - 1) / w.stride - first_column + 1 + w.reach()) {}

  std::int64_t floats() const { return (rows + h.reach()) * pitch; }
  std::int64_t count() const { return rows * pitch - w.reach(); }
  void fill(const float* plane, const float* mask, float* to) const {
    const int left = w.reach() - first_column, begin = std::max(0, -left);
    const auto end = static_cast<int>(std::min<std::int64_t>(w.outputs, pitch - left));
    if (begin >= end) return;
    for (int y = 0; y < h.outputs; ++y) {
      const std::int64_t row = y + h.reach() - first_row;
      if (row < 0 || row >= rows + h.reach()) continue;
      const std::int64_t at = std::int64_t(y) * w.outputs + begin;
      copy_row(plane + at, mask == nullptr ? nullptr : mask + at, end - begin, to + row * pitch + left + begin);
    }
  }
  std::vector<PhaseTaps> phases() const {
    std::vector<PhaseTaps> phases;
    for (int row = 0; row < h.stride; ++row)
      for (int column = 0; column < w.stride; ++column) phases.push_back({row, column});
    for (int ky = 0; ky < h.kernel; ++ky)
      for (int kx = 0; kx < w.kernel; ++kx) {
        PhaseTaps& phase = phases[static_cast<std::size_t>(h.phase(ky) * w.stride + w.phase(kx))];
        phase.taps.push_back(ky * w.kernel + kx);
        phase.offsets.push_back((h.reach() - h.step(ky)) * pitch + w.reach() - w.step(kx));
      }
    return phases;
  }
  // What was computed of a phase goes to its places in x.
  void store(const PhaseTaps& phase, const float* computed, float* x) const {
    for (int r = 0; r < rows; ++r) {
      const int y = (r + first_row) * h.stride + phase.row - h.pad;
      if (y < 0 || y >= h.size) continue;
      const float* const from = computed + r * pitch;
      float* const to = x + std::int64_t(y) * w.size;
      for (int c = 0; c < pitch - w.reach(); ++c) {
        const int column = (c + first_column) * w.stride + phase.column - w.pad;
        if (column >= 0 && column < w.size) to[column] = from[c];
      }
    }
  }
};

// Images whose gradients one thread adds up: the result does not depend on the number of threads.
constexpr int images_at_once = 8;

int slices_of(const ConvProblem& p) {
  return (p.batch + images_at_once - 1) / images_at_once;
}

// Two buffers a thread, each with room behind it: `in` of padded planes, and `out`.
std::int64_t with_slack(std::int64_t floats) {
  constexpr std::int64_t line = 16;
  return (floats + depthwise_slack + line - 1) / line * line;
}
struct Buffers {
  std::int64_t in, out;
  std::int64_t floats() const { return in + out; }
};
Buffers buffers_for(const ConvProblem& p, ConvPass pass) {
  const InputPhases input(p);
  const OutputGradient gradient(p);
  if (pass == ConvPass::backward_input) return {with_slack(gradient.floats()), with_slack(gradient.count())};
  return {with_slack(input.floats()), with_slack(input.count())};
}

// work(i, in, out) for every i below count, with buffers that are zero at first and of which a thread finds the second
// time what it left the first.
template <class Work>
void for_each_with_buffers(std::int64_t count, const Buffers& buffers, float* scratch, const Work& work) {
#pragma omp parallel
  {
    float* const in = scratch + omp_get_thread_num() * buffers.floats();
    std::fill_n(in, buffers.floats(), 0.0f);
#pragma omp for schedule(static)
    for (std::int64_t i = 0; i < count; ++i) work(i, in, in + buffers.in);
  }
}

// A pass of one problem, with all that its planes share.
struct DepthwisePass {
  const ConvProblem& p;
  DepthwiseKernels kernels;
  Buffers buffers;
  float* scratch;

  std::int64_t planes() const { return std::int64_t(p.batch) * p.channels; }
  std::int64_t input_floats() const { return std::int64_t(p.height) * p.width; }
  std::int64_t output_floats() const { return std::int64_t(p.out_height()) * p.out_width(); }
  int taps() const { return p.kernel_h * p.kernel_w; }

  void forward(ConvOperands& operands) const {
    const InputPhases phases(p);
    const auto offsets = phases.offsets();
    const float *const x = operands.x.read(), *const w = operands.w.read();
    const float* const bias = operands.bias.defined() ? operands.bias.read() : nullptr;
    float* const y = operands.y.write();
    const float least = operands.relu ? 0 : -std::numeric_limits<float>::infinity();
    for_each_with_buffers(planes(), buffers, scratch, [&](std::int64_t plane, float* in, float* out) {
      const std::int64_t channel = plane % p.channels;
      phases.fill(x + plane * input_floats(), in);
      kernels.sum_taps({in, w + channel * taps(), offsets.data(), taps(), phases.count(), out});
      const float added = bias != nullptr ? bias[channel] : 0;
      float* to = y + plane * output_floats();
      for (int row = 0; row < phases.h.outputs; ++row, to += phases.w.outputs) {
        const float* const from = out + row * phases.pitch;
#pragma omp simd
        for (int i = 0; i < phases.w.outputs; ++i) to[i] = from[i] + added < least ? 0 : from[i] + added;
      }
    });
  }

  void backward_input(ConvOperands& operands) const {
    const OutputGradient gradient(p);
    const float *const grad_y = operands.y.read(), *const w = operands.w.read();
    const float* const mask = operands.mask.defined() ? operands.mask.read() : nullptr;
    float* const grad_x = operands.x.write();
    const std::vector<PhaseTaps> phases = gradient.phases();
    for_each_with_buffers(planes(), buffers, scratch, [&](std::int64_t plane, float* in, float* out) {
      const std::int64_t at = plane * output_floats();
      gradient.fill(grad_y + at, mask == nullptr ? nullptr : mask + at, in);
      std::vector<float> weights(static_cast<std::size_t>(taps()));
      for (const PhaseTaps& phase : phases) {
        const std::size_t count = phase.taps.size();
        for (std::size_t i = 0; i < count; ++i) weights[i] = w[plane % p.channels * taps() + phase.taps[i]];
        kernels.sum_taps({in, weights.data(), phase.offsets.data(), static_cast<int>(count), gradient.count(), out});
        gradient.store(phase, out, grad_x + plane * input_floats());
      }
    });
  }

  // Slices of the batch, each summed by one thread, and then the slices: `partial` is [slice][channel][tap, bias].
  void backward_weight(ConvOperands& operands, double* partial) const {
    const InputPhases phases(p);
    const auto offsets = phases.offsets();
    const float *const x = operands.x.read(), *const grad_y = operands.y.read();
    const float* const mask = operands.mask.defined() ? operands.mask.read() : nullptr;
    const int slices = slices_of(p), sums_each = taps() + 1;
    for_each_with_buffers(std::int64_t(slices) * p.channels, buffers, scratch,
                          [&](std::int64_t task, float* in, float* gradient) {
                            const std::int64_t slice = task / p.channels, channel = task % p.channels;
                            double* const sums = partial + task * sums_each;
                            std::fill_n(sums, sums_each, 0.0);
                            const std::int64_t end = std::min<std::int64_t>((slice + 1) * images_at_once, p.batch);
                            for (std::int64_t image = slice * images_at_once; image < end; ++image) {
                              const std::int64_t plane = image * p.channels + channel, at = plane * output_floats();
                              phases.fill(x + plane * input_floats(), in);
                              sums[taps()] += copy_gradient(phases, grad_y + at, mask ? mask + at : nullptr, gradient);
                              kernels.multiply_taps({in, gradient, offsets.data(), taps(), phases.count(), sums});
                            }
                          });
    float* const grad_w = operands.w.write();
    float* const grad_bias = operands.bias.defined() ? operands.bias.write() : nullptr;
    const std::int64_t columns = std::int64_t(p.channels) * sums_each;
    for (std::int64_t channel = 0; channel < p.channels; ++channel)
      for (int tap = 0; tap < sums_each; ++tap) {
        double sum = 0;
        for (int slice = 0; slice < slices; ++slice) sum += partial[slice * columns + channel * sums_each + tap];
        if (tap < taps())
          grad_w[channel * taps() + tap] = static_cast<float>(sum);
        else if (grad_bias != nullptr)
          grad_bias[channel] = static_cast<float>(sum);
      }
  }

 private:
  // To where the loops expect it, with zeros between the rows; returns its sum.
  static double copy_gradient(const InputPhases& phases, const float* from, const float* mask, float* to) {
    double total = 0;
    for (int row = 0; row < phases.h.outputs; ++row, from += phases.w.outputs, to += phases.pitch) {
      copy_row(from, mask, phases.w.outputs, to);
      float sum = 0;
#pragma omp simd reduction(+ : sum)
      for (int i = 0; i < phases.w.outputs; ++i) sum += to[i];
      total += double(sum);
      if (mask != nullptr) mask += phases.w.outputs;
    }
    return total;
  }
};

std::int64_t partial_sums(const ConvProblem& p, ConvPass pass) {
  if (pass != ConvPass::backward_weight) return 0;
  return std::int64_t(slices_of(p)) * p.channels * (p.kernel_h * p.kernel_w + 1);
}

}  // namespace

DepthwiseKernels depthwise_kernels_for(InstructionSet set) {
#ifdef __x86_64__
  if (set == InstructionSet::avx512) return avx512_depthwise_kernels();
  if (set == InstructionSet::avx2) return avx2_depthwise_kernels();
#endif
  return baseline_depthwise_kernels();
}

std::size_t depthwise_scratch_on_cpu(const ConvProblem& problem, ConvPass pass) {
  return static_cast<std::size_t>(omp_get_max_threads() * buffers_for(problem, pass).floats()) * sizeof(float) +
         static_cast<std::size_t>(partial_sums(problem, pass)) * sizeof(double);
}

void depthwise_on_cpu(Stream& stream, const ConvProblem& problem, ConvPass pass, ConvOperands& operands,
                      InstructionSet set) {
  const std::shared_ptr<void> scratch = stream.allocate(depthwise_scratch_on_cpu(problem, pass));
  auto* const partial = static_cast<double*>(scratch.get());
  const DepthwisePass of{problem, depthwise_kernels_for(set), buffers_for(problem, pass),
                         reinterpret_cast<float*>(partial + partial_sums(problem, pass))};
  switch (pass) {
    case ConvPass::forward:
      return of.forward(operands);
    case ConvPass::backward_input:
      return of.backward_input(operands);
    case ConvPass::backward_weight:
      return of.backward_weight(operands, partial);
  }
}

}  // namespace twiddle
