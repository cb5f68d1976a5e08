#pragma once
#include <memory>
#include <utility>

#include "framework/device.h"

namespace twiddle {

// Does what another stream does: for tests that change a part of it.
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
  std::shared_ptr<Mark> copy_beside(void* to, const void* from, std::size_t bytes) override {
    return stream_->copy_beside(to, from, bytes);
  }
  void wait_for(const Mark& mark) override { stream_->wait_for(mark); }
  std::shared_ptr<void> allocate_host(std::size_t bytes) override { return stream_->allocate_host(bytes); }
  void fill(float* x, std::int64_t count, float value) override { stream_->fill(x, count, value); }
  void gemm(const Gemm& shape, const float* a, const float* b, float* c) override { stream_->gemm(shape, a, b, c); }
  void synchronize() override { stream_->synchronize(); }
  std::int64_t synchronizations() const override { return stream_->synchronizations(); }
  std::shared_ptr<Mark> mark() override { return stream_->mark(); }
  void begin_range(const char* name) override { stream_->begin_range(name); }
  void end_range() override { stream_->end_range(); }
  std::unique_ptr<Recording> record(const std::function<void()>& work) override { return stream_->record(work); }
  std::unique_ptr<Recording> record_again(const std::function<void()>& work) override {
    return stream_->record_again(work);
  }
  std::int64_t recording_changes() const override { return stream_->recording_changes(); }

 private:
  std::unique_ptr<Stream> stream_;
};

}  // namespace twiddle
