#include "python/src/convolutions.h"

#include <omp.h>

#include <atomic>
#include <cstdlib>
#include <iostream>
#include <list>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "framework/context.h"
#include "framework/error.h"
#include "layers/conv/engines/engines.h"
#include "layers/conv/tuner/measuring.h"
#include "layers/conv/tuner/trial.h"
#include "python/src/torch_stream.h"

namespace twiddle {

namespace {

void print_message(const std::string& message) {
  std::cerr << "twiddle_torch: " + message + "\n";
}

// Returns the variable that twiddle_torch/__init__.py sets unless the user did.
std::string cache_file() {
  const char* const file = std::getenv("TWIDDLE_TORCH_CACHE");
  return file != nullptr ? file : "";
}

// Never destroyed: at process exit, CUDA may be unloaded before static objects are destroyed.
struct Devices {
  std::mutex mutex;
  std::map<std::pair<Device::Kind, int>, std::unique_ptr<Convolutions>> of;
  std::atomic<bool> ignore_kept_choices = false;
  std::atomic<std::int64_t> last_kept = 0;  // numbers of kept spectra are unique in the process
};
Devices& devices() {
  static auto& all = *new Devices;
  return all;
}

std::vector<Convolutions*> all_convolutions() {
  Devices& all = devices();
  const std::lock_guard lock(all.mutex);
  std::vector<Convolutions*> found;
  for (const auto& [device, convolutions] : all.of) found.push_back(convolutions.get());
  return found;
}

}  // namespace

// The resources of one call at a time: a stream with its own memory, engines, and the state of their plans.
struct Convolutions::Lane {
  explicit Lane(Device device) { ctx.stream = make_torch_stream(device); }

  void prepare_for(const ConvCall& call);
  ConvTuner& tuner(const ConvCall& call);
  void run(const Known& known, ConvPass pass, ConvOperands& operands);

  Context ctx;
  std::map<std::tuple<std::size_t, bool, int>, ConvTuner> tuners;  // by workspace limit, determinism and threads
  std::unordered_map<const Chosen*, ConvTuner::Plan> plans;        // this lane's copies of plans chosen in another lane

