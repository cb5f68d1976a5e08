#include "apps/verbs/iteration_timer.h"

#include <algorithm>
#include <chrono>

#include "apps/verbs/layer_profile.h"
#include "apps/verbs/network_facts.h"
#include "framework/error.h"
#include "framework/ranks/pack.h"
#include "layers/conv/tuned_convolution.h"
#include "layers/conv/tuner/trial.h"
#include "layers/conv/tuner/tuner.h"

namespace twiddle {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int warm_up_steps = 3, most_warm_up_steps = 12, most_steps = 10000, most_turns = 3;
constexpr std::size_t least_samples = 10;
constexpr double sample_ms = 30;
constexpr double steady_variation = 0.01;
constexpr double small_rate = 1e-6;  // so small that training cannot diverge; the rate does not affect the time

ConvPass pass_named(const std::string& part) {
  for (const ConvPass pass : every_pass)
    if (part == to_string(pass)) return pass;
  throw Error(join("a convolution has no pass '", part, "'"));
}

// Returns random class labels, or zeros: no labels or a black image.
Tensor some_targets(Stream& stream, const Loss& loss, std::int64_t batch, const Shape& output) {
  if (loss.target() != TargetKind::label) return Tensor::filled(stream, with_batch(batch, output), 0);
  const RandomSequence random{1};
  std::vector<std::int32_t> labels;
  for (std::int64_t i = 0; i < batch; ++i) labels.push_back(static_cast<std::int32_t>(random.below(i, output.at(0))));
  return Tensor::from(stream, {batch}, labels);
}

}  // namespace

IterationTimer::IterationTimer(Context& ctx, const Model& model, const Loss& loss, Optimizer& optimizer,
                               std::int64_t batch, Communicator& ranks)
    : ctx_(ctx), model_(model), loss_(loss), optimizer_(optimizer), ranks_(ranks) {
  const Shape shape = with_batch(batch, model.net->input_shape());
  const RandomSequence random{1};
  std::vector<float> pixels(static_cast<std::size_t>(count_of(shape)));
  const auto count = static_cast<std::int64_t>(pixels.size());
#pragma omp parallel for schedule(static)
  for (std::int64_t i = 0; i < count; ++i) pixels[static_cast<std::size_t>(i)] = random.normal(i);
  batch_.images = Tensor::from(*ctx.stream, shape, pixels);
  batch_.targets = some_targets(*ctx.stream, loss, batch, model.net->output_shape());
  model.net->initialize(ctx);
}

// Returns rank 0's number on all ranks, because all ranks must run the same number of steps.
int IterationTimer::as_rank_0(int number) {
  return ranks_.size() == 1 ? number : unpack<int>(ranks_.gather(pack(number)).front());
}

std::int64_t IterationTimer::allocated() const {
  return ctx_.stream->memory().system_allocations;
}

void IterationTimer::run(TrainStep& step) {
  batch_.images.write();  // invalidates spectra from the previous step, because the images stay the same
  step.run(batch_, small_rate);
}

IterationTimes IterationTimer::whole_iterations(double seconds, int steps, bool capture, bool together) {
  const std::int64_t images = batch_.images.dim(0);
  if (together) batch_.rows = {ranks_.rank() * images, ranks_.size() * images};
  StepOptions options{.capture = capture, .events = true, .ranks = together ? &ranks_ : nullptr};
  if (model_.convolutions->policy().precision == Precision::fp16) options.loss_scale = {LossScale::first, true};
  TrainStep step(ctx_, *model_.net, loss_, optimizer_, options);
  IterationTimes warm;
  warm_up(step, warm);
  if (capture) warm.why_not_captured = step.why_not_captured();
  // Repeats the timing if a step allocated memory. That happens rarely, if a step finds a different amount of free
  // memory than the previous one.
  for (int turn = 1;; ++turn) {
    IterationTimes times = warm;
    time_steps(step, seconds, steps, times);
    if (turn == most_turns || !any(ranks_, times.allocations > 0)) return times;
  }
}

// Warms up until a step allocates nothing more from the driver. If spectra fill their budget, a step leaves other
// spectra than it found. Then several steps pass before the pool is full.
void IterationTimer::warm_up(TrainStep& step, IterationTimes& times) {
  std::int64_t before = 0;
  const auto still_fills = [&] { return any(ranks_, allocated() != before); };
  while (times.warm_up < warm_up_steps || (times.warm_up < most_warm_up_steps && still_fills())) {
    before = allocated();
    run(step);
    ++times.warm_up;
  }
  times.captured = step.captured();
}

void IterationTimer::time_steps(TrainStep& step, double seconds, int steps, IterationTimes& times) {
  sample(
      seconds, steps, times, [&] { run(step); },
      [&] {
        const StepEvents& events = step.events();
        times.forward.samples.push_back(events.forward->milliseconds_since(*events.start));
        times.backward.samples.push_back(events.backward->milliseconds_since(*events.forward));
        times.update.samples.push_back(events.update->milliseconds_since(*events.backward));
      });
}

