#pragma once

// Clusters of blocks (sm_90 and later; CUDA Programming Guide, "Thread Block Clusters"): blocks that run at the same
// time and read each other's shared memory. On older GPUs a block is a cluster by itself.
namespace twiddle::cluster {

#if __CUDA_ARCH__ >= 900
// What the thread has written before can be seen by all threads of the cluster once they have waited for its arrival.
__device__ inline void fence() {
  asm volatile("fence.acq_rel.cluster;" ::: "memory");
}
// A warp arrives once: all its threads have to come here together, or the barrier counts wrong and never opens. The
// arrival itself publishes nothing, since that would wait for all that the threads have stored in global memory.
__device__ inline void arrive() {
  asm volatile("barrier.cluster.arrive.relaxed;" ::: "memory");
}
__device__ inline void wait() {
  asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
}
// What another block of the cluster has where this block has `own`, in shared memory.
template <class T>
__device__ inline const T* in_block(const T* own, int rank) {
  const T* theirs;
  asm volatile("mapa.u64 %0, %1, %2;" : "=l"(theirs) : "l"(own), "r"(rank));
  return theirs;
}
#else
__device__ inline void fence() {}
__device__ inline void arrive() {}
__device__ inline void wait() {
  __syncthreads();
}
template <class T>
__device__ inline const T* in_block(const T* own, int) {
  return own;
}
#endif

}  // namespace twiddle::cluster
