#pragma once
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <map>

// The part of a CUDA runtime that framework/cuda/cuda_stream.cu needs, with two GPUs that compute nothing. As in the
// real runtime, memory and handles belong to the calling thread's current GPU, and calls that use another GPU's are
// refused.
enum cudaError_t {
  cudaSuccess,
  cudaErrorMemoryAllocation,
  cudaErrorInvalidResourceHandle = 400,
  cudaErrorNoKernelImageForDevice,
  cudaErrorInvalidDeviceFunction,
  cudaErrorUnsupportedPtxVersion
};
enum {
  cudaStreamNonBlocking,
  cudaEventRecordDefault = 0,
  cudaEventRecordExternal,
  cudaEventDisableTiming,
  cudaMemcpyDefault,
  cudaStreamCaptureModeRelaxed,
  cudaDevAttrMultiProcessorCount
};
enum cudaStreamCaptureStatus { cudaStreamCaptureStatusNone, cudaStreamCaptureStatusActive };
enum cudaGraphNodeType { cudaGraphNodeTypeKernel, cudaGraphNodeTypeMemcpy, cudaGraphNodeTypeMemset };

struct FakeStream {
  int device;
  bool capturing;
};
struct FakeEvent {
  int device;
};
struct FakeGraph {
  int device;
};
using cudaStream_t = FakeStream*;
using cudaEvent_t = FakeEvent*;
using cudaGraph_t = FakeGraph*;
using cudaGraphExec_t = FakeGraph**;
using cudaGraphNode_t = int;
struct cudaDeviceProp {
  char name[8];
  int major, minor;
  std::size_t totalGlobalMem;
};
struct cudaFuncAttributes {};

#define __global__
#define __CUDA_ARCH_LIST__ 900

namespace fake_cuda {

inline thread_local int current = 0;
inline std::map<void*, int> blocks;  // the GPU that each lies on; -1: on the host

inline cudaError_t only_on(int device) {
  return device == current ? cudaSuccess : cudaErrorInvalidResourceHandle;
}
inline cudaError_t allocate(void** block, std::size_t bytes, int device) {
  *block = std::malloc(bytes);
  blocks[*block] = device;
  return cudaSuccess;
}
inline cudaError_t release(void* block) {
  blocks.erase(block);
  std::free(block);
  return cudaSuccess;
}
template <class T>
cudaError_t destroy(T* handle) {
  delete handle;
  return cudaSuccess;
}

}  // namespace fake_cuda

inline cudaError_t cudaGetDevice(int* device) {
  *device = fake_cuda::current;
  return cudaSuccess;
}
inline cudaError_t cudaSetDevice(int device) {
  fake_cuda::current = device;
  return cudaSuccess;
}
inline cudaError_t cudaGetDeviceCount(int* count) {
  *count = 2;
  return cudaSuccess;
}
inline cudaError_t cudaDriverGetVersion(int* version) {
  *version = 13000;
  return cudaSuccess;
}
inline cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = 13000;
  return cudaSuccess;
}
inline cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  *properties = {"fake", 9, 0, 1 << 30};
  return cudaSuccess;
}
inline cudaError_t cudaDeviceGetAttribute(int* value, int, int) {
  *value = 1;
  return cudaSuccess;
}
template <class Kernel>
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes*, Kernel) {
  return cudaSuccess;
}
inline cudaError_t cudaGetLastError() {
  return cudaSuccess;
}
inline const char* cudaGetErrorString(cudaError_t) {
  return "another GPU is the thread's";
}

inline cudaError_t cudaMalloc(void** block, std::size_t bytes) {
  return fake_cuda::allocate(block, bytes, fake_cuda::current);
}
inline cudaError_t cudaMallocHost(void** block, std::size_t bytes) {
  return fake_cuda::allocate(block, bytes, -1);
}
inline cudaError_t cudaFree(void* block) {
  return fake_cuda::release(block);
}
inline cudaError_t cudaFreeHost(void* block) {
  return fake_cuda::release(block);
}
// GPU 0 has 1000 bytes free, GPU 1 has 1001.
inline cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  *free = 1000 + static_cast<std::size_t>(fake_cuda::current), *total = 2000;
  return cudaSuccess;
}
inline cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, int, cudaStream_t) {
  std::memcpy(to, from, bytes);
  return cudaSuccess;
}

inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, int) {
  *stream = new FakeStream{fake_cuda::current, false};
  return cudaSuccess;
}
inline cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return fake_cuda::destroy(stream);
}
inline cudaError_t cudaStreamSynchronize(cudaStream_t) {
  return cudaSuccess;
}
inline cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t) {
  return cudaSuccess;
}
inline cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  *status = stream->capturing ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  return cudaSuccess;
}
inline cudaError_t cudaStreamBeginCapture(cudaStream_t stream, int) {
  stream->capturing = true;
  return fake_cuda::only_on(stream->device);
}
inline cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  stream->capturing = false;
  *graph = new FakeGraph{stream->device};
  return cudaSuccess;
}

inline cudaError_t cudaEventCreate(cudaEvent_t* event) {
  *event = new FakeEvent{fake_cuda::current};
  return cudaSuccess;
}
inline cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, int) {
  return cudaEventCreate(event);
}
inline cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return fake_cuda::destroy(event);
}
inline cudaError_t cudaEventSynchronize(cudaEvent_t) {
  return cudaSuccess;
}
inline cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t, cudaEvent_t) {
  *milliseconds = 0;
  return cudaSuccess;
}
inline cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, int) {
  return event->device == stream->device ? cudaSuccess : cudaErrorInvalidResourceHandle;
}

inline cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return cudaEventRecordWithFlags(event, stream, cudaEventRecordDefault);
}

inline cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  return fake_cuda::destroy(graph);
}
inline cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, int) {
  *executable = new FakeGraph*(new FakeGraph{*graph});
  return fake_cuda::only_on(graph->device);
}
inline cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  delete *executable;
  return fake_cuda::destroy(executable);
}
inline cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t) {
  return fake_cuda::only_on((*executable)->device);
}
inline cudaError_t cudaGraphGetNodes(cudaGraph_t, cudaGraphNode_t*, std::size_t* count) {
  *count = 0;
  return cudaSuccess;
}
inline cudaError_t cudaGraphNodeGetType(cudaGraphNode_t, cudaGraphNodeType*) {
  return cudaSuccess;
}
