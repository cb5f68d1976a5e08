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

}  // namespace

Cudnn::Cudnn() : library_(open_library()) {}

Cudnn::Symbol Cudnn::find(const char* name) const {
  void* const address = dlsym(library_, name);
  if (address == nullptr) throw Error(ErrorKind::device, join("the cuDNN that was loaded has no function ", name));
  return {address};
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
