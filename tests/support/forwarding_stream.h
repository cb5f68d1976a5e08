#pragma once
#include <memory>
#include <utility>

#include "framework/device.h"

namespace twiddle {

// Forwards to another stream: for tests that override a part of it.
class ForwardingStream : public Stream {
 public:
  explicit ForwardingStream(std::unique_ptr<Stream> stream) : stream_(std::move(stream)) {}
  std::shared_ptr<void> allocate(std::size_t bytes) override { return stream_->allocate(bytes); }
  Device device() const override { return stream_->device(); }
  void* native() const override { return stream_->native(); }
  MemoryUse memory() const override { return stream_->memory(); }
  void release_unused() override { stream_->release_unused(); }
  void reset_peak() override { stream_->reset_peak(); }
  void copy(void* to, const void* from, std::size_t bytes) override { stream_->copy(to, from, bytes); }
  std::shared_ptr<Event> copy_async(void* to, const void* from, std::size_t bytes) override {
    return stream_->copy_async(to, from, bytes);
  }
  void wait_event(const Event& event) override { stream_->wait_event(event); }
  std::shared_ptr<void> allocate_host(std::size_t bytes) override { return stream_->allocate_host(bytes); }
  void fill(float* x, std::int64_t count, float value) override { stream_->fill(x, count, value); }
  void gemm(const Gemm& shape, const float* a, const float* b, float* c) override { stream_->gemm(shape, a, b, c); }
  void synchronize() override { stream_->synchronize(); }
  std::int64_t synchronizations() const override { return stream_->synchronizations(); }
  std::shared_ptr<Event> record_event() override { return stream_->record_event(); }
  void begin_range(const char* name) override { stream_->begin_range(name); }
  void end_range() override { stream_->end_range(); }
  std::unique_ptr<Graph> capture(const std::function<void()>& work) override { return stream_->capture(work); }
  std::unique_ptr<Graph> capture_again(const std::function<void()>& work) override {
    return stream_->capture_again(work);
  }
  std::int64_t capture_changes() const override { return stream_->capture_changes(); }

 private:
  std::unique_ptr<Stream> stream_;
};

}  // namespace twiddle
