#pragma once
#include <cublas_v2.h>
#include <cuda_runtime.h>

#include <source_location>

#include "framework/device.h"

namespace twiddle {

// Throws an Error of kind device that names the caller's line, where a CUDA or cuBLAS call failed.
void check(cudaError_t status, const std::source_location& where = std::source_location::current());
void check(cublasStatus_t status, const std::source_location& where = std::source_location::current());

int multiprocessors(const Device& device);  // of a GPU
void make_current(int index);               // sets the calling thread's GPU if it differs

// Unique owner of a library's handle; destroyed by the function in its type. The destructor ignores errors: CUDA may
// already be shut down.
template <class T, auto destroy>
class Handle {
 public:
  Handle() = default;
  explicit Handle(T handle) : handle_(handle) {}
  ~Handle() { reset(); }
  Handle(Handle&& other) noexcept : handle_(other.handle_) { other.handle_ = {}; }
  Handle& operator=(Handle&& other) noexcept {
    if (this != &other) {
      reset();
      handle_ = other.handle_;
      other.handle_ = {};
    }
    return *this;
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

  T get() const { return handle_; }
  T* put() {  // for calls that create: cudaStreamCreate(handle.put())
    reset();
    return &handle_;
  }

 private:
  void reset() {
    if (handle_ != T{}) static_cast<void>(destroy(handle_));
    handle_ = {};
  }
  T handle_{};
};

}  // namespace twiddle
