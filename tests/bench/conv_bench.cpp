// Convolutions of lenet, cifar10 and AlexNet, and of large kernels, every pass: our engines against oneDNN in its
// fastest layout, including the reorders that plain NCHW tensors need. Prints a Markdown table. usage:
// twiddle_conv_bench [MILLISECONDS PER ROW [PART OF THE LAYERS' NAMES]]
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <limits>
#include <string>
#include <unordered_map>
#include <vector>

#include "apps/bench/bench_layers.h"
#include "framework/context.h"
#include "framework/convolution.h"
#include "framework/error.h"
#include "layers/conv/engines/engines.h"
#include "layers/conv/engines/onednn_shim.h"
#include "layers/conv/tuner/autotuner.h"

using namespace twiddle;
using dnnl::memory;

namespace {

std::vector<BenchLayer> all_layers() {
  std::vector<BenchLayer> all{{"lenet conv1", square_problem(64, 1, 20, 28, 5)},
                              {"lenet conv2", square_problem(64, 20, 50, 12, 5)},
                              {"cifar10 conv1", square_problem(64, 3, 32, 32, 3, 1, 1)},
                              {"cifar10 conv2", square_problem(64, 32, 64, 16, 3, 1, 1)},
                              {"cifar10 conv3", square_problem(64, 64, 128, 8, 3, 1, 1)}};
  for (BenchLayer layer : alexnet_layers()) {
    layer.problem.batch = 16;
    all.push_back({"alexnet conv" + layer.name.substr(4), layer.problem});
  }
  for (const int channels : {32, 64, 128})
    for (const int plane : {16, 28, 56})
      for (const int kernel : {3, 5, 7, 9})
        all.push_back({join("large ", channels, " channels ", plane, "x", plane, " k=", kernel),
                       square_problem(32, channels, channels, plane, kernel, 1, kernel / 2)});
  return all;
}

// One pass by oneDNN alone: tensors in plain NCHW are reordered to the tested layout and back, and nothing is cached.
class Bare {
 public:
  Bare(const ConvProblem& p, ConvPass pass, memory::format_tag tag, ConvOperands& operands)
      : engine_(dnnl::engine::kind::cpu, 0), stream_(engine_) {
    using Tag = memory::format_tag;
    const auto describe = [](const Shape& shape, Tag of) { return memory::desc(shape, memory::data_type::f32, of); };
    const onednn::Tensors tensors{describe(p.input_shape(), tag), describe(p.weight_shape(), Tag::any),
                                  describe(p.output_shape(), tag),
                                  pass == ConvPass::forward ? describe({p.filters}, Tag::x) : memory::desc()};
    const dnnl::primitive_desc chosen =
        onednn::plan(engine_, whole(p), pass, dnnl::algorithm::convolution_direct, tensors, dnnl::primitive_attr());
    if (!chosen) return;
    convolution_ = dnnl::primitive(chosen);
    const auto side = [&](const Tensor& tensor, Tag plain_tag, int argument, bool written) {
      const memory::desc wanted = chosen.query_md(dnnl::query::exec_arg_md, argument);
      const memory plain(describe(tensor.shape(), plain_tag), engine_, const_cast<float*>(tensor.read()));
      memory used = plain;
      if (wanted != plain.get_desc()) {
        used = memory(wanted, engine_);
        if (written)
          after_.push_back({dnnl::reorder(used, plain), used, plain});
        else
          before_.push_back({dnnl::reorder(plain, used), plain, used});
      }
      arguments_[argument] = used;
    };
    const bool x = pass == ConvPass::backward_input, w = pass == ConvPass::backward_weight,
               y = pass == ConvPass::forward;
    side(operands.x, Tag::nchw, x ? DNNL_ARG_DIFF_SRC : DNNL_ARG_SRC, x);
    side(operands.w, Tag::oihw, w ? DNNL_ARG_DIFF_WEIGHTS : DNNL_ARG_WEIGHTS, w);
    side(operands.y, Tag::nchw, y ? DNNL_ARG_DST : DNNL_ARG_DIFF_DST, y);
    if (y) arguments_[DNNL_ARG_BIAS] = memory(tensors.bias, engine_, const_cast<float*>(operands.bias.read()));
  }
  explicit operator bool() const { return bool(convolution_); }
  void run() {
    for (const Reorder& reorder : before_) reorder.run(stream_);
    convolution_.execute(stream_, arguments_);
    for (const Reorder& reorder : after_) reorder.run(stream_);
    stream_.wait();
  }

 private:
  struct Reorder {
    dnnl::reorder primitive;
    memory from, to;
    void run(dnnl::stream& stream) const { primitive.execute(stream, {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}}); }
  };
  dnnl::engine engine_;
  dnnl::stream stream_;
  dnnl::primitive convolution_;
  std::vector<Reorder> before_, after_;
  std::unordered_map<int, memory> arguments_;
};

struct Alternative {
  std::string name;
  std::function<void()> run;
  double best = std::numeric_limits<double>::infinity();  // ms
};

// Runs each alternative once per round, so that a busy moment of the machine affects all of them the same way.
void time_all(std::vector<Alternative>& alternatives, double budget_ms) {
  using Clock = std::chrono::steady_clock;
  for (const Alternative& alternative : alternatives) alternative.run();
  double total = 0;
  for (int round = 0; round < 400 && (round < 3 || total < budget_ms); ++round)
    for (Alternative& alternative : alternatives) {
      const Clock::time_point start = Clock::now();
      alternative.run();
      const double taken = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
      alternative.best = std::min(alternative.best, taken);
      total += taken;
    }
}

