#include "layers/conv/kernels/cpu/depthwise.h"

#include <omp.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <numeric>
#include <vector>

#include "framework/quotient_up.h"
#include "layers/conv/kernels/cpu/depthwise_kernels.h"
#include "layers/conv/pass_arrays.h"

namespace twiddle {

namespace {

struct Axis {
  int size, outputs, kernel, stride, pad, dilation;
  // Padded element i of the plane is element i / stride of phase i % stride, and tap k of output 0 reads padded element
  // k * dilation. Output o reads the o-th element of that phase after it.
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

std::int64_t in_vectors(std::int64_t floats) {
  return round_up<std::int64_t>(floats, depthwise_vector);
}

// The taps of an axis that read one of its phases: tap first + i * step of the kernel reads element offset + i.
struct TapLine {
  int first, step, count, offset;
};
// Undilated, the taps of a phase form one line; dilated, each tap is separate.
std::vector<TapLine> lines_of(const Axis& axis, int phase) {
  if (axis.dilation == 1)
    return phase < axis.kernel ? std::vector<TapLine>{{phase, axis.stride, axis.step(axis.kernel - 1 - phase) + 1, 0}}
                               : std::vector<TapLine>{};
  std::vector<TapLine> lines;
  for (int tap = 0; tap < axis.kernel; ++tap)
    if (axis.phase(tap) == phase) lines.push_back({tap, 1, 1, axis.step(tap)});
  return lines;
}

// The padded input as consecutive phases of `rows` rows each. A tap of output (r, c) reads its phase at (r, c) plus the
// tap's offset.
struct InputPhases {
  Axis h, w;
  std::int64_t rows, pitch, out_pitch;

  explicit InputPhases(const ConvProblem& p)
      : h(rows_of(p)),
        w(columns_of(p)),
        rows(h.outputs + h.reach()),
        pitch(in_vectors(w.outputs + w.reach())),
        out_pitch(in_vectors(w.outputs)) {}

  std::int64_t floats() const { return h.stride * w.stride * rows * pitch; }
  std::vector<TapGrid> grids() const {
    std::vector<TapGrid> grids;
    for (int a = 0; a < h.stride; ++a)
      for (int b = 0; b < w.stride; ++b)
        for (const TapLine& down : lines_of(h, a))
          for (const TapLine& across : lines_of(w, b))
            grids.push_back({phase_at(a, b) + down.offset * pitch + across.offset, down.count, across.count,
                             down.first * w.kernel + across.first, down.step * w.kernel, across.step});
    return grids;
  }
  // Where there is padding, `phases` is zero already.
  void fill(const float* plane, float* phases) const {
    for (int y = 0; y < h.size; ++y, plane += w.size) {
      const int row = (y + h.pad) / h.stride;
      if (row >= rows) break;
      for (int phase = 0; phase < w.stride; ++phase) {
        float* const to = phases + phase_at((y + h.pad) % h.stride, phase) + row * pitch;
        const int begin = (std::max(0, w.pad - phase) + w.stride - 1) / w.stride;
        const int end = std::min(w.outputs + w.reach(), (w.size + w.pad - phase + w.stride - 1) / w.stride);
        const float* const from = plane + phase - w.pad;
        if (w.stride == 1 && begin < end)
          copy_row(from + begin, nullptr, end - begin, to + begin);
        else
          for (int i = begin; i < end; ++i) to[i] = from[std::int64_t(i) * w.stride];
      }
    }
  }

 private:
  std::int64_t phase_at(int row_phase, int column_phase) const {
    return (row_phase * w.stride + column_phase) * rows * pitch;
  }
};

// A phase of x, and the taps that meet it.
struct PhaseTaps {
  int row, column;
  std::vector<TapGrid> grids = {};
};

// The gradient of y for backward_input, which computes a phase of x at a time, from where that may hold an element of
// x: what the taps of the phase meet lies in the gradient before that place, so the last tap comes first.
struct OutputGradient {
  Axis h, w;
  int first_row, first_column;  // of a phase
  int rows, columns;
  std::int64_t pitch, out_pitch;

