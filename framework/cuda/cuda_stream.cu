#include "framework/cuda/cuda_stream.h"

#include <nvtx3/nvToolsExt.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "framework/cuda/blas_gemm.h"
#include "framework/cuda/check.h"
#include "framework/cuda/cuda_event.h"
#include "framework/cuda/device_range.h"
#include "framework/error.h"
#include "framework/for_each.h"
#include "framework/gpu_check.h"
#include "framework/pool.h"
#include "framework/text.h"

namespace twiddle {

namespace {

struct Fill {
  float value;
  float* x;
  TWIDDLE_HD void operator()(std::int64_t i) const { x[i] = value; }
};

__global__ void probe_kernel() {}

// Says why a GPU cannot be used before the first kernel fails with a riddle.
void check_usable(int index) {
  const std::string why = why_unusable(look_at_gpu(index));
  if (!why.empty()) throw Error(ErrorKind::device, why);
}

using StreamHandle = Handle<cudaStream_t, cudaStreamDestroy>;
using GraphHandle = Handle<cudaGraph_t, cudaGraphDestroy>;
using GraphExecHandle = Handle<cudaGraphExec_t, cudaGraphExecDestroy>;
using BlasHandle = Handle<cublasHandle_t, cublasDestroy>;

class CudaGraph final : public Graph {
 public:
  CudaGraph(int index, cudaStream_t stream, cudaGraph_t graph, std::vector<std::shared_ptr<void>> blocks)
      : index_(index), stream_(stream), blocks_(std::move(blocks)) {
    check(cudaGraphInstantiate(executable_.put(), graph, 0));
    count_launches(graph);
  }
  ~CudaGraph() override { static_cast<void>(cudaStreamSynchronize(stream_)); }  // it may still be running
  void replay() override {
    make_current(index_);
    check(cudaGraphLaunch(executable_.get(), stream_));
  }
  std::size_t launches() const { return launches_; }

 private:
  void count_launches(cudaGraph_t graph) {
    std::size_t count = 0;
    check(cudaGraphGetNodes(graph, nullptr, &count));
    std::vector<cudaGraphNode_t> nodes(count);
    check(cudaGraphGetNodes(graph, nodes.data(), &count));
    for (const cudaGraphNode_t node : nodes) {
      cudaGraphNodeType type{};
      if (cudaGraphNodeGetType(node, &type) != cudaSuccess) {
        // A node type without a name in the runtime: NCCL's, which waits for another GPU.
        static_cast<void>(cudaGetLastError());
        continue;
      }
      launches_ +=
          type == cudaGraphNodeTypeKernel || type == cudaGraphNodeTypeMemcpy || type == cudaGraphNodeTypeMemset;
    }
  }

  int index_;
  cudaStream_t stream_;
  std::size_t launches_ = 0;
  std::vector<std::shared_ptr<void>> blocks_;
  GraphExecHandle executable_;
};

// Work in order on one CUDA stream.
class CudaStream final : public Stream {
 public:
  explicit CudaStream(int index) : index_(index) {
    check_usable(index);
    make_current(index);
    check(cudaStreamCreateWithFlags(stream_.put(), cudaStreamNonBlocking));
    check(cublasCreate(blas_.put()));
    check(cublasSetStream(blas_.get(), stream_.get()));
    // cuBLAS would allocate memory while a graph is captured; it uses this workspace instead.
    workspace_ = allocate(cublas_workspace_bytes);
    check(cublasSetWorkspace(blas_.get(), workspace_.get(), cublas_workspace_bytes));
  }
  ~CudaStream() override {
    static_cast<void>(cudaSetDevice(index_));  // cuBLAS destroys its handle on this GPU
    static_cast<void>(cudaStreamSynchronize(stream_.get()));
    if (copy_stream_.get()) static_cast<void>(cudaStreamSynchronize(copy_stream_.get()));
  }

