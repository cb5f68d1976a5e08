// Memory-bound layers on the largest tensors of AlexNet, other networks' max pooling, and padding and cropping for
// cuFFT: their time compared with that of a copy of the same number of bytes. Every call of a sample uses separate
// tensors, so that no cache holds them. Prints a Markdown table. usage: twiddle_memory_bench [DEVICE [BATCH [CALLS]]]
// cuda, 128, 16; on the CPU 2 images and 2 calls
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "fft/cuda/cufft/pad_and_crop.h"
#include "framework/config/params.h"
#include "framework/error.h"
#include "framework/optimizers/optimizer.h"
#include "layers/conv/engines/engines.h"
#include "layers/conv/engines/epilogue.h"
#include "layers/conv/tuner/tuner.h"
#include "layers/layer.h"

using namespace twiddle;

namespace {

using Options = std::vector<std::pair<std::string, std::string>>;

ConfigNode options_node(const Options& options) {
  ConfigNode node;
  node.kind = ConfigNode::Kind::mapping;
  for (const auto& [key, text] : options) {
    ConfigNode value;
    value.kind = ConfigNode::Kind::scalar, value.text = text;
    node.entries.push_back({key, {}, value});
  }
  return node;
}

Shape batch_of(std::int64_t images, const Shape& image) {
  Shape shape{images};
  shape.insert(shape.end(), image.begin(), image.end());
  return shape;
}

// Bytes that a call must read and write, in tensors of the layer's input and of its output.
struct Traffic {
  double inputs = 0, outputs = 0;
};

class MemoryBench {
 public:
  MemoryBench(const Device& device, int batch, int calls)
      : ctx_(device),
        convolutions_(make_conv_engines(device), ConvPolicy{}),
        batch_(batch),
        calls_(calls),
        busy_(*ctx_.stream, {device.kind == Device::Kind::cuda ? 1 << 28 : 1}) {
    std::printf("%s; batch %d, the median of %d samples of %d calls\n\n", describe(device).c_str(), batch, repeats,
                calls);
    std::printf("| what | of | MB | ms | TB/s | a copy, ms | %% of the copy |\n");
    std::printf("| --- | --- | ---: | ---: | ---: | ---: | ---: |\n");
  }

  void layer(const std::string& kind, const Options& options, const Shape& image, const Traffic& forward,
             const Traffic& backward);
  void bias_and_relu(const Shape& image);
  void update();
  // Images of planes with `pad` zeros around them, in a grid of side x side points.
  void pad_and_crop(const Shape& image, int pad, int side);

 private:
  static constexpr int repeats = 9;

  double sample_ms(const std::function<void()>& work);
  double median_ms(int calls, const std::function<void()>& work);
  std::vector<Tensor> tensors(const Shape& shape);
  double copy_ms(double bytes, int calls);
  void print(const std::string& what, const std::string& of, double bytes, double milliseconds, int calls);

