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
Device parse_device(std::string_view text);   // "auto", "cpu", "cuda", "cuda:1"; auto takes a GPU where one can be used
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

// Bytes a stream's pool holds: in use by tensors, kept for reuse, and the most ever in use; and how often it had to ask
// the system for more.
struct MemoryUse {
  std::size_t in_use = 0, cached = 0, peak = 0;
  std::int64_t system_allocations = 0;
  std::size_t free = 0;  // what the system has left, on the device, for everybody; 0: not known
};

// A moment in a stream's work.
class Event {
 public:
  virtual ~Event() = default;
  virtual void wait() const = 0;                                      // until the stream has come to this event
  virtual double milliseconds_since(const Event& earlier) const = 0;  // waits, too
};

// Work captured once, which replay() puts onto its stream again as one launch.
class Graph {
 public:
  virtual ~Graph() = default;
  virtual void replay() = 0;
};

// Work in order on one device: CpuStream, CudaStream, and TorchStream of python/, on PyTorch's stream and memory. One
// thread at a time uses a stream; that may be any, whatever other streams it uses between: CUDA launches, allocates and
// makes handles on a thread's current GPU, so every operation of a stream, native() too, first makes the stream's GPU
// the calling thread's, and leaves it so. Nobody else relies on the current GPU: a handle or a kernel's attribute is
// made after native().
class Stream {
 public:
  virtual ~Stream() = default;
  virtual Device device() const = 0;
  // cudaStream_t, for a launch or a library's call right behind; null on the CPU.
  virtual void* native() const = 0;
  virtual std::shared_ptr<void> allocate(
      std::size_t bytes) = 0;  // 64-byte aligned; the last owner returns it to the pool
  virtual MemoryUse memory() const = 0;
  virtual void release_unused() = 0;                                     // gives what lies idle back to the system
  virtual void reset_peak() = 0;                                         // the peak starts again from what is in use
  virtual void copy(void* to, const void* from, std::size_t bytes) = 0;  // host or device pointers
  // The same beside the stream's work: begins after what the stream has been given so far, and ends at the event. Fast
  // from a block of allocate_host alone.
  virtual std::shared_ptr<Event> copy_async(void* to, const void* from, std::size_t bytes) = 0;
  virtual void wait_event(const Event& event) = 0;  // what the stream is given from now on begins after the event
  virtual std::shared_ptr<void> allocate_host(std::size_t bytes) = 0;  // on the host; any thread may ask
  virtual void fill(float* x, std::int64_t count, float value) = 0;
  virtual void gemm(const Gemm& shape, const float* a, const float* b, float* c) = 0;
  virtual void synchronize() = 0;
  virtual std::int64_t synchronizations() const = 0;  // how often the host has waited for this stream
  virtual std::shared_ptr<Event> record_event() = 0;
  virtual void begin_range(const char* name) = 0;  // names what follows to a profiler that watches from outside (NVTX)
  virtual void end_range() = 0;
  // Captures what `work` would do on this stream instead of doing it; null where the device cannot. The work must
  // have run before (nothing is measured or waited for while it is captured), and is called twice, to do the same:
  // the first time tells what memory it takes and when, so that the second finds it in one piece. It finds the same
  // addresses at each replay: the graph keeps the blocks that the work took and gave back, and the caller keeps what
  // it leaves alive.
  virtual std::unique_ptr<Graph> capture(const std::function<void()>& work) = 0;
  // Captures the same work once more, on other memory of the caller's: what it takes and gives back lies in the
  // piece of memory of the latest capture, as long as its graph lives, for a stream replays one at a time.
  virtual std::unique_ptr<Graph> capture_again(const std::function<void()>& work) = 0;
  // How often a capture has begun or ended: where this has changed, what was computed before was computed at another
  // time than what is computed now.
  virtual std::int64_t capture_changes() const = 0;
};

std::unique_ptr<Stream> make_stream(Device device);  // throws ErrorKind::device where this build or machine has none

// Whether the work goes to a GPU, where some functors map it to threads in another way than to the CPU's.
inline bool on_gpu(const Stream& stream) {
  return stream.device().kind == Device::Kind::cuda;
}

}  // namespace twiddle
