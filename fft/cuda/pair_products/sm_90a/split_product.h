#pragma once
#include "fft/cuda/pair_products/pair_kernel.h"

// C = A B of factors that are both split, by wgmma.
namespace twiddle::pairs {

constexpr int split_stages = 4;  // steps in shared memory

struct SharedOfSplit {
  SplitPart<rows_of_a> a[split_stages];
  SplitPart<rows_of_b> b[split_stages];
  small_fft::Barrier are_there[split_stages];
};

// Two steps at a time: while the first one's products are added, tensor cores multiply the second one.
class SplitProduct {
 public:
  __device__ SplitProduct(const Arguments& g, SharedOfSplit& shared)
      : g_(g),
        shared_(shared),
        thread_(static_cast<int>(threadIdx.x)),
        tile_m_(static_cast<int>(blockIdx.x) % g.tiles_m),
        tile_n_(static_cast<int>(blockIdx.x) / g.tiles_m) {
    const std::int64_t matrix = blockIdx.z;
    const int first = static_cast<int>(blockIdx.y) * (g.part / depth);
    steps_ = min(g.part / depth, g.steps - first);
    a_ = g.a + (matrix * g.tiles_m + tile_m_) * g.steps + first;
    b_ = g.split_b + (matrix * g.tiles_n + tile_n_) * g.steps + first;
  }

  __device__ void run() {
    if (thread_ < split_stages) shared_.are_there[thread_].begin(1);
    small_fft::show_to_wgmma();  // and to the copy engine
    __syncthreads();
    for (int step = 0; step < split_stages; ++step) copy(step);
    int step = 0;
    for (; step + 1 < steps_; step += 2) {
      float first[sums_a_thread], second[sums_a_thread];
      begin(step, first);
      begin(step + 1, second);
      add<1>(step, first);
      add<0>(step + 1, second);
      __syncthreads();  // no thread reads these two any more
      copy(step + split_stages), copy(step + 1 + split_stages);
    }
    if (step < steps_) {
      float last[sums_a_thread];
      begin(step, last);
      add<0>(step, last);
    }
    store(g_, sums_, std::int64_t(tile_m_) * rows_of_a, std::int64_t(tile_n_) * rows_of_b, thread_ / 32, thread_ % 32);
  }

 private:
  __device__ void copy(int step) {
    if (step >= steps_ || thread_ != 0) return;
    constexpr int bytes_a = sizeof(SplitPart<rows_of_a>), bytes_b = sizeof(SplitPart<rows_of_b>);
    const int stage = step % split_stages;
    shared_.are_there[stage].expect(bytes_a + bytes_b);
    shared_.are_there[stage].load(&shared_.a[stage], a_ + step, bytes_a);
    shared_.are_there[stage].load(&shared_.b[stage], b_ + step, bytes_b);
  }

  // Starts the multiplication of a step after it has arrived.
  __device__ void begin(int step, float (&products)[sums_a_thread]) {
    const int stage = step % split_stages;
    shared_.are_there[stage].wait(step / split_stages % 2);
    begin_products<true>(shared_.a[stage].fp16, shared_.b[stage].fp16, thread_ / 32, thread_ % 32, products);
  }

  // Waits until at most InFlight steps are still being multiplied, then adds the products.
  template <int InFlight>
  __device__ void add(int step, float (&products)[sums_a_thread]) {
    const int stage = step % split_stages;
    small_fft::wait_for_wgmma<InFlight>();
#pragma unroll
    for (float& product : products) asm volatile("" : "+f"(product)::"memory");  // is read from here on
    add_products(products, shared_.a[stage].back, shared_.b[stage].back, thread_ / 32, thread_ % 32, sums_);
  }

  const Arguments& g_;
  SharedOfSplit& shared_;
  int thread_, tile_m_, tile_n_, steps_;
  const SplitPart<rows_of_a>* a_;
  const SplitPart<rows_of_b>* b_;
  float sums_[sums_a_thread] = {};
};

__global__ void __launch_bounds__(threads, resident) split_product_kernel(const Arguments g) {
  extern __shared__ SplitPart<rows_of_a> memory[];
  SplitProduct(g, *reinterpret_cast<SharedOfSplit*>(memory)).run();
}

}  // namespace twiddle::pairs
