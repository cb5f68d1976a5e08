#include "framework/cpu/cpu_stream.h"

#include <omp.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>

#include "framework/cpu/free_memory.h"
#include "framework/cpu/gemm.h"
#include "framework/cpu/map_memory.h"
#include "framework/error.h"
#include "framework/pool.h"
#include "framework/text.h"

namespace twiddle {

namespace {

// "AMD EPYC 7J13"; empty on other processors than x86-64.
std::string processor_name() {
  std::string name;
#if defined(__x86_64__)
  constexpr unsigned first_leaf = 0x80000002, last_leaf = 0x80000004;
  for (unsigned leaf = first_leaf; leaf <= last_leaf; ++leaf) {
    std::array<unsigned, 4> words{};
    if (__get_cpuid(leaf, &words[0], &words[1], &words[2], &words[3]) == 0) return {};
    name.append(reinterpret_cast<const char*>(words.data()), sizeof words);
  }
  name.resize(std::strlen(name.c_str()));
  name.erase(name.find_last_not_of(' ') + 1);
  name.erase(0, name.find_first_not_of(' '));
#endif
  return name;
}

class CpuEvent final : public Event {
 public:
  void wait() const override {}
  double milliseconds_since(const Event& earlier) const override {
    return std::chrono::duration<double, std::milli>(time_ - static_cast<const CpuEvent&>(earlier).time_).count();
  }

 private:
  std::chrono::steady_clock::time_point time_ = std::chrono::steady_clock::now();
};

// 64 bytes: a cache line, and the widest vector. Sizes from the pool are multiples of it.
void* allocate_block(std::size_t bytes) {
  void* block = nullptr;
  return posix_memalign(&block, 64, bytes) == 0 ? block : nullptr;
}

// A device whose work is done when the call returns.
class CpuStream final : public Stream {
 public:
  Device device() const override { return {}; }
  void* native() const override { return nullptr; }
  std::shared_ptr<void> allocate(std::size_t bytes) override { return pool_.take(bytes); }
  MemoryUse memory() const override {
    MemoryUse use = pool_.use();
    use.free = free_memory();
    return use;
  }
  void release_unused() override { pool_.release_cached(); }
  void reset_peak() override { pool_.reset_peak(); }
  void copy(void* to, const void* from, std::size_t bytes) override {
    if (bytes > 0) std::memcpy(to, from, bytes);
  }
  std::shared_ptr<Event> copy_async(void* to, const void* from, std::size_t bytes) override {
    copy(to, from, bytes);
    return record_event();
  }
  void wait_event(const Event& event) override { event.wait(); }
  std::shared_ptr<void> allocate_host(std::size_t bytes) override { return pool_.take(bytes); }
  void fill(float* x, std::int64_t count, float value) override { std::fill_n(x, count, value); }
  void gemm(const Gemm& shape, const float* a, const float* b, float* c) override { cpu_gemm(shape, a, b, c); }
  void synchronize() override {}
  std::int64_t synchronizations() const override { return 0; }
  std::shared_ptr<Event> record_event() override { return std::make_shared<CpuEvent>(); }
  void begin_range(const char*) override {}
  void end_range() override {}
  std::unique_ptr<Graph> capture(const std::function<void()>&) override { return nullptr; }
  std::unique_ptr<Graph> capture_again(const std::function<void()>&) override { return nullptr; }
  std::int64_t capture_changes() const override { return 0; }

 private:
  // Large blocks are put on large pages if the system has some: spectra, which are read and written in parts far apart,
  // are then moved up to three times as fast.
  Pool pool_{allocate_block, [](void* block) { std::free(block); }, Pool::Pieces{map_memory, unmap_memory}};
};

}  // namespace

std::unique_ptr<Stream> make_cpu_stream() {
  return std::make_unique<CpuStream>();
}

std::string describe_cpu() {
  std::string vectors = "SSE2";
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f"))
    vectors = "AVX-512";
  else if (__builtin_cpu_supports("avx2"))
    vectors = "AVX2";
#endif
  const std::string name = processor_name();
  return join("cpu: ", name, name.empty() ? "" : ", ", format_count(omp_get_max_threads(), "thread"), ", ", vectors,
              " (", cpu_gemm_library(), ")");
}

}  // namespace twiddle