void IterationTimer::sample(double seconds, int steps, IterationTimes& times, const std::function<void()>& step,
                            const std::function<void()>& after) {
  Stream& stream = *ctx_.stream;
  stream.reset_peak();
  // On a GPU, a sample is many steps without synchronization, as in training. If `steps` is given, each step is a
  // sample.
  if (steps == 0 && stream.device().kind != Device::Kind::cpu)
    times.steps_a_sample =
        as_rank_0(std::clamp(static_cast<int>(sample_ms / std::max(time_in_a_row(stream, 1, step), 1e-3)), 1, 100));
  FrequencyBuffers* const spectra = spectra_of(*model_.convolutions);
  if (spectra) spectra->reset_use();  // excludes what ran before
  const std::int64_t allocations = allocated(), waits = stream.synchronizations();
  const Clock::time_point end =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  const int most = steps > 0 ? steps : most_steps;
  for (int done = 0; done < most; done += times.steps_a_sample) {
    times.whole.samples.push_back(time_in_a_row(stream, times.steps_a_sample, step));
    after();
    if (steps > 0 || times.whole.samples.size() < least_samples) continue;
    times.steady = as_rank_0(times.whole.variation() < steady_variation ? 1 : 0) != 0;
    if (times.steady || as_rank_0(Clock::now() > end ? 1 : 0) != 0) break;
  }
  times.allocations = allocated() - allocations;
  times.waits = stream.synchronizations() - waits;
  times.memory = stream.memory();
  if (spectra) times.spectra = spectra->use();
}

IterationTimes IterationTimer::forward_passes(double seconds, int steps, bool capture) {
  const EvaluationMode evaluates(ctx_);
  IterationTimes times;
  const auto pass = [this] {
    batch_.images.write();  // invalidates spectra from the previous pass, because the images stay the same
    model_.net->forward(ctx_, Variable(batch_.images));
  };
  for (; times.warm_up < warm_up_steps; ++times.warm_up) pass();
  const std::unique_ptr<Graph> graph = capture ? this->capture(pass, times.why_not_captured) : nullptr;
  times.captured = graph != nullptr;
  sample(
      seconds, steps, times,
      [&] {
        if (graph)
          graph->replay();
        else
          pass();
      },
      [] {});
  return times;
}

// Null if it is impossible.
std::unique_ptr<Graph> IterationTimer::capture(const std::function<void()>& pass, std::string& why_not) try {
  // The graph must not read spectra whose memory it does not hold, and no later pass can use those that it computes.
  const auto forget_spectra = [this] {
    for (const TunedConvolution* convolution : model_.net->convolutions()) convolution->tuner().forget();
  };
  forget_spectra();
  std::unique_ptr<Graph> graph = ctx_.stream->capture([&] {
    pass();
    forget_spectra();
  });
  if (!graph) why_not = "the device captures no graphs";
  return graph;
} catch (const Error& error) {
  why_not = error.what();
  return nullptr;
}

std::vector<LayerTime> IterationTimer::layer_by_layer(int steps) {
  ctx_.profiler.clear();
  ctx_.profiler.enable(true);
  TrainStep step(ctx_, *model_.net, loss_, optimizer_, {.capture = false});
  for (int i = 0; i < steps; ++i) run(step);
  ctx_.profiler.enable(false);
  std::vector<LayerTime> rows;
  for (const auto& [layer, part] : layer_passes(*model_.net)) {
    const std::vector<const TunedConvolution*> held = layer->convolutions();
    const TunedConvolution* const convolution = held.empty() ? nullptr : held.front();
    for (const Profiler::Entry& entry : ctx_.profiler.entries()) {
      if (entry.name != layer->name() || entry.part != part) continue;
      LayerTime row{entry.name, part, "", "", "", Timing{entry.milliseconds}.quantile(0.5)};
      const bool product = row.pass != "backward_bias";
      if (product) row.flops = layer->flops() * static_cast<double>(batch_.images.dim(0));
      if (convolution != nullptr && product) {
        const ConvPass pass = convolution->pass_for(pass_named(part));
        const ConvProblem problem = convolution->problem(batch_.images.dim(0));
        const ConvTuner::Choice& choice = model_.convolutions->choose(ctx_, problem, pass, convolution->engine());
        const ConvPlan::Facts& plan = choice.plan->facts();
        row.engine = plan.engine;
        row.plan = plan.name;
        row.reason = choice.reason;
        row.workspace = plan.scratch_bytes;
        row.error = measure(ctx_, *choice.plan, problem, pass, 0).error;
      }
      rows.push_back(row);
    }
  }
  return rows;
}

}  // namespace twiddle
