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

void tell(const std::string& message) {
  std::cerr << "twiddle_torch: " + message + "\n";
}

// Set by twiddle_torch/__init__.py, where the user has not.
std::string cache_file() {
  const char* const file = std::getenv("TWIDDLE_TORCH_CACHE");
  return file != nullptr ? file : "";
}

// Plans for a CPU have scratch memory for this number of threads.
void follow_thread_count(const ConvOptions& options) {
  if (options.threads > 0 && omp_get_max_threads() != options.threads) omp_set_num_threads(options.threads);
}

// For the rest of the process: at its end CUDA may be gone before what is destroyed.
struct Devices {
  std::mutex mutex;
  std::map<std::pair<Device::Kind, int>, std::unique_ptr<Convolutions>> of;
  std::atomic<bool> ignore_kept_choices = false;
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

// What one call at a time uses: a stream with its own memory, engines, and what their plans keep.
struct Convolutions::Lane {
  // Each set serves one workspace limit, deterministic or not, and one number of threads.
  struct Engines {
    explicit Engines(ConvTuner made);
    ConvTuner tuner;
    std::vector<ConvEngine*> all;
  };
  explicit Lane(Device device) { ctx.stream = make_torch_stream(device); }

  Engines& engines(const ConvOptions& options);
  void run(const Chosen& chosen, ConvOperands& operands);
  void forget_gone();

  Context ctx;
  std::map<std::tuple<std::size_t, bool, int>, Engines> engines_by_limits;
  std::unordered_map<const Chosen*, ConvTuner::Plan> plans;  // created again in this lane, unless it chose them

  // Guarded by Convolutions::mutex_.
  bool busy = false;
  bool released = false;  // spectra of this lane were released while it was busy
};

// Returns a lane to the others at the end of a call.
class Convolutions::Turn {
 public:
  Turn(Convolutions& all, Lane& taken) : all_(all), lane_(taken) {}
  ~Turn();
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  Lane& lane() const { return lane_; }

