#include "framework/cuda/check.h"

#include <filesystem>

#include "framework/error.h"
#include "framework/for_each.h"

namespace twiddle {

namespace {

std::string at(const std::source_location& where) {
  return join(std::filesystem::path(where.file_name()).filename().string(), ":", where.line(), ": ");
}

}  // namespace

void check(cudaError_t status, const std::source_location& where) {
  if (status == cudaSuccess) return;
  static_cast<void>(cudaGetLastError());  // an error that can be recovered from is not met again by the next call
  throw Error(ErrorKind::device, join(at(where), "CUDA: ", cudaGetErrorString(status)));
}

void check(cublasStatus_t status, const std::source_location& where) {
  if (status != CUBLAS_STATUS_SUCCESS)
    throw Error(ErrorKind::device, join(at(where), "cuBLAS: ", cublasGetStatusString(status)));
}

int multiprocessors(const Device& device) {
  int count = 0;
  check(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device.index));
  return count;
}

void make_current(int index) {
  int current = -1;
  check(cudaGetDevice(&current));
  if (current != index) check(cudaSetDevice(index));
}

namespace detail {

void check_launch(const std::source_location& where) {
  check(cudaGetLastError(), where);
}

}  // namespace detail

}  // namespace twiddle
