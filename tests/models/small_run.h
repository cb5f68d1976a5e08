#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "framework/optimizers/optimizer.h"
#include "layers/sequential.h"
#include "tests/support/temp_path.h"

namespace twiddle {

// A layer that only holds parameters.
class Holder final : public Layer {
 public:
  Holder(const std::string& name, const std::vector<std::pair<std::string, Shape>>& parameters) : Layer(name, {3}) {
    for (const auto& [own_name, shape] : parameters) {
      Parameter parameter;
      parameter.name = own_name;
      parameter.shape = shape;
      add_parameter(std::move(parameter));
    }
  }
  Variable forward(Context&, const Variable& x) override { return x; }
};

// An optimizer whose step records the rate.
class Recorder final : public Optimizer {
 public:
  explicit Recorder(std::string kind = "recorder") : kind_(std::move(kind)) {}
  std::string kind() const override { return kind_; }
  std::string describe() const override { return kind_; }
  std::vector<std::string> state_names() const override { return {"mean"}; }
  void step(Context& ctx, std::vector<Parameter*>& parameters, const StepNumbers& numbers) override {
    const float rate = numbers.rate.to_vector(*ctx.stream).at(0);
    for (const Parameter* parameter : parameters) {
      Tensor& mean = state_.at(*ctx.stream, "mean." + parameter->name, parameter->shape);
      ctx.stream->fill(mean.write(), mean.size(), rate);
      Tensor& steps = state_.at(*ctx.stream, "steps." + parameter->name, {1});
      ctx.stream->fill(steps.write(), 1, rate);
    }
  }

 private:
  std::string kind_;
};

// A network of two layers and its optimizer, with all values one.
struct SmallRun {
  explicit SmallRun(std::int64_t width = 3) : net({1}) {
    const std::vector<std::pair<std::string, Shape>> parameters = {{"weight", {2, width}}, {"bias", {2}}};
    net.add("holder", std::make_unique<Holder>("conv1", parameters));
    net.add("holder", std::make_unique<Holder>("norm1", std::vector<std::pair<std::string, Shape>>{{"mean", {2}}}));
    set(0);
  }

  void set(float value) {
    for (Parameter* parameter : net.parameters())
      parameter->variable.value() = Tensor::filled(*ctx.stream, parameter->shape, value);
    std::vector<Parameter*> parameters = net.parameters();
    optimizer.step(ctx, parameters, {Tensor::filled(*ctx.stream, {1}, value), {}});
  }

  bool all_are(float value) const {
    const auto is_value = [value](float x) { return x == value; };
    const auto holds = [&](const Tensor& tensor) {
      const std::vector<float> values = tensor.to_vector(*ctx.stream);
      return std::all_of(values.begin(), values.end(), is_value);
    };
    const std::vector<Parameter*> parameters = net.parameters();
    const auto state = optimizer.state();
    return std::all_of(parameters.begin(), parameters.end(),
                       [&](const Parameter* parameter) { return holds(parameter->variable.value()); }) &&
           std::all_of(state.begin(), state.end(), [&](const auto& entry) { return holds(entry.second); });
  }

  Context ctx;
  Sequential net;
  Recorder optimizer;
};

// Returns a path for this test at which nothing exists yet.
inline std::string fresh_path(const std::string& name) {
  const std::string path = temp_path(name);
  std::filesystem::remove_all(path);
  return path;
}

}  // namespace twiddle
