#include "framework/for_each.h"

#include "framework/error.h"

namespace twiddle::detail {

void refuse_gpu(const Stream& stream, const char* loop) {
  throw Error(join("a loop that was compiled for the CPU only cannot run on ", to_string(stream.device()), ": ", loop,
                   "\n  Rename the file that calls it from .cpp to .cu, so that nvcc compiles it for GPUs, too."));
}

}  // namespace twiddle::detail
