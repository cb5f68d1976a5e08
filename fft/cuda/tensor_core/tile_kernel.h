#pragma once
#include "fft/cuda/device/dependent_launch.h"
#include "fft/cuda/device/register_fft.h"
#include "fft/cuda/device/registers_of_warps.h"
#include "fft/cuda/tensor_core/ring.h"
#include "fft/cuda/tensor_core/wgmma.h"

// The kernel of products on Hopper's tensor cores: producers fill the stages of a ring in shared memory, consumers
// multiply them. README.md explains it. A Task says what is multiplied:
//
//   Arguments   of the kernel: `tiles`, their number, and `taken`, the number of tiles begun so far, or null
//   Work        (arguments, tile): the tile of C, and its `first_step` and `steps` along k
//   Stage       the panels of a step
//   Extra       what else the block shares
//   Loader      (arguments, shared, group, thread), by threads of which takes_part(thread) is true:
//     arrivals            on the barrier `full`, by all producers together
//     has_step(), tile()  whether a step is left, and its tile
//     fill(stage, full)   fills a stage with the step, and moves on
//   Consumer    (arguments, shared, group, thread):
//     fetch(step), load(stage)   before and after the step has arrived
//     load_a(chunk)              A of a chunk of k, if it must be in registers
//     has(chunk)                 false beyond the last k
//     a(plane, k16), b(plane, k16, piece)
//     add(piece, products, sums, release)   the products of a step; not if `keeps`
//     store(work, sums)                     a complete tile
//   multiply<Sign, Keep>(sums, a, b)   a term
//   terms, k16s, k16s_at_once          the products of a step; its groups of 16 k, and those of a chunk
//   pieces, sums, sums_a_thread        of C's columns, one after another; sums of a piece (re and im), and in a thread
//   keeps                              whether tensor cores add the steps to the sums
//   stages, producers, consumers       of the ring; warpgroups of 128 threads
//   producer_registers, consumer_registers   of a thread
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

// A loader's way through all steps of all tiles of a block. Blocks take tiles in turn. If another kernel occupies some
// multiprocessors, their blocks begin late and would delay their tiles: then the next free block takes each.
template <class Arguments, class Work>
class StepsOfBlock {
 public:
  __device__ explicit StepsOfBlock(const Arguments& arguments)
      : arguments_(arguments), tile_(arguments.taken != nullptr ? take() : static_cast<int>(blockIdx.x)) {
    begin_tile();
  }
  __device__ bool has_step() const { return tile_ < arguments_.tiles; }
  __device__ int tile() const { return tile_; }
  __device__ Work work() const { return Work(arguments_, tile_); }
  __device__ int step() const { return step_; }
  __device__ void advance() {
    ++step_;
    if (--left_ > 0) return;
    tile_ = next_;
    begin_tile();
  }

 private:
  __device__ int take() const { return atomicAdd(arguments_.taken, 1); }
  __device__ void begin_tile() {
    if (!has_step()) return;
    next_ = arguments_.taken != nullptr ? take() : tile_ + static_cast<int>(gridDim.x);
    const Work work(arguments_, tile_);
    step_ = work.first_step, left_ = work.steps;
  }

  const Arguments& arguments_;
  int tile_, next_ = 0, step_ = 0, left_ = 0;
};

template <class Task>
using Sums = float[Task::sums][Task::sums_a_thread];

// All products of a step and a piece. The first of each sum starts from zero unless Keep.
template <class Task, bool Keep, int Piece>
__device__ void multiply_terms(typename Task::Consumer& consumer, Sums<Task>& sums) {
  constexpr int at_once = Task::k16s_at_once;
  small_fft::unrolled<Task::k16s / at_once>([&](auto chunk) {
    constexpr int first = decltype(chunk)::value * at_once;
    if (!consumer.has(chunk)) return;
    if constexpr (Piece == 0 || Task::k16s > at_once) consumer.load_a(chunk);
    small_fft::begin_wgmma();
    small_fft::unrolled<at_once * Task::terms.count>([&](auto i) {
      constexpr int k16 = first + decltype(i)::value / Task::terms.count;
      constexpr Term term = Task::terms.of[decltype(i)::value % Task::terms.count];
      constexpr bool keep = Keep || k16 > 0 || !Task::terms.is_first(decltype(i)::value % Task::terms.count);
      Task::template multiply<term.sign, keep>(sums[term.out], consumer.a(term.a, k16), consumer.b(term.b, k16, Piece));
    });
    small_fft::commit_wgmma();
    small_fft::wait_for_wgmma();
  });
}

// Tensor cores truncate sums. Where that matters they add the products of one step, and fp32 adders add the steps.
template <class Task, class Release>
__device__ void add_step(typename Task::Consumer& consumer, Sums<Task> (&sums)[Task::pieces], const Release& release) {
  small_fft::unrolled<Task::pieces>([&](auto piece) {
    constexpr int i = decltype(piece)::value;
    const auto release_last = [&] {
      if constexpr (i + 1 == Task::pieces) release();
    };
    if constexpr (Task::keeps) {
      multiply_terms<Task, true, i>(consumer, sums[i]);
      release_last();
    } else {
      Sums<Task> products;
      multiply_terms<Task, false, i>(consumer, products);
      consumer.add(i, products, sums[i], release_last);
    }
  });
}

// What a Consumer's add() is if steps have no scales.
template <class Task, class Release>
__device__ void add_plain(const Sums<Task>& products, Sums<Task>& sums, const Release& release) {
  release();
#pragma unroll
  for (int sum = 0; sum < Task::sums; ++sum)
#pragma unroll
    for (int i = 0; i < Task::sums_a_thread; ++i) sums[sum][i] += products[sum][i];
}

template <class Task>
__device__ void produce(const typename Task::Arguments& arguments, Shared<Task>& shared, int group, int thread) {
  if (!Task::Loader::takes_part(thread)) return;
  typename Task::Loader loader(arguments, shared, group, thread);
  const bool leads = group == 0 && thread == 0;
  Turn<Task::stages> turn;
  for (; loader.has_step(); turn.advance()) {
    shared.empty[turn.stage].wait(turn.phase ^ 1);
    if (leads) shared.tiles[turn.stage] = loader.tile();
    loader.fill(shared.stages[turn.stage], shared.full[turn.stage]);
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
    Sums<Task> sums[Task::pieces] = {};
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