  Device device() const override { return {Device::Kind::cuda, index_}; }
  void* native() const override { return stream(); }
  std::shared_ptr<void> allocate(std::size_t bytes) override try {
    return pool_.take(bytes);
  } catch (const OutOfMemory& error) {
    std::size_t free = 0, total = 0;
    make_current(index_);
    check(cudaMemGetInfo(&free, &total));
    throw OutOfMemory(join(error.what(), ". The device has ", format_bytes(total), ", of which ", format_bytes(free),
                           " are free; other programs hold the rest"));
  }
  MemoryUse memory() const override {
    MemoryUse use = pool_.use();
    std::size_t total = 0;
    make_current(index_);
    check(cudaMemGetInfo(&use.free, &total));
    return use;
  }
  void release_unused() override {
    synchronize();
    pool_.release_cached();
  }
  void reset_peak() override { pool_.reset_peak(); }
  void copy(void* to, const void* from, std::size_t bytes) override {
    if (bytes > 0) check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream()));
  }
  std::shared_ptr<Event> copy_async(void* to, const void* from, std::size_t bytes) override {
    const CudaEvent given(stream(), host_wait_);
    if (!copy_stream_.get()) check(cudaStreamCreateWithFlags(copy_stream_.put(), cudaStreamNonBlocking));
    check(cudaStreamWaitEvent(copy_stream_.get(), given.event()));
    if (bytes > 0) check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, copy_stream_.get()));
    return std::make_shared<CudaEvent>(copy_stream_.get(), host_wait_);
  }
  void wait_event(const Event& event) override {
    check(cudaStreamWaitEvent(stream(), static_cast<const CudaEvent&>(event).event()));
  }
  std::shared_ptr<void> allocate_host(std::size_t bytes) override {
    make_current(index_);
    void* block = nullptr;
    check(cudaMallocHost(&block, std::max<std::size_t>(bytes, 1)));
    return {block, [](void* returned) { static_cast<void>(cudaFreeHost(returned)); }};
  }
  void fill(float* x, std::int64_t count, float value) override { for_each_index(*this, count, Fill{value, x}); }
  void synchronize() override {
    ++synchronizations_;
    const HostWait::Span waiting(*host_wait_);
    check(cudaStreamSynchronize(stream()));
  }
  std::shared_ptr<const HostWait> host_wait() const { return host_wait_; }
  std::int64_t synchronizations() const override { return synchronizations_; }
  std::shared_ptr<Event> record_event() override { return std::make_shared<CudaEvent>(stream(), host_wait_); }
  void begin_range(const char* name) override { nvtxRangePushA(name); }
  void end_range() override { nvtxRangePop(); }

  std::unique_ptr<Graph> capture(const std::function<void()>& work) override {
    capture(work, Pool::Holding::fresh);  // records what memory the work uses, and when
    release_unused();
    auto graph = made_of(capture(work, Pool::Holding::before));
    pool_.release_cached();  // memory that the first capture kept for the second
    return graph;
  }

  std::unique_ptr<Graph> capture_again(const std::function<void()>& work) override {
    return made_of(capture(work, Pool::Holding::again));
  }

  std::int64_t capture_changes() const override { return capture_changes_; }

  void gemm(const Gemm& shape, const float* a, const float* b, float* c) override {
    make_current(index_);
    blas_gemm(blas_.get(), shape, a, b, c);
  }

 private:
  cudaStream_t stream() const {
    make_current(index_);
    return stream_.get();
  }

  struct Captured {
    GraphHandle graph;
    std::vector<std::shared_ptr<void>> blocks;
  };
  Captured capture(const std::function<void()>& work, Pool::Holding holding) {
    // Relaxed: the pool may still allocate from the driver.
    check(cudaStreamSynchronize(stream()));  // for DeviceRange::capturing
    check(cudaStreamBeginCapture(stream(), cudaStreamCaptureModeRelaxed));
    set_capturing(true);
    pool_.start_holding(holding);
    Captured captured;
    try {
      work();
    } catch (...) {
      pool_.stop_holding();
      set_capturing(false);
      static_cast<void>(cudaStreamEndCapture(stream_.get(), captured.graph.put()));
      static_cast<void>(cudaGetLastError());
      throw;
    }
    captured.blocks = pool_.stop_holding();
    set_capturing(false);
    check(cudaStreamEndCapture(stream(), captured.graph.put()));
    return captured;
  }
  void set_capturing(bool capturing) {
    ++capture_changes_;
    if (range_) range_->capturing = capturing;
  }
  std::unique_ptr<Graph> made_of(Captured captured) const {
    return std::make_unique<CudaGraph>(index_, stream(), captured.graph.get(), std::move(captured.blocks));
  }

  static std::optional<Pool::Pieces> pieces_of(const std::shared_ptr<DeviceRange>& range) {
    if (!range) return {};
    return Pool::Pieces{[range](void* at, std::size_t bytes) { return range->map(at, bytes); },
                        [range](void* begin, std::size_t bytes) { range->unmap(begin, bytes); }, DeviceRange::chunk};
  }
  void* allocate_on_device(std::size_t bytes) const {
    make_current(index_);
    void* block = nullptr;
    if (cudaMalloc(&block, bytes) == cudaSuccess) return block;
    static_cast<void>(cudaGetLastError());
    return nullptr;
  }

  int index_;
  std::shared_ptr<HostWait> host_wait_ = std::make_shared<HostWait>();
  std::int64_t synchronizations_ = 0, capture_changes_ = 0;
  std::shared_ptr<DeviceRange> range_ = DeviceRange::reserve(index_);
  Pool pool_{[this](std::size_t bytes) { return allocate_on_device(bytes); },
             [](void* block) { static_cast<void>(cudaFree(block)); }, pieces_of(range_)};
  StreamHandle stream_, copy_stream_;  // the second for copies during the work
  BlasHandle blas_;
  std::shared_ptr<void> workspace_;
};

}  // namespace

