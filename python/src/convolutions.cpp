#include "python/src/convolutions.h"

#include <omp.h>
#include <torch/csrc/stable/ops.h>

#include <cstdlib>
#include <iostream>
#include <memory>
#include <vector>

#include "framework/error.h"
#include "layers/conv/engines.h"
#include "python/src/torch_stream.h"

namespace twiddle {

namespace {

void tell(const std::string& message) {
  std::cerr << "twiddle_torch: " + message + "\n";
}

// Set by twiddle_torch/__init__.py, where the user has not.
std::string cache_file() {
  const char* const file = std::getenv("TWIDDLE_TORCH_CACHE");
  return file != nullptr ? file : "";
}

// As many threads as PyTorch would take in this thread.
void follow_thread_count() {
  const auto wanted = static_cast<int>(torch::stable::get_num_threads());
  if (omp_get_max_threads() != wanted) omp_set_num_threads(wanted);
}

// For the rest of the process: at its end CUDA may be gone before what is destroyed.
struct Devices {
  std::mutex mutex;
  std::map<std::pair<Device::Kind, int>, std::unique_ptr<Convolutions>> of;
};
Devices& devices() {
  static auto& all = *new Devices;
  return all;
}

}  // namespace

std::size_t HashOfCall::operator()(const ConvCall& call) const {
  std::uint64_t hash = static_cast<std::uint64_t>(call.manner) * 2 + call.bias;
  const auto mix = [&](std::int64_t size) { hash = (hash ^ static_cast<std::uint64_t>(size)) * 0x9e3779b97f4a7c15; };
  for (const auto* sizes : {&call.x, &call.weight})
    for (const std::int64_t size : *sizes) mix(size);
  return static_cast<std::size_t>(hash >> 16);
}

Convolutions::Convolutions(Device device) {
  ctx_.stream = make_torch_stream(device);
  ctx_.training = false;  // each pass is chosen, and leaves memory, as if no other followed
}

void Convolutions::run(const ConvProblem& problem, ConvPass pass, const ConvWish& wish, ConvOperands& operands) {
  const std::lock_guard lock(mutex_);
  run(chosen({{problem, pass}, wish}), operands);
}

Convolutions::Known* Convolutions::find(const ConvCall& call) {
  const std::lock_guard lock(mutex_);
  const auto found = known_.find(call);
  return found == known_.end() ? nullptr : &found->second;
}

Convolutions::Known& Convolutions::remember(const ConvCall& call, const ConvProblem& problem, const ConvWish& wish) {
  const std::lock_guard lock(mutex_);
  return known_
      .try_emplace(call, Known{problem, wish, problem.input_shape(), problem.weight_shape(), problem.output_shape()})
      .first->second;
}

void Convolutions::run(Known& known, ConvPass pass, ConvOperands& operands) {
  const std::lock_guard lock(mutex_);
  const Chosen*& here = known.chosen[static_cast<std::size_t>(pass)];
  if (here == nullptr) here = &chosen({{known.problem, pass}, known.wish});
  run(*here, operands);
}

void Convolutions::run(const Chosen& here, ConvOperands& operands) {
  if (ctx_.stream->device().kind == Device::Kind::cpu) follow_thread_count();
  here.plan->run(ctx_, operands);
  operands = {};  // PyTorch's again, and with them their spectra go
  for (ConvEngine* const engine : here.by->engines) engine->forget_gone();
}

const Convolutions::Chosen& Convolutions::chosen(const Key& key) {
  const auto known = chosen_.find(key);
  if (known != chosen_.end()) return known->second;
  const auto& [problem, pass] = key.first;
  const ConvWish& wish = key.second;
  if (is_capturing(*ctx_.stream))
    throw Error(ErrorKind::config, join("no plan has been chosen yet for ", to_string(pass), " of ", to_string(problem),
                                        ", which cannot be done while a CUDA graph is captured: run the step once "
                                        "before the capture, as torch.cuda.graph asks for"));
  Chooser& by = chooser(wish);
  const ConvTuner::Choice& choice = by.tuner.choose(ctx_, problem, pass, wish.engine);
  return chosen_.emplace(key, Chosen{choice.plan, choice.reason, &by}).first->second;
}

Convolutions::Chooser::Chooser(ConvTuner made) : tuner(std::move(made)) {
  for (const std::string& name : tuner.names()) engines.push_back(&tuner.engine(name));
}

Convolutions::Chooser& Convolutions::chooser(const ConvWish& wish) {
  const std::pair limits{wish.workspace_limit, wish.deterministic};
  const auto known = choosers_.find(limits);
  if (known != choosers_.end()) return known->second;
  ConvPolicy policy{.workspace_limit = wish.workspace_limit,
                    .frequency_budget = wish.workspace_limit,
                    .deterministic = wish.deterministic,
                    .cache_file = cache_file(),
                    .warn = tell,
                    .build = TWIDDLE_TORCH_BUILD,
                    .measuring = std::make_shared<Measuring>(tell)};
  const ConvEngineOptions options{wish.workspace_limit, wish.workspace_limit};
  ConvTuner made(make_conv_engines(ctx_.stream->device(), options), std::move(policy));
  return choosers_.try_emplace(limits, std::move(made)).first->second;
}

std::string Convolutions::choices() {
  const std::lock_guard lock(mutex_);
  std::string text;
  for (const auto& [key, found] : chosen_) {
    const auto& [problem, pass] = key.first;
    text += join(to_string(ctx_.stream->device()), "\t", to_string(problem), "\t", to_string(problem.precision), "\t",
                 to_string(pass), "\t", full_name(*found.plan), "\t", found.reason, "\n");
  }
  return text;
}

Convolutions& convolutions_of(Device device) {
  Devices& all = devices();
  const std::lock_guard lock(all.mutex);
  auto& mine = all.of[{device.kind, device.index}];
  if (mine == nullptr) mine = std::make_unique<Convolutions>(device);
  return *mine;
}

std::string all_choices() {
  Devices& all = devices();
  const std::lock_guard lock(all.mutex);
  std::string text;
  for (const auto& [device, convolutions] : all.of) text += convolutions->choices();
  return text;
}

}  // namespace twiddle
