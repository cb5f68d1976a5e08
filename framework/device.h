#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace twiddle {

// Where work runs: the CPU, or one CUDA GPU.
struct Device {
  enum class Kind : std::uint8_t { cpu, cuda } kind = Kind::cpu;
  int index = 0;
  bool operator==(const Device&) const = default;
};

std::string to_string(const Device& device);  // "cpu", "cuda:0"
Device parse_device(std::string_view text);   // "auto", "cpu", "cuda", "cuda:1"; auto selects a GPU if one is usable
std::string describe(const Device& device);   // one line for a header: name, cores or memory, library versions
int cuda_device_count();                      // GPUs this build and machine can use; 0 in a CPU-only build

// A row-major matrix product C = alpha op(A) op(B) + beta C; op(A) is m x k, op(B) k x n, C m x n.
// A leading dimension of 0 means that the rows of the stored matrix follow each other without a gap.
struct Gemm {
  bool transpose_a = false, transpose_b = false;
  std::int64_t m = 0, n = 0, k = 0;
  float alpha = 1, beta = 0;
  std::int64_t lda = 0, ldb = 0, ldc = 0;
  bool tf32 = false;  // the device may round the factors to ten bits after the point (tensor cores)
};

// Bytes that a stream's pool holds: in use by tensors, cached for reuse, and the peak in use. `system_allocations`
// counts requests to the system.
struct MemoryUse {
  std::size_t in_use = 0, cached = 0, peak = 0;
  std::int64_t system_allocations = 0;
  std::size_t free = 0;  // free memory of the device, as the system reports it; 0: not known
};

// A moment in a stream's work.
class Event {
 public:
  virtual ~Event() = default;
  virtual void wait() const = 0;                                      // until the stream reaches this event
  virtual double milliseconds_since(const Event& earlier) const = 0;  // waits, too
};

// Captured work. replay() launches all of it on its stream at once.
class Graph {
 public:
  virtual ~Graph() = default;
  virtual void replay() = 0;
};

// Work in order on one device: CpuStream, CudaStream, and TorchStream of python/, on PyTorch's stream and memory. One
// thread at a time may use a stream; it may be any thread. CUDA launches, allocates and creates handles on the calling
// thread's current GPU. Therefore each operation, including native(), makes the stream's GPU current and leaves it
// current. Call native() before creating a handle or setting a kernel attribute.
class Stream {
 public:
  virtual ~Stream() = default;
  virtual Device device() const = 0;
  // Returns the cudaStream_t for a launch or library call that follows immediately; null on the CPU.
  virtual void* native() const = 0;
  virtual std::shared_ptr<void> allocate(
      std::size_t bytes) = 0;  // 64-byte aligned; the last owner returns it to the pool
  virtual MemoryUse memory() const = 0;
  virtual void release_unused() = 0;                                     // frees cached memory
  virtual void reset_peak() = 0;                                         // the peak starts again from what is in use
  virtual void copy(void* to, const void* from, std::size_t bytes) = 0;  // host or device pointers
  // Copies while later work of the stream runs. The copy starts after all work submitted so far and ends at the event.
  // It is fast only from a block of allocate_host().
  virtual std::shared_ptr<Event> copy_async(void* to, const void* from, std::size_t bytes) = 0;
  virtual void wait_event(const Event& event) = 0;  // work submitted from now on starts after the event
  virtual std::shared_ptr<void> allocate_host(std::size_t bytes) = 0;  // on the host; any thread may call
  virtual void fill(float* x, std::int64_t count, float value) = 0;
  virtual void gemm(const Gemm& shape, const float* a, const float* b, float* c) = 0;
  virtual void synchronize() = 0;
  virtual std::int64_t synchronizations() const = 0;  // how often the host has waited for this stream
  virtual std::shared_ptr<Event> record_event() = 0;
  virtual void begin_range(const char* name) = 0;  // names what follows to a profiler that watches from outside (NVTX)
  virtual void end_range() = 0;
  // Captures what `work` submits to this stream instead of running it; null if the device cannot capture. The work must
  // have run before, because nothing is measured or waited for during capture. It is called twice and must do the same
  // both times: the first call records its allocations, and the second call gets them from one piece of memory.
  // Addresses are the same at each replay: the graph keeps the blocks that the work allocated and freed, and the caller
  // keeps those that the work leaves alive.
  virtual std::unique_ptr<Graph> capture(const std::function<void()>& work) = 0;
  // Captures the same work again, on other memory of the caller. Temporary blocks reuse the memory of the latest
  // capture while its graph lives. This is safe because a stream replays one graph at a time.
  virtual std::unique_ptr<Graph> capture_again(const std::function<void()>& work) = 0;
  // Counts the starts and ends of captures. If the count has changed, earlier work was submitted in a different phase
  // (captured or eager) than current work.
  virtual std::int64_t capture_changes() const = 0;
};

std::unique_ptr<Stream> make_stream(Device device);  // throws ErrorKind::device if there is no such device

// Whether the stream is on a GPU. Some functors map work to GPU threads differently than to CPU threads.
inline bool on_gpu(const Stream& stream) {
  return stream.device().kind == Device::Kind::cuda;
}

}  // namespace twiddle
