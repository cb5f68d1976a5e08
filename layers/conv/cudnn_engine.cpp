#include "layers/conv/cudnn_engine.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <utility>

#include "framework/error.h"
#include "layers/conv/choice_cache.h"
#include "layers/conv/conv_check.h"
#include "layers/conv/cudnn_plan.h"
#include "layers/conv/epilogue.h"
#include "layers/conv/measure.h"
#include "layers/conv/measuring.h"

namespace twiddle {

namespace {

// How many engines of the graph API are tried for each layout and heuristic.
constexpr int graphs_tried = 8;
constexpr int samples = 200;

// cuDNN itself on one GPU, shared by the engines of one list; made when it is first needed.
class Session {
 public:
  explicit Session(Device device) : device_(device) {}
  cudnnHandle_t handle() {
    make_current(device_.index);
    if (!handle_.get()) check(cudnn().create(handle_.put()));
    return handle_.get();
  }
  // What follows goes to this stream.
  cudnnHandle_t handle(Stream& stream) {
    check(cudnn().set_stream(handle(), static_cast<cudaStream_t>(stream.native())));
    return handle();
  }

 private:
  Device device_;
  CudnnHandle handle_;
};

bool is_capturing(Stream& stream) {
  cudaStreamCaptureStatus status{};
  check(cudaStreamIsCapturing(static_cast<cudaStream_t>(stream.native()), &status));
  return status != cudaStreamCaptureStatusNone;
}

std::shared_ptr<void> allocate(Stream& stream, std::size_t bytes) {
  return bytes > 0 ? stream.allocate(bytes) : nullptr;
}

ConvPointers pointers(ConvOperands& operands, ConvPass pass) {
  auto& [x, w, y, bias, relu, mask] = operands;
  return {pass == ConvPass::backward_input ? x.write() : x.read(),
          pass == ConvPass::backward_weight ? w.write() : w.read(), pass == ConvPass::forward ? y.write() : y.read()};
}

// What ways are tried on: random operands, and a sample of the exact result. (Random, because what a layer happens to
// hold can be kind to a way: on activations that are all positive, cuDNN's Winograd errs by 2e-6 where it errs by 1e-5
// on numbers around zero.)
class Trial {
 public:
  Trial(Stream& stream, cudnnHandle_t handle, const ConvProblem& problem, ConvPass pass)
      : stream_(stream),
        handle_(handle),
        operands_(random_operands(stream, problem, pass)),
        sample_(stream, problem, pass, operands_, samples),
        result_(pass == ConvPass::backward_input    ? operands_.x
                : pass == ConvPass::backward_weight ? operands_.w
                                                    : operands_.y),
        at_(pointers(operands_, pass)) {}

  void take(const CudnnPlan& plan) {  // for what follows; throws OutOfMemory where its scratch finds no room
    scratch_ = nullptr;
    scratch_ = allocate(stream_, plan.workspace);
    plan_ = &plan;
  }
  void run() { plan_->run(handle_, stream_, at_, scratch_.get()); }
  double error() {  // NaN where it leaves elements unwritten
    stream_.fill(result_.write(), result_.size(), std::numeric_limits<float>::quiet_NaN());
    run();
    return sample_.error(stream_, result_);
  }

 private:
  Stream& stream_;
  cudnnHandle_t handle_;
  ConvOperands operands_;
  ConvCheck sample_;
  Tensor result_;
  ConvPointers at_;
  std::shared_ptr<void> scratch_;
  const CudnnPlan* plan_ = nullptr;
};

// The ways of one family, or of all: the first run of a problem and pass tries them on random operands, holds each to a
// sample of the exact result, times those that keep the precision, and from then on takes the fastest. The cache keeps
// its name, so that later runs need try no other.
class CudnnEngine : public ConvEngine {
 public:
  CudnnEngine(std::shared_ptr<Session> session, std::string family, const ConvEngineOptions& options)
      : session_(std::move(session)),
        family_(std::move(family)),
        name_(family_.empty() ? "cudnn" : "cudnn:" + family_),
        options_(options) {}

  std::string_view name() const override { return name_; }
  bool by_name_only() const override { return !family_.empty(); }
  std::string library() const override { return join("cuDNN ", cudnn().version()); }
  bool supports(const ConvProblem& problem, ConvPass pass) const override {
    return !entry(problem, pass).plans.empty();
  }
  std::string refusal(const ConvProblem& problem, ConvPass pass) const override {
    const Entry& here = entry(problem, pass);
    if (!here.plans.empty() || !here.left_out) return {};
    return "it gives other bits in each run, which `deterministic: true` rules out";
  }
  // Before the first run: of the way that takes most of those known so far, since any may be chosen.
  std::size_t workspace_bytes(const ConvProblem& problem, ConvPass pass) const override {
    return most_workspace(entry(problem, pass).plans);
  }
  std::string details(const ConvProblem& problem, ConvPass pass) const override;
  void run(Context& ctx, const ConvProblem& problem, ConvPass pass, ConvOperands& operands) override;