  // Guarded by Convolutions::mutex_.
  bool busy = false;
  bool released = false;  // spectra of this lane were released while it was busy
};

void Convolutions::EndTurn::operator()(Lane* lane) const {
  for (bool again = true; again;) {
    for (auto& [limits, tuner] : lane->tuners) tuner.forget_gone();
    const std::lock_guard lock(all->mutex_);
    lane->busy = again = std::exchange(lane->released, false);
  }
  all->idle_.notify_all();
}

Convolutions::Convolutions(Device device) : device_(device), first_(lanes_.emplace_back(device)) {}

Convolutions::~Convolutions() = default;

// Returns the preferred lane if it is idle, else another idle lane, else a new one. A capture always gets the first
// lane. A new lane would create library handles and plans, which a graph cannot contain.
Convolutions::Turn Convolutions::take(Lane* preferred) {
  if (captures()) return take_first();
  {
    const std::lock_guard lock(mutex_);
    const auto is_free = [&](const Lane& lane) { return !lane.busy && !(&lane == &first_ && waiting_for_first_ > 0); };
    Lane* found = preferred != nullptr && is_free(*preferred) ? preferred : nullptr;
    for (Lane& lane : lanes_)
      if (found == nullptr && is_free(lane)) found = &lane;
    if (found != nullptr) {
      found->busy = true;
      return {found, {this}};
    }
  }
  std::list<Lane> made;
  made.emplace_back(device_).busy = true;
  const std::lock_guard lock(mutex_);
  lanes_.splice(lanes_.end(), made);
  return {&lanes_.back(), {this}};
}

Convolutions::Turn Convolutions::take_first() {
  std::unique_lock lock(mutex_);
  ++waiting_for_first_;
  idle_.wait(lock, [&] { return !first_.busy; });
  --waiting_for_first_;
  first_.busy = true;
  return {&first_, {this}};
}

Convolutions::Known& Convolutions::known(const ConvCall& call) {
  const std::lock_guard lock(mutex_);
  if (const auto found = known_.find(call); found != known_.end()) return found->second;
  ConvProblem of_one_image = call.problem;  // a batch may be empty
  of_one_image.batch = 1;
  validate(of_one_image);
  return known_.emplace(call, Known{call}).first->second;
}

void Convolutions::run_backward(Known& known, std::vector<Work> work, std::int64_t spectra) {
  Lane* preferred = nullptr;
  for (Work& each : work) {
    chosen(known, each.pass);
    if (spectra != 0) preferred = recall(spectra, each.operands);
  }
  const Turn lane = take(preferred);
  // Freed before the turn ends. The end of the turn then discards their spectra, except kept ones.
  std::vector<Work> mine = std::move(work);
  for (Work& each : mine) lane->run(known, each.pass, each.operands);
}

std::int64_t Convolutions::run_forward(Known& known, ConvOperands operands) {
  const std::string& shares = chosen(known, ConvPass::forward).plan->facts().shares;
  bool helps = false;
  // Chooses the backward plans now, because the step holds little memory, so that trial runs find enough.
  if (known.call.trains && !shares.empty())
    for (const ConvPass pass : {ConvPass::backward_input, ConvPass::backward_weight})
      if (known.call.problem.in_training(pass)) helps |= chosen(known, pass).plan->facts().shares == shares;
  const Turn lane = take();
  ConvOperands mine = std::move(operands);
  Kept kept;
  if (helps) kept = {mine.x, mine.w, captures(), lane.get()};
  lane->run(known, ConvPass::forward, mine);
  if (!helps) return 0;
  const std::int64_t number = ++devices().last_kept;
  const std::lock_guard lock(mutex_);
  kept_.emplace(number, std::move(kept));
  return number;
}

// Replaces x and w by the forward pass's tensors at the same addresses, so that their spectra are found. Returns the
// lane that has these spectra.
Convolutions::Lane* Convolutions::recall(std::int64_t spectra, ConvOperands& operands) {
  const bool capturing = captures();
  const std::lock_guard lock(mutex_);
  const auto found = kept_.find(spectra);
  if (found == kept_.end() || found->second.captured != capturing) return nullptr;
  const auto take = [](const Tensor& kept, Tensor& tensor) {
    if (tensor.read() == kept.read()) tensor = kept;
  };
  take(found->second.x, operands.x), take(found->second.w, operands.w);
  return found->second.lane;
}

// Python's garbage collector may call this at any time, even while this thread uses the lane. In that case the end of
// the turn frees the memory.
void Convolutions::release(std::int64_t spectra) {
  Lane* lane = nullptr;
  {
    const std::lock_guard lock(mutex_);
    const auto found = kept_.find(spectra);
    if (found == kept_.end()) return;
    lane = found->second.lane;
    kept_.erase(found);
    if (lane->busy) {
      lane->released = true;
      return;
    }
    lane->busy = true;
  }
  const Turn turn(lane, {this});
}

std::int64_t Convolutions::kept() {
  const std::lock_guard lock(mutex_);
  return static_cast<std::int64_t>(kept_.size());
}

bool Convolutions::captures() const {
  return is_capturing(*first_.ctx.stream);
}

// Returns the pass's plan; the first call chooses it.
const Convolutions::Chosen& Convolutions::chosen(Known& known, ConvPass pass) {
  Chosen& chosen = known.chosen[index_of(pass)];
  const auto is_known = [&] {
    const std::lock_guard lock(mutex_);
    return chosen.plan != nullptr;
  };
  if (is_known()) return chosen;
  const ConvCall& call = known.call;
  if (captures())
    throw Error(ErrorKind::config,
                join("no plan has been chosen yet for ", to_string(pass), " of ", to_string(call.problem),
                     ", which cannot be done while a CUDA graph is "
                     "captured: run the step once before the capture, as torch.cuda.graph requires"));
  const std::lock_guard choosing(choosing_);
  if (is_known()) return chosen;  // another thread chose it meanwhile
  const Turn lane = take_first();
  lane->prepare_for(call);
  const ConvTuner::Choice& choice = lane->tuner(call).choose(lane->ctx, call.problem, pass, call.engine);
  lane->plans.emplace(&chosen, choice.plan);
  const std::lock_guard lock(mutex_);
  return chosen = {choice.plan, choice.reason};
}

void Convolutions::Lane::prepare_for(const ConvCall& call) {
  ctx.training = call.trains;
  if (call.threads > 0 && omp_get_max_threads() != call.threads) omp_set_num_threads(call.threads);
}

void Convolutions::Lane::run(const Known& known, ConvPass pass, ConvOperands& operands) {
  prepare_for(known.call);
  const Chosen& chosen = known.chosen[index_of(pass)];
  ConvTuner::Plan& plan = plans[&chosen];
  if (plan == nullptr) {
    const ConvPlan::Facts& facts = chosen.plan->facts();
    plan = tuner(known.call).engine(facts.engine).plan(known.call.problem, pass, facts.name);
    if (plan == nullptr)
      throw Error(ErrorKind::device,
                  join("the plan ", full_name(*chosen.plan), " for ", to_string(pass), " of ",
                       to_string(known.call.problem), " cannot be created again for another thread"));
  }
  plan->run(ctx, operands);
  operands = {};
}

ConvTuner& Convolutions::Lane::tuner(const ConvCall& call) {
  const std::tuple limits{call.workspace_limit, call.deterministic, call.threads};
  const auto known = tuners.find(limits);
  if (known != tuners.end()) return known->second;
  ConvPolicy policy{.workspace_limit = call.workspace_limit,
                    .frequency_budget = call.workspace_limit,
                    .deterministic = call.deterministic,
                    .cache_file = cache_file(),
                    .retune = devices().ignore_kept_choices,
                    .own_batch = devices().ignore_kept_choices,
                    .warn = print_message,
                    .build = TWIDDLE_TORCH_BUILD,
                    .measuring = std::make_shared<Measuring>(print_message)};
  const ConvEngineOptions of_engines{call.workspace_limit, call.workspace_limit};
  ConvTuner made(make_conv_engines(ctx.stream->device(), of_engines), std::move(policy));
  return tuners.try_emplace(limits, std::move(made)).first->second;
}

std::string Convolutions::choices() {
  const std::lock_guard lock(mutex_);
  std::string text;
  for (const auto& [call, known] : known_)
    for (const ConvPass pass : every_pass)
      if (const auto& [plan, reason] = known.chosen[index_of(pass)]; plan != nullptr)
        text += join(to_string(device_), "\t", to_string(call.problem), "\t", to_string(call.problem.precision), "\t",
                     to_string(pass), "\t", full_name(*plan), "\t", reason, "\n");
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
  std::string text;
  for (Convolutions* const each : all_convolutions()) text += each->choices();
  return text;
}

std::int64_t all_kept() {
  std::int64_t count = 0;
  for (Convolutions* const each : all_convolutions()) count += each->kept();
  return count;
}

void release_spectra(std::int64_t spectra) {
  for (Convolutions* const each : all_convolutions()) each->release(spectra);
}

void ignore_kept_choices() {
  devices().ignore_kept_choices = true;
}

}  // namespace twiddle