 private:
  Convolutions& all_;
  Lane& lane_;
};

Convolutions::Turn::~Turn() {
  for (bool again = true; again;) {
    lane_.forget_gone();
    const std::lock_guard lock(all_.mutex_);
    lane_.busy = again = std::exchange(lane_.released, false);
  }
  all_.idle_.notify_all();
}

Convolutions::Convolutions(Device device) : device_(device), first_(lanes_.emplace_back(device)) {}

Convolutions::~Convolutions() = default;

// Returns the preferred lane if it is idle, else another that is, or a new one. A capture always gets the first lane: a
// new one would create library handles, and its plans again, which a graph cannot contain.
Convolutions::Lane& Convolutions::take(Lane* preferred) {
  if (captures()) return take_first();
  {
    const std::lock_guard lock(mutex_);
    const auto is_free = [&](const Lane& lane) { return !lane.busy && !(&lane == &first_ && waiting_for_first_ > 0); };
    Lane* found = preferred != nullptr && is_free(*preferred) ? preferred : nullptr;
    for (Lane& lane : lanes_)
      if (found == nullptr && is_free(lane)) found = &lane;
    if (found != nullptr) {
      found->busy = true;
      return *found;
    }
  }
  std::list<Lane> made;
  made.emplace_back(device_).busy = true;
  const std::lock_guard lock(mutex_);
  lanes_.splice(lanes_.end(), made);
  return lanes_.back();
}

Convolutions::Lane& Convolutions::take_first() {
  std::unique_lock lock(mutex_);
  ++waiting_for_first_;
  idle_.wait(lock, [&] { return !first_.busy; });
  --waiting_for_first_;
  first_.busy = true;
  return first_;
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
  known.options.threads = call.threads;
  return known_.try_emplace(call, std::move(known)).first->second;
}

void Convolutions::run(Known& known, std::vector<Work> work, std::int64_t spectra) {
  std::array<const Chosen*, 3> by_pass = {};
  Lane* preferred = nullptr;
  for (Work& each : work) {
    by_pass[index_of(each.pass)] = &chosen(known, each.pass);
    if (spectra != 0) preferred = recall(spectra, each.operands);
  }
  const Turn turn(*this, take(preferred));
  // Freed before the turn ends, which then forgets their spectra, except for those that are kept.
  std::vector<Work> mine = std::move(work);
  for (Work& each : mine) turn.lane().run(*by_pass[index_of(each.pass)], each.operands);
}

std::int64_t Convolutions::run_forward(Known& known, ConvOperands operands) {
  const Chosen& forward = chosen(known, ConvPass::forward);
  const std::string& shares = forward.plan->facts().shares;
  bool helps = false;
  for (const ConvPass pass : {ConvPass::backward_input, ConvPass::backward_weight})
    if (known.problem.in_training(pass))  // all are chosen now, while the step holds little and a rehearsal finds room
      helps |= !shares.empty() && chosen(known, pass).plan->facts().shares == shares;
  const Turn turn(*this, take());
  ConvOperands mine = std::move(operands);
  Kept kept;
  if (helps) kept = {mine.x, mine.w, captures(), &turn.lane()};
  turn.lane().run(forward, mine);
  if (!helps) return 0;
  const std::lock_guard lock(mutex_);
  kept_.emplace(++last_kept_, std::move(kept));
  return last_kept_;
}

// Replaces x and w by the forward pass's tensors at the same addresses, under which their spectra are known. Returns
// the lane that has these.
Convolutions::Lane* Convolutions::recall(std::int64_t number, ConvOperands& operands) {
  const bool capturing = captures();
  const std::lock_guard lock(mutex_);
  const auto found = kept_.find(number);
  if (found == kept_.end() || found->second.captured != capturing) return nullptr;
  const auto take = [](const Tensor& kept, Tensor& tensor) {
    if (tensor.read() == kept.read()) tensor = kept;
  };
  take(found->second.x, operands.x), take(found->second.w, operands.w);
  return found->second.lane;
}

// Python's garbage collector may call this at any time, also while this thread has the lane: then the end of that turn
// frees the memory.
void Convolutions::release(std::int64_t number) {
  Lane* lane = nullptr;
  {
    const std::lock_guard lock(mutex_);
    const auto found = kept_.find(number);
    if (found == kept_.end()) return;
    lane = found->second.lane;
    kept_.erase(found);
    if (lane->busy) {
      lane->released = true;
      return;
    }
    lane->busy = true;
  }
  const Turn turn(*this, *lane);
}

std::int64_t Convolutions::kept() {
  const std::lock_guard lock(mutex_);
  return static_cast<std::int64_t>(kept_.size());
}

bool Convolutions::captures() const {
  return is_capturing(*first_.ctx.stream);
}

const Convolutions::Chosen& Convolutions::chosen(Known& known, ConvPass pass) {
  if (const Chosen* const found = look_up(known, pass)) return *found;
  if (captures())
    throw Error(ErrorKind::config,
                join("no plan has been chosen yet for ", to_string(pass), " of ", to_string(known.problem),
                     ", which cannot be done while a CUDA graph is "
                     "captured: run the step once before the capture, as torch.cuda.graph requires"));
  return choose(known, pass);
}

const Convolutions::Chosen* Convolutions::look_up(Known& known, ConvPass pass) {
  const std::lock_guard lock(mutex_);
  const Chosen*& here = known.chosen[index_of(pass)];
  if (here != nullptr) return here;
  const auto found = chosen_.find({known.problem, pass, known.options, known.trains});
  if (found != chosen_.end()) here = &found->second;
  return here;
}

const Convolutions::Chosen& Convolutions::choose(Known& known, ConvPass pass) {
  const std::lock_guard choosing(choosing_);
  if (const Chosen* const found = look_up(known, pass)) return *found;  // another thread was faster
  const Turn turn(*this, take_first());
  Lane& lane = turn.lane();
  lane.ctx.training = known.trains;
  follow_thread_count(known.options);
  ConvTuner& tuner = lane.engines(known.options).tuner;
  const ConvTuner::Choice& choice = tuner.choose(lane.ctx, known.problem, pass, known.options.engine);
  const Key key{known.problem, pass, known.options, known.trains};
  const std::lock_guard lock(mutex_);
  const Chosen& made = chosen_.emplace(key, Chosen{key, choice.plan, choice.reason}).first->second;
  lane.plans.emplace(&made, choice.plan);
  return made;
}

void Convolutions::Lane::run(const Chosen& chosen, ConvOperands& operands) {
  const auto& [problem, pass, options, trains] = chosen.key;
  ctx.training = trains;
  follow_thread_count(options);
  ConvTuner::Plan& plan = plans[&chosen];
  if (plan == nullptr) {
    const ConvPlan::Facts& facts = chosen.plan->facts();
    plan = engines(options).tuner.engine(facts.engine).plan(problem, pass, facts.name);
    if (plan == nullptr)
      throw Error(ErrorKind::device, join("the plan ", full_name(*chosen.plan), " for ", to_string(pass), " of ",
                                          to_string(problem), " cannot be created again for another thread"));
  }
  plan->run(ctx, operands);
  operands = {};
}

void Convolutions::Lane::forget_gone() {
  for (auto& [limits, engines] : engines_by_limits)
    for (ConvEngine* const engine : engines.all) engine->forget_gone();
}

Convolutions::Lane::Engines::Engines(ConvTuner made) : tuner(std::move(made)) {
  for (const std::string& name : tuner.names()) all.push_back(&tuner.engine(name));
}

Convolutions::Lane::Engines& Convolutions::Lane::engines(const ConvOptions& options) {
  const std::tuple limits{options.workspace_limit, options.deterministic, options.threads};
  const auto known = engines_by_limits.find(limits);
  if (known != engines_by_limits.end()) return known->second;
  ConvPolicy policy{.workspace_limit = options.workspace_limit,
                    .frequency_budget = options.workspace_limit,
                    .deterministic = options.deterministic,
                    .cache_file = cache_file(),
                    .retune = devices().ignore_kept_choices,
                    .own_batch = devices().ignore_kept_choices,
                    .warn = tell,
                    .build = TWIDDLE_TORCH_BUILD,
                    .measuring = std::make_shared<Measuring>(tell)};
  const ConvEngineOptions of_engines{options.workspace_limit, options.workspace_limit};
  ConvTuner made(make_conv_engines(ctx.stream->device(), of_engines), std::move(policy));
  return engines_by_limits.try_emplace(limits, std::move(made)).first->second;
}

std::string Convolutions::choices() {
  const std::lock_guard lock(mutex_);
  std::string text;
  for (const auto& [key, found] : chosen_)
    text += join(to_string(device_), "\t", to_string(key.problem), "\t", to_string(key.problem.precision), "\t",
                 to_string(key.pass), "\t", full_name(*found.plan), "\t", found.reason, "\n");
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

void ignore_kept_choices() {
  devices().ignore_kept_choices = true;
}

}  // namespace twiddle
