#pragma once
#include <cudnn.h>

#include <source_location>

#include "framework/cuda/check.h"

namespace twiddle {

// cuDNN's functions, looked up by name. The program is not linked against cuDNN, so that it starts, and works with the
// other engines, where libcudnn is missing; libcudnn.so.9 in turn loads its parts when they are first used.
class Cudnn {
  // Converts to the type of the function that it points to.
  struct Symbol {
    void* address;
    template <class Function>
    operator Function*() const {
      return reinterpret_cast<Function*>(address);
    }
  };
  Symbol find(const char* name) const;

  void* library_;  // stays loaded to the program's end

 public:
  Cudnn();  // throws an Error of kind device that says what is missing

  decltype(&cudnnGetVersion) version = find("cudnnGetVersion");
  decltype(&cudnnGetErrorString) error_string = find("cudnnGetErrorString");
  decltype(&cudnnGetLastErrorString) last_error_string = find("cudnnGetLastErrorString");
  decltype(&cudnnCreate) create = find("cudnnCreate");
  decltype(&cudnnDestroy) destroy = find("cudnnDestroy");
  decltype(&cudnnSetStream) set_stream = find("cudnnSetStream");

  decltype(&cudnnCreateTensorDescriptor) create_tensor = find("cudnnCreateTensorDescriptor");
  decltype(&cudnnDestroyTensorDescriptor) destroy_tensor = find("cudnnDestroyTensorDescriptor");
  decltype(&cudnnSetTensor4dDescriptor) set_tensor = find("cudnnSetTensor4dDescriptor");
  decltype(&cudnnCreateFilterDescriptor) create_filter = find("cudnnCreateFilterDescriptor");
  decltype(&cudnnDestroyFilterDescriptor) destroy_filter = find("cudnnDestroyFilterDescriptor");
  decltype(&cudnnSetFilter4dDescriptor) set_filter = find("cudnnSetFilter4dDescriptor");
  decltype(&cudnnCreateConvolutionDescriptor) create_convolution = find("cudnnCreateConvolutionDescriptor");
  decltype(&cudnnDestroyConvolutionDescriptor) destroy_convolution = find("cudnnDestroyConvolutionDescriptor");
  decltype(&cudnnSetConvolution2dDescriptor) set_convolution = find("cudnnSetConvolution2dDescriptor");
  decltype(&cudnnSetConvolutionGroupCount) set_groups = find("cudnnSetConvolutionGroupCount");
  decltype(&cudnnSetConvolutionMathType) set_math = find("cudnnSetConvolutionMathType");
  decltype(&cudnnGetConvolutionForwardWorkspaceSize) forward_workspace =
      find("cudnnGetConvolutionForwardWorkspaceSize");
  decltype(&cudnnGetConvolutionBackwardDataWorkspaceSize) backward_input_workspace =
      find("cudnnGetConvolutionBackwardDataWorkspaceSize");
  decltype(&cudnnGetConvolutionBackwardFilterWorkspaceSize) backward_weight_workspace =
      find("cudnnGetConvolutionBackwardFilterWorkspaceSize");
  decltype(&cudnnConvolutionForward) forward = find("cudnnConvolutionForward");
  decltype(&cudnnConvolutionBackwardData) backward_input = find("cudnnConvolutionBackwardData");
  decltype(&cudnnConvolutionBackwardFilter) backward_weight = find("cudnnConvolutionBackwardFilter");

  decltype(&cudnnBackendCreateDescriptor) create_descriptor = find("cudnnBackendCreateDescriptor");
  decltype(&cudnnBackendDestroyDescriptor) destroy_descriptor = find("cudnnBackendDestroyDescriptor");
  decltype(&cudnnBackendSetAttribute) set_attribute = find("cudnnBackendSetAttribute");
  decltype(&cudnnBackendGetAttribute) get_attribute = find("cudnnBackendGetAttribute");
  decltype(&cudnnBackendFinalize) finalize = find("cudnnBackendFinalize");
  decltype(&cudnnBackendExecute) execute = find("cudnnBackendExecute");
};

const Cudnn& cudnn();  // loaded by the first call; where that fails, the next one tries again

// Throws an Error of kind device with the caller's line and cuDNN's message.
void check(cudnnStatus_t status, const std::source_location& where = std::source_location::current());

template <auto function, class T>
cudnnStatus_t destroy_by(T handle) {
  return (cudnn().*function)(handle);
}
template <class T, auto function>
using CudnnOwner = Handle<T, destroy_by<function, T>>;

using CudnnHandle = CudnnOwner<cudnnHandle_t, &Cudnn::destroy>;
using CudnnTensor = CudnnOwner<cudnnTensorDescriptor_t, &Cudnn::destroy_tensor>;
using CudnnFilter = CudnnOwner<cudnnFilterDescriptor_t, &Cudnn::destroy_filter>;
using CudnnConvolution = CudnnOwner<cudnnConvolutionDescriptor_t, &Cudnn::destroy_convolution>;
using CudnnDescriptor = CudnnOwner<cudnnBackendDescriptor_t, &Cudnn::destroy_descriptor>;

}  // namespace twiddle