  explicit OutputGradient(const ConvProblem& p)
      : h(rows_of(p)),
        w(columns_of(p)),
        first_row(h.pad / h.stride),
        first_column(w.pad / w.stride),
        rows((h.pad + h.size - 1) / h.stride - first_row + 1),
        columns((w.pad + w.size - 1) / w.stride - first_column + 1),
        pitch(in_vectors(columns + w.reach())),
        out_pitch(in_vectors(columns)) {}

  std::int64_t floats() const { return (rows + h.reach()) * pitch; }
  void fill(const float* plane, const float* mask, float* to) const {
    const int left = w.reach() - first_column, begin = std::max(0, -left);
    const int end = std::min(w.outputs, columns + w.reach() - left);
    if (begin >= end) return;
    for (int y = 0; y < h.outputs; ++y) {
      const int row = y + h.reach() - first_row;
      if (row < 0 || row >= rows + h.reach()) continue;
      const std::int64_t at = std::int64_t(y) * w.outputs + begin;
      copy_row(plane + at, mask == nullptr ? nullptr : mask + at, end - begin, to + row * pitch + left + begin);
    }
  }
  std::vector<PhaseTaps> phases() const {
    std::vector<PhaseTaps> phases;
    for (int a = 0; a < h.stride; ++a)
      for (int b = 0; b < w.stride; ++b) {
        PhaseTaps phase{a, b};
        for (const TapLine& down : lines_of(h, a))
          for (const TapLine& across : lines_of(w, b)) {
            const int last_row = down.offset + down.count - 1, last_column = across.offset + across.count - 1;
            const int last_tap = (down.first + (down.count - 1) * down.step) * w.kernel + across.first +
                                 (across.count - 1) * across.step;
            phase.grids.push_back({(h.reach() - last_row) * pitch + w.reach() - last_column, down.count, across.count,
                                   last_tap, -down.step * w.kernel, -across.step});
          }
        phases.push_back(std::move(phase));
      }
    return phases;
  }
  // What was computed of a phase goes to its places in x.
  void store(const PhaseTaps& phase, const float* computed, float* x) const {
    for (int r = 0; r < rows; ++r) {
      const int y = (r + first_row) * h.stride + phase.row - h.pad;
      if (y < 0 || y >= h.size) continue;
      const float* const from = computed + r * out_pitch;
      float* const to = x + std::int64_t(y) * w.size;
      const int first = first_column * w.stride + phase.column - w.pad;  // of x, may lie before it
      const int begin = first < 0 ? 1 : 0, end = std::min(columns, (w.size - first + w.stride - 1) / w.stride);
      if (w.stride == 1 && begin < end)
        copy_row(from + begin, nullptr, end - begin, to + first + begin);
      else
        for (int c = begin; c < end; ++c) to[first + std::int64_t(c) * w.stride] = from[c];
    }
  }
};

// Images whose gradients one thread adds up: the result does not depend on the number of threads.
constexpr int images_at_once = 8;

int slices_of(const ConvProblem& p) {
  return (p.batch + images_at_once - 1) / images_at_once;
}

// Two buffers per thread, each with slack after it: for padded planes, and for results or the gradient of y.
struct Buffers {
  std::int64_t in, out;
  std::int64_t floats() const { return in + out; }
};
Buffers buffers_for(const ConvProblem& p, ConvPass pass) {
  if (pass == ConvPass::backward_input) {
    const OutputGradient gradient(p);
    return {gradient.floats() + depthwise_slack, gradient.rows * gradient.out_pitch + depthwise_slack};
  }
  const InputPhases phases(p);
  const int above_and_below = pass == ConvPass::backward_weight ? 2 * rows_of_taps_at_once : 0;
  return {phases.floats() + depthwise_slack, (phases.h.outputs + above_and_below) * phases.out_pitch + depthwise_slack};
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
    const std::vector<TapGrid> grids = phases.grids();
    const float *const x = operands.x.read(), *const w = operands.w.read();
    const float* const bias = read_if_defined(operands.bias);
    float* const y = operands.y.write();
    const float least = operands.relu ? 0 : -std::numeric_limits<float>::infinity();
    for_each_with_buffers(planes(), buffers, scratch, [&](std::int64_t plane, float* in, float* out) {
      const std::int64_t channel = plane % p.channels;
      phases.fill(x + plane * input_floats(), in);
      kernels.sum_taps({grids.data(), static_cast<int>(grids.size()), phases.h.outputs, phases.w.outputs, in,
                        w + channel * taps(), phases.pitch, out, phases.out_pitch});
      const float added = bias != nullptr ? bias[channel] : 0;
      float* to = y + plane * output_floats();
      for (int row = 0; row < phases.h.outputs; ++row, to += phases.w.outputs) {
        const float* const from = out + row * phases.out_pitch;
#pragma omp simd
        for (int i = 0; i < phases.w.outputs; ++i) to[i] = from[i] + added < least ? 0 : from[i] + added;
      }
    });
  }