 private:
  struct Entry {
    CudnnPlans plans;  // once chosen, that one alone
    bool complete = false, chosen = false;
    bool left_out = false;  // some, since they are not deterministic
  };
  Entry& entry(const ConvProblem& problem, ConvPass pass) const;
  bool fits(const CudnnPlan& plan) const;  // family and limit
  void add(Entry& to, CudnnPlans plans) const;
  void add_graphs(Entry& to, const ConvProblem& problem, ConvPass pass) const;
  const CudnnPlan& choose(Stream& stream, const ConvProblem& problem, ConvPass pass);
  std::string cache_key(Stream& stream, const ConvProblem& problem, ConvPass pass) const;
  std::unique_ptr<CudnnPlan> recall(Stream& stream, const ConvProblem& problem, ConvPass pass) const;
  std::unique_ptr<CudnnPlan> search(Stream& stream, const ConvProblem& problem, ConvPass pass, CudnnPlans& plans) const;
  static std::unique_ptr<CudnnPlan> untried(Stream& stream, CudnnPlans& plans);
  static std::size_t most_workspace(const CudnnPlans& plans) {
    std::size_t most = 0;
    for (const auto& plan : plans) most = std::max(most, plan->workspace);
    return most;
  }

  std::shared_ptr<Session> session_;
  std::string family_, name_;
  ConvEngineOptions options_;
  mutable std::map<std::pair<ConvProblem, ConvPass>, Entry> entries_;
};

// The algorithms are cheap to ask for; the graphs, which may be compiled, wait for the first run where they can.
CudnnEngine::Entry& CudnnEngine::entry(const ConvProblem& problem, ConvPass pass) const {
  const auto [found, is_new] = entries_.try_emplace({problem, pass});
  Entry& here = found->second;
  if (!is_new) return here;
  try {
    add(here, cudnn_algorithms(session_->handle(), problem, pass));
    if (here.plans.empty()) add_graphs(here, problem, pass);
  } catch (...) {
    entries_.erase(found);
    throw;
  }
  return here;
}

bool CudnnEngine::fits(const CudnnPlan& plan) const {
  return (family_.empty() || plan.way.family == family_) && plan.workspace <= options_.workspace_limit;
}

void CudnnEngine::add(Entry& to, CudnnPlans plans) const {
  for (auto& plan : plans) {
    if (!fits(*plan)) continue;
    if (plan->deterministic || !options_.deterministic)
      to.plans.push_back(std::move(plan));
    else
      to.left_out = true;
  }
}

void CudnnEngine::add_graphs(Entry& to, const ConvProblem& problem, ConvPass pass) const {
  if (std::exchange(to.complete, true)) return;
  for (const auto& [layout, family] : {std::pair{CudnnLayout::nchw, "nchw"}, {CudnnLayout::nhwc, "nhwc"}})
    if (family_.empty() || family_ == family)
      add(to, cudnn_graphs(session_->handle(), problem, pass, layout, graphs_tried));
}

std::string CudnnEngine::details(const ConvProblem& problem, ConvPass pass) const {
  const auto found = entries_.find({problem, pass});
  if (found == entries_.end() || !found->second.chosen) return {};
  return to_string(found->second.plans.front()->way);
}

void CudnnEngine::run(Context& ctx, const ConvProblem& problem, ConvPass pass, ConvOperands& operands) {
  Stream& stream = *ctx.stream;
  const CudnnPlan& plan = choose(stream, problem, pass);
  const std::shared_ptr<void> workspace = allocate(stream, plan.workspace);
  plan.run(session_->handle(stream), stream, pointers(operands, pass), workspace.get());
  if (pass == ConvPass::forward) add_bias_and_relu(stream, operands);
}

const CudnnPlan& CudnnEngine::choose(Stream& stream, const ConvProblem& problem, ConvPass pass) {
  Entry& here = entry(problem, pass);
  if (here.chosen) return *here.plans.front();
  require(!is_capturing(stream), name_, " has not chosen its algorithm for ", to_string(pass), " of ",
          to_string(problem), " yet: run it once before a graph is captured");
  std::unique_ptr<CudnnPlan> chosen = recall(stream, problem, pass);
  if (chosen == nullptr) {
    const auto algorithms = static_cast<std::ptrdiff_t>(here.complete ? 0 : here.plans.size());
    add_graphs(here, problem, pass);
    // Without timing, the heuristics' first guess is the best there is.
    if (options_.deterministic) std::rotate(here.plans.begin(), here.plans.begin() + algorithms, here.plans.end());
    try {
      chosen = search(stream, problem, pass, here.plans);
    } catch (const OutOfMemory& error) {
      if (options_.deterministic)
        throw OutOfMemory(join("no room for ", name_, " to choose its way for ", to_string(pass), " of ",
                               to_string(problem), ", and with `deterministic: true` it is not to depend on what room ",
                               "there is: ", error.what()));
      chosen = untried(stream, here.plans);
      if (chosen == nullptr) throw;
    }
  }
  stream.release_unused();  // trying ways takes far more than a run
  here.plans.clear();
  here.plans.push_back(std::move(chosen));
  here.chosen = true;
  return *here.plans.front();
}

std::string CudnnEngine::cache_key(Stream& stream, const ConvProblem& problem, ConvPass pass) const {
  return choice_key(stream.device(), problem, pass, options_.workspace_limit,
                    join("ways of ", name_, "(", library(), ") ", options_.deterministic ? "deterministic " : ""));
}

// The way that an earlier run chose, if it can be made again and does what it should; null otherwise.
std::unique_ptr<CudnnPlan> CudnnEngine::recall(Stream& stream, const ConvProblem& problem, ConvPass pass) const try {
  const auto known = options_.cache ? options_.cache->find(cache_key(stream, problem, pass)) : std::nullopt;
  const auto way = known ? parse_cudnn_way(known->choice) : std::nullopt;
  if (!way) return nullptr;
  cudnnHandle_t const handle = session_->handle(stream);
  auto plan = (way->engine < 0 ? cudnn_algorithm : cudnn_graph)(handle, problem, pass, *way);
  if (plan == nullptr || !fits(*plan) || (options_.deterministic && !plan->deterministic)) return nullptr;
  Trial trial(stream, handle, problem, pass);
  trial.take(*plan);
  return trial.error() <= promise(problem.precision) ? std::move(plan) : nullptr;
} catch (const Error&) {
  return nullptr;
}

// Where there is no room to try ways, the first whose scratch finds some: the algorithms that keep the precision and
// take little come before the others. Null where none does.
std::unique_ptr<CudnnPlan> CudnnEngine::untried(Stream& stream, CudnnPlans& plans) {
  for (auto& plan : plans) try {
      static_cast<void>(allocate(stream, plan->workspace));
      return std::move(plan);
    } catch (const OutOfMemory&) {
    }
  return nullptr;
}

// The plan to take. Where none keeps the precision, the most exact one: whoever measures engines drops it.
std::unique_ptr<CudnnPlan> CudnnEngine::search(Stream& stream, const ConvProblem& problem, ConvPass pass,
                                               CudnnPlans& plans) const {
  constexpr double first_look_ms = 3, second_look_ms = 10;
  Trial trial(stream, session_->handle(stream), problem, pass);
  double fastest = std::numeric_limits<double>::infinity();
  std::vector<std::pair<double, std::size_t>> times;  // a first look at each that is not far behind
  std::pair<double, std::size_t> most_exact{std::numeric_limits<double>::quiet_NaN(), plans.size()};
  std::string failure;
  const auto work = [&] { trial.run(); };
  for (std::size_t i = 0; i < plans.size(); ++i) {
    if (options_.measuring) options_.measuring->between_two();
    try {
      trial.take(*plans[i]);
      const double error = trial.error();
      if (most_exact.second == plans.size() || std::isnan(most_exact.first) || error < most_exact.first)
        most_exact = {error, i};
      if (!(error <= promise(problem.precision))) continue;
      if (options_.deterministic) {  // the first in an order that is the same in each run
        times.emplace_back(0, i);
        break;
      }
      if (time_stretch(stream, 1, work) > 1.5 * fastest + 0.05) continue;
      times.emplace_back(time_calls(stream, first_look_ms, work), i);
      fastest = std::min(fastest, times.back().first);
    } catch (const OutOfMemory& error) {
      if (options_.deterministic) throw;
      failure = error.what();
    } catch (const Error& error) {
      failure = error.what();
    }
  }
  if (times.empty()) {
    if (most_exact.second == plans.size())
      throw Error(ErrorKind::device, join(name_, " cannot do ", to_string(pass), " of ", to_string(problem),
                                          " though it said so: ", failure));
    return std::move(plans[most_exact.second]);
  }
  std::sort(times.begin(), times.end());
  std::pair<double, std::size_t> best{std::numeric_limits<double>::infinity(), 0};
  for (const auto& [first_look, index] : times) {
    if (first_look > 1.1 * times.front().first) continue;
    trial.take(*plans[index]);
    best = std::min(best, {time_calls(stream, second_look_ms, work), index});
  }
  std::unique_ptr<CudnnPlan>& plan = plans[best.second];
  if (options_.cache) options_.cache->store(cache_key(stream, problem, pass), {to_string(plan->way), best.first});
  return std::move(plan);
}

}  // namespace

std::vector<std::unique_ptr<ConvEngine>> make_cudnn_engines(Device device, const ConvEngineOptions& options) {
  const auto session = std::make_shared<Session>(device);
  std::vector<std::unique_ptr<ConvEngine>> engines;
  for (const char* family : {"", "implicit_gemm", "implicit_precomp_gemm", "gemm", "fft", "fft_tiling", "winograd",
                             "winograd_nonfused", "nchw", "nhwc"})
    engines.push_back(std::make_unique<CudnnEngine>(session, family, options));
  return engines;
}

}  // namespace twiddle
