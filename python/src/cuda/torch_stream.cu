#include "python/src/torch_stream.h"

#include <dlfcn.h>
#include <torch/csrc/inductor/aoti_torch/c/shim.h>

#include <algorithm>

#include "framework/cuda/blas_gemm.h"
#include "framework/cuda/check.h"
#include "framework/cuda/cuda_event.h"
#include "framework/cuda/host_wait.h"
#include "framework/error.h"
#include "framework/for_each.h"
#include "framework/gpu_check.h"
#include "python/src/torch_memory.h"

namespace twiddle {

namespace {

struct Fill {
  float value;
  float* x;
  TWIDDLE_HD void operator()(std::int64_t i) const { x[i] = value; }
};

// Looked up in libtorch_cuda at run time: a PyTorch build without CUDA does not have it, so it cannot be linked.
using CurrentStream = AOTITorchError (*)(std::int32_t gpu, void** stream);

CurrentStream find_current_stream() {
  void* const library = dlopen("libtorch_cuda.so", RTLD_NOW | RTLD_NOLOAD);
  void* const found = library != nullptr ? dlsym(library, "aoti_torch_get_current_cuda_stream") : nullptr;
  if (found == nullptr) throw Error(ErrorKind::device, "this PyTorch has no CUDA side");
  return reinterpret_cast<CurrentStream>(found);
}

// Uses PyTorch's current stream and allocator. Nothing here synchronizes, except while a plan is chosen.
class TorchStream final : public Stream {
 public:
  explicit TorchStream(int gpu) : gpu_(gpu), current_stream_(find_current_stream()) {
    if (const std::string why = why_unusable(look_at_gpu(gpu)); !why.empty()) throw Error(ErrorKind::device, why);
  }

  Device device() const override { return {Device::Kind::cuda, gpu_}; }
  void* native() const override { return stream(); }
  std::shared_ptr<void> allocate(std::size_t bytes) override { return torch_block(gpu_, bytes); }
  MemoryUse memory() const override {
    MemoryUse use;
    std::size_t total = 0;
    make_current(gpu_);
    check(cudaMemGetInfo(&use.free, &total));
    return use;
  }
  void release_unused() override {}  // use torch.cuda.empty_cache()
  void reset_peak() override {}
  void copy(void* to, const void* from, std::size_t bytes) override {
    if (bytes > 0) check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream()));
  }
  std::shared_ptr<Event> copy_async(void* to, const void* from, std::size_t bytes) override {
    copy(to, from, bytes);
    return record_event();
  }
  void wait_event(const Event& event) override {
    check(cudaStreamWaitEvent(stream(), static_cast<const CudaEvent&>(event).event()));
  }
  std::shared_ptr<void> allocate_host(std::size_t bytes) override {
    void* block = nullptr;
    check(cudaMallocHost(&block, std::max<std::size_t>(bytes, 1)));
    return {block, [](void* returned) { static_cast<void>(cudaFreeHost(returned)); }};
  }
  void fill(float* x, std::int64_t count, float value) override { for_each_index(*this, count, Fill{value, x}); }
  void synchronize() override {
    ++synchronizations_;
    check(cudaStreamSynchronize(stream()));
  }
  std::int64_t synchronizations() const override { return synchronizations_; }
  std::shared_ptr<Event> record_event() override { return std::make_shared<CudaEvent>(stream(), host_wait_); }
  void begin_range(const char*) override {}
  void end_range() override {}
  std::unique_ptr<Graph> capture(const std::function<void()>&) override { return nullptr; }  // PyTorch captures
  std::unique_ptr<Graph> capture_again(const std::function<void()>&) override { return nullptr; }
  std::int64_t capture_changes() const override { return 0; }  // no state is kept between calls

  // By default cuBLAS allocates a workspace, which a graph cannot capture and two streams must not share.
  void gemm(const Gemm& shape, const float* a, const float* b, float* c) override {
    constexpr std::size_t workspace_bytes = std::size_t(32) << 20;
    const cudaStream_t now = stream();
    if (!blas_.get()) check(cublasCreate(blas_.put()));
    const std::shared_ptr<void> workspace = allocate(workspace_bytes);
    check(cublasSetStream(blas_.get(), now));
    check(cublasSetWorkspace(blas_.get(), workspace.get(), workspace_bytes));
    blas_gemm(blas_.get(), shape, a, b, c);
  }

 private:
  cudaStream_t stream() const {
    make_current(gpu_);
    void* now = nullptr;
    if (current_stream_(gpu_, &now) != TORCH_SUCCESS)
      throw Error(ErrorKind::device, join("PyTorch has no stream on GPU ", gpu_));
    return static_cast<cudaStream_t>(now);
  }

  int gpu_;
  CurrentStream current_stream_;
  std::shared_ptr<HostWait> host_wait_ = std::make_shared<HostWait>();
  std::int64_t synchronizations_ = 0;
  Handle<cublasHandle_t, cublasDestroy> blas_;
};

}  // namespace

std::unique_ptr<Stream> make_torch_stream(Device device) {
  if (device.kind == Device::Kind::cpu) return make_stream(device);
  return std::make_unique<TorchStream>(device.index);
}

bool is_capturing(const Stream& stream) {
  if (stream.device().kind == Device::Kind::cpu) return false;
  cudaStreamCaptureStatus capture{};
  check(cudaStreamIsCapturing(static_cast<cudaStream_t>(stream.native()), &capture));
  return capture != cudaStreamCaptureStatusNone;
}

}  // namespace twiddle