  void backward_input(ConvOperands& operands) const {
    const OutputGradient gradient(p);
    const float *const grad_y = operands.y.read(), *const w = operands.w.read();
    const float* const mask = read_if_defined(operands.mask);
    float* const grad_x = operands.x.write();
    const std::vector<PhaseTaps> phases = gradient.phases();
    for_each_with_buffers(planes(), buffers, scratch, [&](std::int64_t plane, float* in, float* out) {
      const std::int64_t at = plane * output_floats();
      gradient.fill(grad_y + at, mask == nullptr ? nullptr : mask + at, in);
      for (const PhaseTaps& phase : phases) {
        kernels.sum_taps({phase.grids.data(), static_cast<int>(phase.grids.size()), gradient.rows, gradient.columns, in,
                          w + plane % p.channels * taps(), gradient.pitch, out, gradient.out_pitch});
        gradient.store(phase, out, grad_x + plane * input_floats());
      }
    });
  }

  // Slices of the batch, each summed by one thread, and then the slices: `partial` is [slice][channel][tap, bias].
  void backward_weight(ConvOperands& operands, double* partial) const {
    const InputPhases phases(p);
    const std::vector<TapGrid> grids = phases.grids();
    const float *const x = operands.x.read(), *const grad_y = operands.y.read();
    const float* const mask = read_if_defined(operands.mask);
    const int slices = slices_of(p), sums_each = taps() + 1;
    const auto add_slice = [&](std::int64_t task, float* in, float* out) {
      const std::int64_t slice = task / p.channels, channel = task % p.channels;
      double bias = 0;
      std::vector<double> sums(static_cast<std::size_t>(taps()) * depthwise_vector);
      float* const gradient = out + rows_of_taps_at_once * phases.out_pitch;
      const std::int64_t end = std::min<std::int64_t>((slice + 1) * images_at_once, p.batch);
      for (std::int64_t image = slice * images_at_once; image < end; ++image) {
        const std::int64_t plane = image * p.channels + channel, at = plane * output_floats();
        phases.fill(x + plane * input_floats(), in);
        bias += copy_gradient(phases, grad_y + at, mask ? mask + at : nullptr, gradient);
        kernels.multiply_taps({grids.data(), static_cast<int>(grids.size()), phases.h.outputs, phases.w.outputs, in,
                               gradient, phases.pitch, phases.out_pitch, sums.data()});
      }
      double* const to = partial + task * sums_each;
      for (int tap = 0; tap < taps(); ++tap)
        to[tap] =
            std::accumulate(sums.begin() + tap * depthwise_vector, sums.begin() + (tap + 1) * depthwise_vector, 0.0);
      to[taps()] = bias;
    };
    for_each_with_buffers(std::int64_t(slices) * p.channels, buffers, scratch, add_slice);
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
  // To where the loops expect it; returns its sum.
  static double copy_gradient(const InputPhases& phases, const float* from, const float* mask, float* to) {
    double total = 0;
    for (int row = 0; row < phases.h.outputs; ++row, from += phases.w.outputs, to += phases.out_pitch) {
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
  return in_vectors(std::int64_t(slices_of(p)) * p.channels * (p.kernel_h * p.kernel_w + 1));
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
