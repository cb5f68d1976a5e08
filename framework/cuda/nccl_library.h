#pragma once
#include <cuda_runtime.h>

#include <cstddef>
#include <source_location>

namespace twiddle {

// The NCCL types, constants and functions used here, as in its library since 2.13. The program thus builds without
// NCCL's header and starts without its library.
using NcclComm = struct NcclCommOfLibrary*;
using NcclWindow = struct NcclWindowOfLibrary*;
using NcclResult = int;  // 0: it went well
struct NcclId {
  char bytes[128];
};
constexpr NcclResult nccl_success = 0, nccl_in_progress = 7;
constexpr int nccl_float = 7;  // of its data types
constexpr int nccl_sum = 0;    // of its operations
constexpr int nccl_symmetric_window = 1;

struct Nccl {
  Nccl();  // throws an Error of kind device that says what is missing

  NcclResult (*version)(int* version);  // 22809: 2.28.9
  const char* (*error_string)(NcclResult result);
  const char* (*last_error)(NcclComm comm);
  NcclResult (*unique_id)(NcclId* id);
  NcclResult (*init_rank)(NcclComm* comm, int size, NcclId id, int rank);
  NcclResult (*abort)(NcclComm comm);
  NcclResult (*async_error)(NcclComm comm, NcclResult* result);
  NcclResult (*all_reduce)(const void* from, void* to, std::size_t count, int type, int operation, NcclComm comm,
                           cudaStream_t stream);
  NcclResult (*reduce_scatter)(const void* from, void* to, std::size_t count_of_rank, int type, int operation,
                               NcclComm comm, cudaStream_t stream);
  NcclResult (*all_gather)(const void* from, void* to, std::size_t count_of_rank, int type, NcclComm comm,
                           cudaStream_t stream);
  // From 2.27 on; null: not there.
  NcclResult (*allocate)(void** block, std::size_t bytes);
  NcclResult (*release)(void* block);
  NcclResult (*register_window)(NcclComm comm, void* block, std::size_t bytes, NcclWindow* window, int kind);
};

const Nccl& nccl();  // loaded by the first call; after a failure, the next one retries

// Throws RanksFailed with the caller's line and NCCL's message.
void check_nccl(NcclResult result, const std::source_location& where = std::source_location::current());

}  // namespace twiddle
