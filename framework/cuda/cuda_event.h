#pragma once
#include <cuda_runtime.h>

#include <memory>
#include <optional>

#include "framework/cuda/check.h"
#include "framework/cuda/host_wait.h"
#include "framework/device.h"

namespace twiddle {

class CudaEvent final : public Event {
 public:
  // An event on the thread's current GPU. `wait` counts the time that the host waits for it.
  CudaEvent(cudaStream_t stream, std::shared_ptr<HostWait> wait) : wait_(std::move(wait)) {
    check(cudaEventCreate(event_.put()));
    cudaStreamCaptureStatus capture{};
    check(cudaStreamIsCapturing(stream, &capture));
    // In a graph the event is recorded again at each replay, and can be read between replays.
    const bool captured = capture != cudaStreamCaptureStatusNone;
    check(cudaEventRecordWithFlags(event_.get(), stream, captured ? cudaEventRecordExternal : cudaEventRecordDefault));
  }
  // An event that only orders two streams, and is cheaper. In a graph it becomes a dependency.
  struct OrdersOnly {};
  CudaEvent(cudaStream_t stream, OrdersOnly /*purpose*/) {
    check(cudaEventCreateWithFlags(event_.put(), cudaEventDisableTiming));
    check(cudaEventRecord(event_.get(), stream));
  }
  cudaEvent_t event() const { return event_.get(); }
  void wait() const override {
    std::optional<HostWait::Span> waiting;
    if (wait_) waiting.emplace(*wait_);
    check(cudaEventSynchronize(event_.get()));
  }
  double milliseconds_since(const Event& earlier) const override {
    wait();
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, static_cast<const CudaEvent&>(earlier).event(), event()));
    return milliseconds;
  }

 private:
  std::shared_ptr<HostWait> wait_;  // null: host waits are not counted
  Handle<cudaEvent_t, cudaEventDestroy> event_;
};

}  // namespace twiddle
