#pragma once
#include "fft/cuda/device/dependent_launch.h"
#include "fft/cuda/device/register_fft.h"
#include "fft/cuda/device/registers_of_warps.h"
#include "fft/cuda/tensor_core/ring.h"
#include "fft/cuda/tensor_core/wgmma.h"

// The kernel of all products on Hopper's tensor cores: producers fill the stages of a ring in shared memory, consumers
// multiply them. README.md explains it; a Task says what is multiplied:
//
//   Arguments         of the kernel: `tiles`, their number, and `taken`, the tiles begun so far, or null
//   Work              (arguments, tile): the tile of C and its `first_step` and `steps` along k
//   Stage             the panels of a step; Extra: what else the block shares
//   Loader            (arguments, shared, group, thread): takes_part(), begin(work), fill(stage, full, step)
//                     `arrivals`: on `full`, by all producers together
//   Consumer          (arguments, shared, group, thread): fetch(step) and load(stage) bring a step's A and B,
//                     a(plane, k16) and b(plane, k16) give them, multiply() is a term, store(work, sums) ends a tile
//   terms, k16s       the products of a step, of 16 k each
//   sums, sums_a_thread, keeps    sums of a tile, their numbers in a thread; whether tensor cores add steps to them
//   stages, producers, consumers, producer_registers, consumer_registers    of the block; warpgroups of 128 threads
namespace twiddle::tensor_core {

template <class Task>
struct alignas(1024) Shared {
  typename Task::Stage stages[Task::stages];
  int tiles[Task::stages];  // the stages' tiles; arguments.tiles after the last one
  Barrier full[Task::stages], empty[Task::stages];
  typename Task::Extra extra;
};

template <class Task>
constexpr int threads_of = 128 * (Task::producers + Task::consumers);

// Blocks take tiles in turn. If another kernel occupies some multiprocessors, their blocks begin late and would delay
// their tiles: then the next free block takes each.
template <class Arguments>
__device__ int first_tile(const Arguments& arguments) {
  return arguments.taken != nullptr ? atomicAdd(arguments.taken, 1) : static_cast<int>(blockIdx.x);
}
template <class Arguments>
__device__ int next_tile(int tile, const Arguments& arguments) {
  return arguments.taken != nullptr ? atomicAdd(arguments.taken, 1) : tile + static_cast<int>(gridDim.x);
}

// All products of a step. The first of each sum starts from zero unless Keep.
template <class Task, bool Keep>
__device__ void multiply_terms(const typename Task::Consumer& consumer,
                               float (&sums)[Task::sums][Task::sums_a_thread]) {
  small_fft::begin_wgmma();
  small_fft::unrolled<Task::k16s>([&](auto k16) {
    small_fft::unrolled<Task::terms.count>([&](auto i) {
      constexpr Term term = Task::terms.of[decltype(i)::value];
      constexpr bool keep = Keep || decltype(k16)::value > 0 || !Task::terms.is_first(decltype(i)::value);
      Task::template multiply<term.sign, keep>(sums[term.out], consumer.a(term.a, k16), consumer.b(term.b, k16));
    });
  });
  small_fft::commit_wgmma();
  small_fft::wait_for_wgmma();
}

// Tensor cores truncate sums. Where that matters they add the products of one step, and fp32 adders add the steps.
template <class Task, class Release>
__device__ void add_step(const typename Task::Consumer& consumer, float (&sums)[Task::sums][Task::sums_a_thread],
                         const Release& release) {
  if constexpr (Task::keeps) {
    multiply_terms<Task, true>(consumer, sums);
    release();
  } else {
    float products[Task::sums][Task::sums_a_thread];
    multiply_terms<Task, false>(consumer, products);
    release();
#pragma unroll
    for (int sum = 0; sum < Task::sums; ++sum)
#pragma unroll
      for (int i = 0; i < Task::sums_a_thread; ++i) sums[sum][i] += products[sum][i];
  }
}

template <class Task>
__device__ void produce(const typename Task::Arguments& arguments, Shared<Task>& shared, int group, int thread) {
  typename Task::Loader loader(arguments, shared, group, thread);
  if (!loader.takes_part()) return;
  const bool leads = group == 0 && thread == 0;
  Turn<Task::stages> turn;
  int tile = first_tile(arguments);
  for (int next; tile < arguments.tiles; tile = next) {
    next = next_tile(tile, arguments);
    const typename Task::Work work(arguments, tile);
    loader.begin(work);
    for (int step = 0; step < work.steps; ++step, turn.advance()) {
      shared.empty[turn.stage].wait(turn.phase ^ 1);
      if (leads) shared.tiles[turn.stage] = tile;
      loader.fill(shared.stages[turn.stage], shared.full[turn.stage], work.first_step + step);
    }
  }
  shared.empty[turn.stage].wait(turn.phase ^ 1);
  if (leads) shared.tiles[turn.stage] = arguments.tiles;
  shared.full[turn.stage].arrive();
}

template <class Task>
__device__ void consume(const typename Task::Arguments& arguments, Shared<Task>& shared, int group, int thread) {
  typename Task::Consumer consumer(arguments, shared, group, thread);
  Turn<Task::stages> turn;
  while (true) {
    shared.full[turn.stage].wait(turn.phase);
    const int tile = shared.tiles[turn.stage];
    if (tile == arguments.tiles) return;
    float sums[Task::sums][Task::sums_a_thread] = {};
    int step = typename Task::Work(arguments, tile).first_step;
    for (int left = typename Task::Work(arguments, tile).steps; left > 0; --left, ++step, turn.advance()) {
      consumer.fetch(step);
      shared.full[turn.stage].wait(turn.phase);
      consumer.load(shared.stages[turn.stage]);
      add_step<Task>(consumer, sums, [&] { shared.empty[turn.stage].arrive(); });
    }
    consumer.store(typename Task::Work(arguments, tile), sums);
  }
}

template <class Task>
__global__ void __launch_bounds__(threads_of<Task>, 1)
    tile_kernel(const __grid_constant__ typename Task::Arguments arguments, bool /*dependents_early*/) {
  extern __shared__ __align__(1024) char memory[];
  auto& shared = *reinterpret_cast<Shared<Task>*>(memory);
  if (threadIdx.x == 0) {
    // Every thread arrives, not one of each warp: racecheck follows only threads that do, and the times are the same.
    for (int stage = 0; stage < Task::stages; ++stage)
      shared.full[stage].begin(Task::Loader::arrivals), shared.empty[stage].begin(128 * Task::consumers);
    small_fft::show_to_wgmma();
  }
  small_fft::grid_dependency_wait();
  __syncthreads();
  const int group = static_cast<int>(threadIdx.x) / 128, thread = static_cast<int>(threadIdx.x) % 128;
  if (group < Task::consumers) {
    small_fft::take_registers<Task::consumer_registers>();
    consume<Task>(arguments, shared, group, thread);
  } else {
    small_fft::give_registers<Task::producer_registers>();
    produce<Task>(arguments, shared, group - Task::consumers, thread);
  }
}

}  // namespace twiddle::tensor_core
