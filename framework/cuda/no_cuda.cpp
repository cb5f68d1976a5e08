#include "framework/cuda/cuda_stream.h"
#include "framework/error.h"
#include "framework/gpu_check.h"
#include "framework/ranks/communicator.h"

namespace twiddle {

namespace {

[[noreturn]] void refuse() {
  throw Error(ErrorKind::device,
              "device 'cuda' requested, but this build has no CUDA side: build where the CUDA toolkit and a GPU are "
              "found, or use --device cpu");
}

}  // namespace

int cuda_device_count() {
  return 0;
}

GpuFacts look_at_gpu(int /*index*/) {
  return {};
}

std::unique_ptr<Stream> make_cuda_stream(int /*index*/) {
  refuse();
}

std::string describe_cuda(int /*index*/) {
  refuse();
}

std::unique_ptr<Communicator> make_nccl_ranks(const Launch& /*launch*/) {
  refuse();
}

std::size_t launches_of(const Graph& /*graph*/) {
  refuse();
}

}  // namespace twiddle