GpuFacts look_at_gpu(int index) {
  constexpr int built_for[] = {__CUDA_ARCH_LIST__};  // 750, 900: nvcc's own list
  GpuFacts facts;
  facts.index = index;
  for (const int architecture : built_for) facts.built_for.push_back(architecture / 10);
  check(cudaRuntimeGetVersion(&facts.runtime));
  const auto ask = [&](cudaError_t status) {
    if (status == cudaSuccess) return true;
    static_cast<void>(cudaGetLastError());
    facts.failure = cudaGetErrorString(status);
    return false;
  };
  if (!ask(cudaDriverGetVersion(&facts.driver)) || !is_new_enough(facts.driver, facts.runtime)) return facts;
  if (!ask(cudaGetDeviceCount(&facts.count)) || index >= facts.count) return facts;
  cudaDeviceProp properties{};
  if (!ask(cudaGetDeviceProperties(&properties, index))) return facts;
  facts.name = properties.name;
  facts.architecture = properties.major * 10 + properties.minor;
  if (!ask(cudaSetDevice(index))) return facts;
  cudaFuncAttributes attributes{};
  const cudaError_t found = cudaFuncGetAttributes(&attributes, probe_kernel);
  facts.has_code = found == cudaSuccess;
  const bool foreign = found == cudaErrorNoKernelImageForDevice || found == cudaErrorInvalidDeviceFunction ||
                       found == cudaErrorUnsupportedPtxVersion;
  if (foreign)
    static_cast<void>(cudaGetLastError());
  else
    ask(found);
  return facts;
}

int cuda_device_count() {
  int count = 0, driver = 0, runtime = 0;
  const bool ready = cudaDriverGetVersion(&driver) == cudaSuccess && cudaRuntimeGetVersion(&runtime) == cudaSuccess &&
                     is_new_enough(driver, runtime) && cudaGetDeviceCount(&count) == cudaSuccess;
  static_cast<void>(cudaGetLastError());
  return ready ? count : 0;
}

std::unique_ptr<Stream> make_cuda_stream(int index) {
  return std::make_unique<CudaStream>(index);
}

std::shared_ptr<const HostWait> host_wait_of(const Stream& stream) {
  return dynamic_cast<const CudaStream&>(stream).host_wait();
}

std::size_t launches_of(const Graph& graph) {
  return dynamic_cast<const CudaGraph&>(graph).launches();
}

std::string describe_cuda(int index) {
  check_usable(index);
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, index));
  int driver = 0, runtime = 0;
  check(cudaDriverGetVersion(&driver));
  check(cudaRuntimeGetVersion(&runtime));
  return join("cuda:", index, ": ", properties.name, " (sm_", properties.major, properties.minor, ", ",
              format_bytes(properties.totalGlobalMem), "), CUDA ", cuda_version_text(runtime), ", driver for ",
              cuda_version_text(driver));
}

}  // namespace twiddle
