#include "fft/cuda/blas.h"

namespace twiddle {

cublasHandle_t Blas::on(Stream& owner, cudaStream_t stream) {
  if (!handle_.get()) check(cublasCreate(handle_.put()));
  if (!workspace_ || stream != stream_) {
    std::shared_ptr<void> workspace = owner.allocate(workspace_bytes_);
    check(cublasSetStream(handle_.get(), stream));  // takes the workspace away
    check(cublasSetWorkspace(handle_.get(), workspace.get(), workspace_bytes_));
    workspace_ = std::move(workspace);
    stream_ = stream;
  }
  return handle_.get();
}

}  // namespace twiddle
