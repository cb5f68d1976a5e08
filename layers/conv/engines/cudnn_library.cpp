#include "layers/conv/engines/cudnn_library.h"

#include <dlfcn.h>

#include <filesystem>
#include <string>

#include "framework/error.h"

namespace twiddle {

namespace {

void* open_library() {
  const std::string name = join("libcudnn.so.", CUDNN_MAJOR);
  if (void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
  const std::string reason = dlerror();
  // Where the build found it, which the loader may not search.
  if (void* library = dlopen(TWIDDLE_CUDNN_LIBRARY, RTLD_NOW | RTLD_LOCAL)) return library;
  throw Error(ErrorKind::device,
              join("engine 'cudnn' needs cuDNN ", CUDNN_MAJOR, ", which cannot be loaded: ", reason,
                   "\n  Install it (nvidia-cudnn-cu12 or -cu13 of pip will do) and put the folder of ", name,
                   " on LD_LIBRARY_PATH, or choose another engine: convolution: {engine: gemm}"));
}

template <class Function>
void look_up(void* library, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(dlsym(library, name));
  if (function == nullptr) throw Error(ErrorKind::device, join("the cuDNN that was loaded has no function ", name));
}

}  // namespace

Cudnn::Cudnn() {
  void* const library = open_library();  // stays loaded to the program's end
  look_up(library, "cudnnGetVersion", version);
  look_up(library, "cudnnGetErrorString", error_string);
  look_up(library, "cudnnGetLastErrorString", last_error_string);
  look_up(library, "cudnnCreate", create);
  look_up(library, "cudnnDestroy", destroy);
  look_up(library, "cudnnSetStream", set_stream);

  look_up(library, "cudnnCreateTensorDescriptor", create_tensor);
  look_up(library, "cudnnDestroyTensorDescriptor", destroy_tensor);
  look_up(library, "cudnnSetTensor4dDescriptor", set_tensor);
  look_up(library, "cudnnCreateFilterDescriptor", create_filter);
  look_up(library, "cudnnDestroyFilterDescriptor", destroy_filter);
  look_up(library, "cudnnSetFilter4dDescriptor", set_filter);
  look_up(library, "cudnnCreateConvolutionDescriptor", create_convolution);
  look_up(library, "cudnnDestroyConvolutionDescriptor", destroy_convolution);
  look_up(library, "cudnnSetConvolution2dDescriptor", set_convolution);
  look_up(library, "cudnnSetConvolutionGroupCount", set_groups);
  look_up(library, "cudnnSetConvolutionMathType", set_math);
  look_up(library, "cudnnGetConvolutionForwardWorkspaceSize", forward_workspace);
  look_up(library, "cudnnGetConvolutionBackwardDataWorkspaceSize", backward_input_workspace);
  look_up(library, "cudnnGetConvolutionBackwardFilterWorkspaceSize", backward_weight_workspace);
  look_up(library, "cudnnConvolutionForward", forward);
  look_up(library, "cudnnConvolutionBackwardData", backward_input);
  look_up(library, "cudnnConvolutionBackwardFilter", backward_weight);

  look_up(library, "cudnnBackendCreateDescriptor", create_descriptor);
  look_up(library, "cudnnBackendDestroyDescriptor", destroy_descriptor);
  look_up(library, "cudnnBackendSetAttribute", set_attribute);
  look_up(library, "cudnnBackendGetAttribute", get_attribute);
  look_up(library, "cudnnBackendFinalize", finalize);
  look_up(library, "cudnnBackendExecute", execute);
}

const Cudnn& cudnn() {
  static const Cudnn library;
  return library;
}

void check(cudnnStatus_t status, const std::source_location& where) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  char details[512] = "";
  cudnn().last_error_string(details, sizeof details);
  throw Error(ErrorKind::device,
              join(std::filesystem::path(where.file_name()).filename().string(), ":", where.line(),
                   ": cuDNN: ", cudnn().error_string(status), details[0] != '\0' ? ": " : "", details));
}

}  // namespace twiddle
