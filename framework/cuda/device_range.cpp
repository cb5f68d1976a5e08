#include "framework/cuda/device_range.h"

#include "framework/cuda/check.h"
#include "framework/cuda/driver_function.h"

namespace twiddle {

namespace {

// The driver's functions for virtual memory: CUDA Driver API, section "Virtual Memory Management".
struct VirtualMemory {
  decltype(&cuMemAddressReserve) reserve = driver_function<decltype(&cuMemAddressReserve)>("cuMemAddressReserve");
  decltype(&cuMemAddressFree) release = driver_function<decltype(&cuMemAddressFree)>("cuMemAddressFree");
  decltype(&cuMemCreate) create = driver_function<decltype(&cuMemCreate)>("cuMemCreate");
  decltype(&cuMemRelease) drop = driver_function<decltype(&cuMemRelease)>("cuMemRelease");
  decltype(&cuMemMap) map = driver_function<decltype(&cuMemMap)>("cuMemMap");
  decltype(&cuMemUnmap) unmap = driver_function<decltype(&cuMemUnmap)>("cuMemUnmap");
  decltype(&cuMemSetAccess) allow = driver_function<decltype(&cuMemSetAccess)>("cuMemSetAccess");
  bool complete() const { return reserve && release && create && drop && map && unmap && allow; }
};

class MappedRange final : public DeviceRange {
 public:
  MappedRange(int index, const VirtualMemory& memory, CUdeviceptr begin, std::size_t bytes)
      : index_(index), memory_(memory), begin_(begin), bytes_(bytes) {}
  ~MappedRange() override { static_cast<void>(memory_.release(begin_, bytes_)); }
  MappedRange(const MappedRange&) = delete;
  MappedRange& operator=(const MappedRange&) = delete;

  void* map(void* at, std::size_t bytes) override {
    make_current(index_);
    const CUdeviceptr begin = at == nullptr ? begin_ : reinterpret_cast<CUdeviceptr>(at);
    if (begin + bytes > begin_ + bytes_) return nullptr;
    for (std::size_t done = 0; done < bytes; done += chunk)
      if (!map_chunk(begin + done)) {
        unmap_chunks(begin, done);
        return nullptr;
      }
    CUmemAccessDesc access{};
    access.location = location();
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    if (memory_.allow(begin, bytes, &access, 1) == CUDA_SUCCESS) return reinterpret_cast<void*>(begin);
    unmap_chunks(begin, bytes);
    return nullptr;
  }

  void unmap(void* begin, std::size_t bytes) override {
    if (!capturing && (cudaSetDevice(index_) != cudaSuccess || cudaDeviceSynchronize() != cudaSuccess))
      static_cast<void>(cudaGetLastError());
    unmap_chunks(reinterpret_cast<CUdeviceptr>(begin), bytes);
  }

 private:
  CUmemLocation location() const {
    CUmemLocation here{};
    here.type = CU_MEM_LOCATION_TYPE_DEVICE;
    here.id = index_;
    return here;
  }

  bool map_chunk(CUdeviceptr at) const {
    CUmemAllocationProp kind{};
    kind.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    kind.location = location();
    CUmemGenericAllocationHandle handle = 0;
    if (memory_.create(&handle, chunk, &kind, 0) != CUDA_SUCCESS) return false;
    const bool mapped = memory_.map(at, chunk, 0, handle, 0) == CUDA_SUCCESS;
    static_cast<void>(memory_.drop(handle));  // the memory stays as long as it is mapped
    return mapped;
  }

  void unmap_chunks(CUdeviceptr begin, std::size_t bytes) const {
    for (std::size_t done = 0; done < bytes; done += chunk) static_cast<void>(memory_.unmap(begin + done, chunk));
  }

  int index_;
  VirtualMemory memory_;
  CUdeviceptr begin_;
  std::size_t bytes_;
};

}  // namespace

std::shared_ptr<DeviceRange> DeviceRange::reserve(int index) {
  const VirtualMemory memory;
  if (!memory.complete()) return nullptr;
  // More than there is memory: freed chunks leave gaps that are too small for some requests.
  constexpr std::size_t bytes = std::size_t(1) << 40;
  CUdeviceptr begin = 0;
  if (cudaSetDevice(index) != cudaSuccess) {
    static_cast<void>(cudaGetLastError());
    return nullptr;
  }
  if (memory.reserve(&begin, bytes, chunk, 0, 0) != CUDA_SUCCESS) return nullptr;
  return std::make_shared<MappedRange>(index, memory, begin, bytes);
}

}  // namespace twiddle
