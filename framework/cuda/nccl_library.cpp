#include "framework/cuda/nccl_library.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "framework/error.h"
#include "framework/ranks/communicator.h"

namespace fs = std::filesystem;

namespace twiddle {

namespace {

constexpr const char* library_name = "libnccl.so.2";

// Python's packages lie side by side: .../nvidia/cu13/lib or .../nvidia/cudnn/lib, and .../nvidia/nccl/lib. So where
// one of them is in use, NCCL is not far.
void add_neighbour(const fs::path& folder_of_library, std::vector<std::string>& files) {
  files.push_back((folder_of_library.parent_path().parent_path() / "nccl" / "lib" / library_name).string());
}

std::vector<std::string> places() {
  std::vector<std::string> files{library_name};
  Dl_info runtime{};
  if (dladdr(reinterpret_cast<const void*>(&cudaGetDeviceCount), &runtime) != 0 && runtime.dli_fname != nullptr)
    add_neighbour(fs::path(runtime.dli_fname).parent_path(), files);
  const char* const searched = std::getenv("LD_LIBRARY_PATH");
  std::string folders = searched != nullptr ? searched : "";
  for (folders += ':'; !folders.empty(); folders.erase(0, folders.find(':') + 1))
    if (const std::string folder = folders.substr(0, folders.find(':')); !folder.empty()) add_neighbour(folder, files);
  return files;
}

void* open_nccl() {
  std::string reason;
  for (const std::string& file : places()) {
    if (void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
    if (reason.empty()) reason = dlerror();
  }
  throw Error(ErrorKind::device, join("GPUs train together by NCCL, which cannot be loaded: ", reason,
                                      "\n  Install it (libnccl2 of NVIDIA's packages, or nvidia-nccl-cu12 or -cu13 of "
                                      "pip) and put the folder of ",
                                      library_name, " on LD_LIBRARY_PATH"));
}

template <class Function>
void look_up_in(void* library, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(dlsym(library, name));
  if (function == nullptr) throw Error(ErrorKind::device, join("the NCCL that was loaded has no function ", name));
}

}  // namespace

Nccl::Nccl() {
  void* const library = open_nccl();  // stays loaded to the program's end
  look_up_in(library, "ncclGetVersion", version);
  look_up_in(library, "ncclGetErrorString", error_string);
  look_up_in(library, "ncclGetLastError", last_error);
  look_up_in(library, "ncclGetUniqueId", unique_id);
  look_up_in(library, "ncclCommInitRank", init_rank);
  look_up_in(library, "ncclCommAbort", abort);
  look_up_in(library, "ncclCommGetAsyncError", async_error);
  look_up_in(library, "ncclAllReduce", all_reduce);
  look_up_in(library, "ncclReduceScatter", reduce_scatter);
  look_up_in(library, "ncclAllGather", all_gather);
  allocate = nullptr, release = nullptr, register_window = nullptr;
  if (dlsym(library, "ncclMemAlloc") == nullptr || dlsym(library, "ncclCommWindowRegister") == nullptr) return;
  look_up_in(library, "ncclMemAlloc", allocate);
  look_up_in(library, "ncclMemFree", release);
  look_up_in(library, "ncclCommWindowRegister", register_window);
}

const Nccl& nccl() {
  static const Nccl library;
  return library;
}

void check_nccl(NcclResult result, const std::source_location& where) {
  if (result == nccl_success) return;
  const char* const details = nccl().last_error(nullptr);
  throw RanksFailed(join(fs::path(where.file_name()).filename().string(), ":", where.line(),
                         ": NCCL: ", nccl().error_string(result), details != nullptr && *details != '\0' ? ": " : "",
                         details != nullptr ? details : ""));
}

}  // namespace twiddle