Tensor ramp(Stream& stream, const Shape& shape) {
  std::vector<float> values(static_cast<std::size_t>(count_of(shape)));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i * 7919 % 1000) * 1e-3f - 0.5f;
  return Tensor::from(stream, shape, values);
}

struct Row {
  double onednn_itself = 0, onednn = 0, fft = 0, gflop = 0;
};

StepPlans fastest_by_spectra(Context& ctx, const std::vector<std::unique_ptr<ConvEngine>>& engines,
                             const ConvProblem& problem) {
  StepPlans plans;
  for (const auto& engine : engines) {
    if (engine->name() != "fft") continue;
    const std::vector<ConvPass> passes(std::begin(every_pass), std::end(every_pass));
    const AutotunerResult result =
        Autotuner(ctx, problem, passes, {engine.get()}, {.workspace_limit = std::size_t(4) << 30}).run();
    for (const ConvPass pass : every_pass) plans[index_of(pass)] = result.passes[index_of(pass)].winner;
  }
  return plans;
}

Row race_row(Context& ctx, const std::vector<std::unique_ptr<ConvEngine>>& engines, const StepPlans& spectral,
             const std::string& name, const ConvProblem& problem, ConvPass pass, double budget_ms) {
  ConvOperands operands{ramp(*ctx.stream, problem.input_shape()),
                        ramp(*ctx.stream, problem.weight_shape()),
                        ramp(*ctx.stream, problem.output_shape()),
                        {}};
  if (pass == ConvPass::forward) operands.bias = ramp(*ctx.stream, {problem.filters});
  std::vector<Bare> bare;
  std::vector<Alternative> alternatives;
  bare.reserve(3);
  for (const auto& [layout, tag] : {std::pair{"any", memory::format_tag::any},
                                    {"nchw", memory::format_tag::nchw},
                                    {"nhwc", memory::format_tag::nhwc}}) {
    Bare& made = bare.emplace_back(problem, pass, tag, operands);
    if (made) alternatives.push_back({layout, [&made] { made.run(); }});
  }
  const auto ways = static_cast<std::ptrdiff_t>(alternatives.size());
  const auto add = [&](const std::string& name_of_it, const std::shared_ptr<const ConvPlan>& plan) {
    if (plan == nullptr) return;
    alternatives.push_back({name_of_it, [&, plan] {
                              for (Tensor* tensor : {&operands.x, &operands.w, &operands.y}) tensor->write();
                              plan->run(ctx, operands);
                            }});
  };
  for (const auto& engine : engines)
    if (engine->name() == "onednn") add("onednn", engine->plan(problem, pass, "direct"));
  add("fft", spectral[index_of(pass)]);
  time_all(alternatives, budget_ms);
  const auto best = std::min_element(alternatives.begin(), alternatives.begin() + ways,
                                     [](const auto& a, const auto& b) { return a.best < b.best; });
  Row row{best->best, alternatives[static_cast<std::size_t>(ways)].best, 0, problem.flops() * 1e-9};
  if (alternatives.back().name == "fft") row.fft = alternatives.back().best;
  std::printf("| %s | %s | %.2f | %s | %.3f | %.3f | %.2f | ", name.c_str(), std::string(to_string(pass)).c_str(),
              row.gflop, best->name.c_str(), row.onednn_itself, row.onednn, row.onednn / row.onednn_itself);
  if (row.fft > 0)
    std::printf("%.3f | %.2f |\n", row.fft, row.onednn_itself / row.fft);
  else
    std::printf("- | |\n");
  std::fflush(stdout);
  return row;
}

}  // namespace

int main(int argc, char** argv) {
  const double budget_ms = argc > 1 ? std::atof(argv[1]) : 1000;  // a row
  const std::string only = argc > 2 ? argv[2] : "";
  Context ctx;
  const auto engines = make_conv_engines({});
  std::printf("%s; best of at least 3 rounds; `oneDNN` is the fastest layout with its reorders\n\n",
              describe(Device{}).c_str());
  std::printf("| layer | pass | GFLOP | oneDNN layout | oneDNN ms | onednn ms | ratio | fft ms | oneDNN / fft |\n");
  std::printf("| --- | --- | ---: | --- | ---: | ---: | ---: | ---: | ---: |\n");
  for (const BenchLayer& layer : all_layers()) {
    if (layer.name.find(only) == std::string::npos) continue;
    const StepPlans spectral = fastest_by_spectra(ctx, engines, layer.problem);
    Row sum;
    for (const ConvPass pass : every_pass) {
      const Row row = race_row(ctx, engines, spectral, layer.name, layer.problem, pass, budget_ms);
      sum.onednn_itself += row.onednn_itself, sum.onednn += row.onednn, sum.fft += row.fft, sum.gflop += row.gflop;
    }
    if (sum.fft == 0) continue;
    // As in a training step, where the passes share spectra.
    const double together = StepTrial(ctx, layer.problem).time(spectral, budget_ms).total();
    std::printf("| **%s** | in a step | %.2f | | %.3f | %.3f | %.2f | %.3f | **%.2f** |\n", layer.name.c_str(),
                sum.gflop, sum.onednn_itself, sum.onednn, sum.onednn / sum.onednn_itself, together,
                sum.onednn_itself / together);
  }
}
