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
  auto hash =
      static_cast<std::uint64_t>(call.arguments * 8 + call.bias * 4 + call.input_gradient * 2 + call.weight_gradient);
  for (const auto* sizes : {&call.x, &call.weight})
    for (const std::int64_t size : *sizes) hash = (hash ^ static_cast<std::uint64_t>(size)) * 0x9e3779b97f4a7c15;
  return static_cast<std::size_t>(hash >> 16);
}

Convolutions::Convolutions(Device device) {
  ctx_.stream = make_torch_stream(device);
}

Convolutions::Known* Convolutions::find(const ConvCall& call) {
  const std::lock_guard lock(mutex_);
  const auto found = known_.find(call);
  return found == known_.end() ? nullptr : &found->second;
}

Convolutions::Known& Convolutions::remember(const ConvCall& call, ConvProblem problem, const ConvOptions& options) {
  const std::lock_guard lock(mutex_);
  const bool trains = call.input_gradient || call.weight_gradient;
  if (trains) problem.input_gradient = call.input_gradient, problem.weight_gradient = call.weight_gradient;
  Known known{problem, options, trains, problem.input_shape(), problem.weight_shape(), problem.output_shape()};
  return known_.try_emplace(call, std::move(known)).first->second;
}

void Convolutions::run(Known& known, ConvPass pass, ConvOperands& operands) {
  const std::lock_guard lock(mutex_);
  run(chosen(known, pass), operands);
}

std::int64_t Convolutions::run_forward(Known& known, ConvOperands& operands) {
  const std::lock_guard lock(mutex_);
  const Chosen& forward = chosen(known, ConvPass::forward);
  const std::string& shares = forward.plan->facts().shares;
  bool helps = false;
  for (const ConvPass pass : {ConvPass::backward_input, ConvPass::backward_weight})
    if (known.problem.in_training(pass))  // all are chosen now, while the step holds little and a rehearsal finds room
      helps |= !shares.empty() && chosen(known, pass).plan->facts().shares == shares;
  if (helps) kept_[++last_kept_] = {operands.x, operands.w, is_capturing(*ctx_.stream)};
  run(forward, operands);
  return helps ? last_kept_ : 0;
}

void Convolutions::recall(std::int64_t number, ConvOperands& operands) {
  const std::lock_guard lock(mutex_);
  const auto found = kept_.find(number);
  if (found == kept_.end() || found->second.captured != is_capturing(*ctx_.stream)) return;
  const auto take = [](const Tensor& kept, Tensor& tensor) {
    if (tensor.read() == kept.read()) tensor = kept;
  };
  take(found->second.x, operands.x), take(found->second.w, operands.w);
}

// Whoever calls may be anywhere, as Python collects its garbage when it likes: also where the mutex is held. Then the
// next call gives the memory back.
void Convolutions::release(std::int64_t number) {
  {
    const std::lock_guard lock(release_mutex_);
    released_.push_back(number);
  }
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (lock.owns_lock()) forget_released();
}

void Convolutions::forget_released() {
  std::vector<std::int64_t> released;
  {
    const std::lock_guard lock(release_mutex_);
    released.swap(released_);
  }
  for (const std::int64_t number : released) kept_.erase(number);
  for (auto& [limits, chooser] : choosers_)
    for (ConvEngine* const engine : chooser.engines) engine->forget_gone();
}

std::int64_t Convolutions::kept() {
  const std::lock_guard lock(mutex_);
  forget_released();
  return static_cast<std::int64_t>(kept_.size());
}

void Convolutions::run(const Chosen& here, ConvOperands& operands) {
  here.plan->run(ctx_, operands);
  operands = {};  // PyTorch's again, and with them their spectra go, but those that are kept
  forget_released();
}

// As many as PyTorch would take in this thread.
void Convolutions::follow_thread_count(Known& known) {
  if (ctx_.stream->device().kind != Device::Kind::cpu) return;
  const auto wanted = static_cast<int>(torch::stable::get_num_threads());
  if (omp_get_max_threads() != wanted) omp_set_num_threads(wanted);
  if (known.options.threads != wanted) known.options.threads = wanted, known.chosen = {};
}

const Convolutions::Chosen& Convolutions::chosen(Known& known, ConvPass pass) {
  follow_thread_count(known);
  ctx_.training = known.trains;
  const Chosen*& here = known.chosen[static_cast<std::size_t>(pass)];
  if (here == nullptr) here = &chosen({known.problem, pass, known.options, known.trains});
  return *here;
}

const Convolutions::Chosen& Convolutions::chosen(const Key& key) {
  ctx_.training = key.trains;
  const auto known = chosen_.find(key);
  if (known != chosen_.end()) return known->second;
  if (is_capturing(*ctx_.stream))
    throw Error(ErrorKind::config,
                join("no plan has been chosen yet for ", to_string(key.pass), " of ", to_string(key.problem),
                     ", which cannot be done while a CUDA graph is captured: run the step once "
                     "before the capture, as torch.cuda.graph asks for"));
  Chooser& by = chooser(key.options);
  const ConvTuner::Choice& choice = by.tuner.choose(ctx_, key.problem, key.pass, key.options.engine);
  return chosen_.emplace(key, Chosen{choice.plan, choice.reason, &by}).first->second;
}

Convolutions::Chooser::Chooser(ConvTuner made) : tuner(std::move(made)) {
  for (const std::string& name : tuner.names()) engines.push_back(&tuner.engine(name));
}

Convolutions::Chooser& Convolutions::chooser(const ConvOptions& options) {
  const std::tuple limits{options.workspace_limit, options.deterministic, options.threads};
  const auto known = choosers_.find(limits);
  if (known != choosers_.end()) return known->second;
  ConvPolicy policy{.workspace_limit = options.workspace_limit,
                    .frequency_budget = options.workspace_limit,
                    .deterministic = options.deterministic,
                    .cache_file = cache_file(),
                    .warn = tell,
                    .build = TWIDDLE_TORCH_BUILD,
                    .measuring = std::make_shared<Measuring>(tell)};
  const ConvEngineOptions of_engines{options.workspace_limit, options.workspace_limit};
  ConvTuner made(make_conv_engines(ctx_.stream->device(), of_engines), std::move(policy));
  return choosers_.try_emplace(limits, std::move(made)).first->second;
}

std::string Convolutions::choices() {
  const std::lock_guard lock(mutex_);
  std::string text;
  for (const auto& [key, found] : chosen_)
    text += join(to_string(ctx_.stream->device()), "\t", to_string(key.problem), "\t", to_string(key.problem.precision),
                 "\t", to_string(key.pass), "\t", full_name(*found.plan), "\t", found.reason, "\n");
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

std::int64_t all_kept() {
  Devices& all = devices();
  const std::lock_guard lock(all.mutex);
  std::int64_t count = 0;
  for (const auto& [device, convolutions] : all.of) count += convolutions->kept();
  return count;
}

}  // namespace twiddle