  Context ctx_;
  ConvTuner convolutions_;
  int batch_, calls_;
  Tensor busy_;
};

// A pass over a large tensor goes first: while the device runs it, the host launches all of the work.
double MemoryBench::sample_ms(const std::function<void()>& work) {
  ctx_.stream->fill(busy_.write(), busy_.size(), 0);
  const std::shared_ptr<Event> start = ctx_.stream->record_event();
  work();
  return ctx_.stream->record_event()->milliseconds_since(*start);
}

double median(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

double MemoryBench::median_ms(int calls, const std::function<void()>& work) {
  sample_ms(work);
  std::vector<double> times;
  for (int repeat = 0; repeat < repeats; ++repeat) times.push_back(sample_ms(work));
  return median(times) / calls;
}

// A separate tensor of normally distributed values for every call.
std::vector<Tensor> MemoryBench::tensors(const Shape& shape) {
  std::vector<float> values(static_cast<std::size_t>(count_of(shape)));
  const RandomSequence random{1, 0};
#pragma omp parallel for
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = random.normal(static_cast<std::int64_t>(i));
  std::vector<Tensor> all{Tensor::from(*ctx_.stream, shape, values)};
  while (static_cast<int>(all.size()) < calls_) {
    all.emplace_back(*ctx_.stream, shape);
    ctx_.stream->copy(all.back().write(), all.front().read(), all.front().bytes());
  }
  return all;
}

double MemoryBench::copy_ms(double bytes, int calls) {
  std::vector<Tensor> from, to;
  for (int call = 0; call < calls; ++call) {
    from.push_back(Tensor::filled(*ctx_.stream, {static_cast<std::int64_t>(bytes / 2 / sizeof(float))}, 1));
    to.push_back(Tensor::filled(*ctx_.stream, from.back().shape(), 0));
  }
  return median_ms(calls, [&] {
    for (std::size_t i = 0; i < from.size(); ++i) ctx_.stream->copy(to[i].write(), from[i].read(), from[i].bytes());
  });
}

void MemoryBench::print(const std::string& what, const std::string& of, double bytes, double milliseconds, int calls) {
  ctx_.stream->release_unused();
  const double copy = copy_ms(bytes, calls);
  ctx_.stream->release_unused();
  std::printf("| %s | %s | %.1f | %.4f | %.3f | %.4f | %.1f |\n", what.c_str(), of.c_str(), bytes / 1e6, milliseconds,
              bytes / milliseconds / 1e9, copy, 100 * copy / milliseconds);
  std::fflush(stdout);
}

void MemoryBench::layer(const std::string& kind, const Options& options, const Shape& image, const Traffic& forward,
                        const Traffic& backward) {
  Diagnostics diagnostics;
  Params params(options_node(options), kind, diagnostics);
  const std::unique_ptr<Layer> layer = builtin_layers().make(kind, {"layer", image, convolutions_}, params);
  params.finish();
  diagnostics.throw_if_any();

  const Shape in = batch_of(batch_, image), out = batch_of(batch_, layer->output_shape());
  std::vector<double> forward_times, backward_times;
  {
    std::vector<Variable> inputs;
    for (const Tensor& x : tensors(in)) inputs.emplace_back(x, true);
    const std::vector<Tensor> gradients = tensors(out);
    for (int repeat = 0; repeat <= repeats; ++repeat) {  // the first warms up
      std::vector<Variable> outputs;
      const double there = sample_ms([&] {
        for (const Variable& x : inputs) outputs.push_back(layer->forward(ctx_, x));
      });
      const Variable loss =
          ctx_.tape.record("loss", Tensor::filled(*ctx_.stream, {1}, 0), outputs, [&](Context& ctx, const Tensor&) {
            for (std::size_t i = 0; i < outputs.size(); ++i) outputs[i].add_grad(ctx, gradients[i]);
          });
      const double back = sample_ms([&] { ctx_.tape.backward(ctx_, loss); });
      for (const Variable& x : inputs) x.clear_grad();
      if (repeat == 0) continue;
      forward_times.push_back(there), backward_times.push_back(back);
    }
  }
  const auto bytes = [&](const Traffic& traffic) {
    return sizeof(float) *
           (traffic.inputs * static_cast<double>(count_of(in)) + traffic.outputs * static_cast<double>(count_of(out)));
  };
  print(kind + " forward", to_string(in), bytes(forward), median(forward_times) / calls_, calls_);
  print(kind + " backward", to_string(in), bytes(backward), median(backward_times) / calls_, calls_);
}

void MemoryBench::bias_and_relu(const Shape& image) {
  const Shape shape = batch_of(batch_, image);
  double forward = 0, backward = 0;
  {
    const std::vector<Tensor> outputs = tensors(shape), gradients = tensors(shape);
    ConvOperands operands;
    operands.bias = Tensor::filled(*ctx_.stream, {image[0]}, 0.01f);
    operands.relu = true;
    forward = median_ms(calls_, [&] {
      for (const Tensor& y : outputs) {
        operands.y = y;
        add_bias_and_relu(*ctx_.stream, operands);
      }
    });
    std::vector<Tensor> passed;
    backward = median_ms(calls_, [&] {
      passed = gradients;
      for (std::size_t i = 0; i < passed.size(); ++i)
        relu_and_bias_backward(*ctx_.stream, outputs[i], true, true, passed[i]);
    });
  }
  const double bytes = sizeof(float) * static_cast<double>(count_of(shape));
  print("bias and relu forward", to_string(shape), 2 * bytes, forward, calls_);
  print("bias and relu backward", to_string(shape), 3 * bytes, backward, calls_);
}

void MemoryBench::update() {
  const std::vector<std::pair<Shape, std::int64_t>> weights_and_biases = {
      {{64, 3, 11, 11}, 64},   {{192, 64, 5, 5}, 192}, {{384, 192, 3, 3}, 384}, {{256, 384, 3, 3}, 256},
      {{256, 256, 3, 3}, 256}, {{4096, 9216}, 4096},   {{4096, 4096}, 4096},    {{1000, 4096}, 1000}};
  Diagnostics diagnostics;
  Params params(options_node({{"momentum", "0.9"}, {"weight_decay", "5e-4"}}), "sgd", diagnostics);
  double milliseconds = 0, count = 0;
  {
    const std::unique_ptr<Optimizer> sgd = builtin_optimizers().make("sgd", params);
    std::deque<Parameter> parameters;
    std::vector<Parameter*> all;
    const auto add = [&](const Shape& shape) {
      Parameter& parameter = parameters.emplace_back();
      parameter.name = join(parameters.size()), parameter.shape = shape;
      parameter.variable.value() = Tensor::filled(*ctx_.stream, shape, 0.1f);
      parameter.variable.grad() = Tensor::filled(*ctx_.stream, shape, 0.01f);
      all.push_back(&parameter);
      count += static_cast<double>(count_of(shape));
    };
    for (const auto& [weight, bias] : weights_and_biases) add(weight), add({bias});
    const StepNumbers numbers{Tensor::filled(*ctx_.stream, {1}, 0.01f), Tensor::filled(*ctx_.stream, {1}, 1)};
    milliseconds = median_ms(1, [&] { sgd->step(ctx_, all, numbers); });
  }
  print("sgd with momentum", join(count / 1e6, " million parameters"), 5 * sizeof(float) * count, milliseconds, 1);
}

void MemoryBench::pad_and_crop(const Shape& image, int pad, int side) {
  const std::int64_t channels = image[0], size = image[1] * image[2], count = batch_ * channels;
  Planes planes;
  planes.rows = batch_, planes.columns = channels;
  planes.row_stride = channels * size, planes.column_stride = size;
  planes.height = static_cast<int>(image[1]), planes.width = static_cast<int>(image[2]);
  planes.first_h = planes.first_w = -pad;
  planes.window_h = planes.window_w = side;
  planes.grid = {side, side, 1, 1, side, side};
  const std::int64_t padded_size = std::int64_t(side) * padded_width(planes.grid);
  Stream& stream = *ctx_.stream;
  double padding = 0, cropping = 0, finishing = 0;
  {
    const std::vector<Tensor> sources = tensors(batch_of(batch_, image));
    std::vector<Tensor> padded, targets;
    for (int call = 0; call < calls_; ++call) {
      padded.emplace_back(stream, Shape{count, padded_size});
      targets.emplace_back(stream, sources.front().shape());
    }
    const Tensor bias = Tensor::filled(stream, {channels}, 0.01f);
    padding = median_ms(calls_, [&] {
      for (std::size_t i = 0; i < sources.size(); ++i)
        pad_planes(stream, planes, 0, count, sources[i].read(), padded[i].write());
    });
    const auto crop = [&](const PlaneEpilogue& epilogue) {
      for (std::size_t i = 0; i < sources.size(); ++i)
        crop_planes(stream, planes, 0, count, padded[i].read(), targets[i].write(), epilogue);
    };
    cropping = median_ms(calls_, [&] { crop({}); });
    finishing = median_ms(calls_, [&] { crop({bias.read(), true}); });
  }
  const std::string of = join(to_string(batch_of(batch_, image)), ", ", side, "x", side);
  const double bytes = sizeof(float) * static_cast<double>(count * size);
  print("pad", of, bytes + sizeof(float) * static_cast<double>(count * padded_size), padding, calls_);
  print("crop", of, 2 * bytes, cropping, calls_);
  print("crop, bias and relu", of, 2 * bytes, finishing, calls_);
}

void run(const Device& device, int batch, int calls) {
  MemoryBench bench(device, batch, calls);
  const Shape conv1{64, 55, 55}, conv2{192, 27, 27};
  for (const Shape& image : {conv1, conv2}) {
    const Options window{{"kernel", "3"}, {"stride", "2"}};
    bench.layer("max_pool", window, image, {1, 2}, {1, 2});  // where each maximum was found is as large as the output
    bench.layer("avg_pool", window, image, {1, 1}, {1, 1});
    bench.bias_and_relu(image);
    bench.layer("relu", {}, image, {1, 1}, {1, 2});
    bench.layer("dropout", {{"rate", "0.5"}}, image, {1, 1}, {1, 1});
    bench.layer("local_response_norm", {}, image, {1, 1}, {2, 1});
  }
  bench.layer("max_pool", {{"kernel", "2"}}, {96, 56, 56}, {1, 2}, {1, 2});     // OverFeat fast
  bench.layer("max_pool", {{"kernel", "3"}}, {96, 108, 108}, {1, 2}, {1, 2});   // OverFeat accurate
  bench.layer("max_pool", {{"kernel", "2"}}, {128, 112, 112}, {1, 2}, {1, 2});  // VGG-A
  bench.update();
  if (device.kind == Device::Kind::cpu) return;
  bench.pad_and_crop({64, 64, 64}, 0, 72);  // layers of the fbfft paper's table 4: L2b and L3
  bench.pad_and_crop({128, 32, 32}, 0, 32);
  bench.pad_and_crop({128, 32, 32}, 4, 40);
  bench.pad_and_crop({96, 27, 27}, 2, 30);  // AlexNet's conv2, and conv3
  bench.pad_and_crop({256, 13, 13}, 1, 14);
}

}  // namespace

int main(int argc, char** argv) try {
  const Device device = parse_device(argc > 1 ? argv[1] : "cuda");
  const bool gpu = device.kind == Device::Kind::cuda;
  const int batch = argc > 2 ? std::atoi(argv[2]) : (gpu ? 128 : 2),
            calls = argc > 3 ? std::atoi(argv[3]) : (gpu ? 16 : 2);
  require(batch > 0 && calls > 0, "BATCH and CALLS are 1 or more");
  run(device, batch, calls);
  return 0;
} catch (const Error& error) {
  std::fprintf(stderr, "error: %s\n", error.what());
  return static_cast<int>(error.kind());
}
