#pragma once
#include <cudnn.h>

#include <source_location>

#include "framework/cuda/check.h"

namespace twiddle {

// cuDNN's functions, looked up by name. The program is not linked against cuDNN, so that it starts, and works with the
// other engines, where libcudnn is missing; libcudnn.so.9 in turn loads its parts when they are first used.
struct Cudnn {
  Cudnn();  // throws an Error of kind device that says what is missing

  decltype(&cudnnGetVersion) version;
  decltype(&cudnnGetErrorString) error_string;
  decltype(&cudnnGetLastErrorString) last_error_string;
  decltype(&cudnnCreate) create;
  decltype(&cudnnDestroy) destroy;
  decltype(&cudnnSetStream) set_stream;

  decltype(&cudnnCreateTensorDescriptor) create_tensor;
  decltype(&cudnnDestroyTensorDescriptor) destroy_tensor;
  decltype(&cudnnSetTensor4dDescriptor) set_tensor;
  decltype(&cudnnCreateFilterDescriptor) create_filter;
  decltype(&cudnnDestroyFilterDescriptor) destroy_filter;
  decltype(&cudnnSetFilter4dDescriptor) set_filter;
  decltype(&cudnnCreateConvolutionDescriptor) create_convolution;
  decltype(&cudnnDestroyConvolutionDescriptor) destroy_convolution;
  decltype(&cudnnSetConvolution2dDescriptor) set_convolution;
  decltype(&cudnnSetConvolutionGroupCount) set_groups;
  decltype(&cudnnSetConvolutionMathType) set_math;
  decltype(&cudnnGetConvolutionForwardWorkspaceSize) forward_workspace;
  decltype(&cudnnGetConvolutionBackwardDataWorkspaceSize) backward_input_workspace;
  decltype(&cudnnGetConvolutionBackwardFilterWorkspaceSize) backward_weight_workspace;
  decltype(&cudnnConvolutionForward) forward;
  decltype(&cudnnConvolutionBackwardData) backward_input;
  decltype(&cudnnConvolutionBackwardFilter) backward_weight;

  decltype(&cudnnBackendCreateDescriptor) create_descriptor;
  decltype(&cudnnBackendDestroyDescriptor) destroy_descriptor;
  decltype(&cudnnBackendSetAttribute) set_attribute;
  decltype(&cudnnBackendGetAttribute) get_attribute;
  decltype(&cudnnBackendFinalize) finalize;
  decltype(&cudnnBackendExecute) execute;
};

const Cudnn& cudnn();  // loaded by the first call; where that fails, the next one tries again

// Throws an Error of kind device with the caller's line and cuDNN's own words.
void check(cudnnStatus_t status, const std::source_location& where = std::source_location::current());

namespace detail {

inline cudnnStatus_t destroy(cudnnHandle_t handle) {
  return cudnn().destroy(handle);
}
inline cudnnStatus_t destroy_tensor(cudnnTensorDescriptor_t tensor) {
  return cudnn().destroy_tensor(tensor);
}
inline cudnnStatus_t destroy_filter(cudnnFilterDescriptor_t filter) {
  return cudnn().destroy_filter(filter);
}
inline cudnnStatus_t destroy_convolution(cudnnConvolutionDescriptor_t convolution) {
  return cudnn().destroy_convolution(convolution);
}
inline cudnnStatus_t destroy_descriptor(cudnnBackendDescriptor_t descriptor) {
  return cudnn().destroy_descriptor(descriptor);
}

}  // namespace detail

using CudnnHandle = Handle<cudnnHandle_t, detail::destroy>;
using CudnnTensor = Handle<cudnnTensorDescriptor_t, detail::destroy_tensor>;
using CudnnFilter = Handle<cudnnFilterDescriptor_t, detail::destroy_filter>;
using CudnnConvolution = Handle<cudnnConvolutionDescriptor_t, detail::destroy_convolution>;
using CudnnDescriptor = Handle<cudnnBackendDescriptor_t, detail::destroy_descriptor>;

}  // namespace twiddle
