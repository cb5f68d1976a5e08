#pragma once
#include <memory>
#include <string>
#include <vector>

#include "tests/support/thread_ranks.h"

namespace twiddle {

// A rank that is a thread, with values on a GPU: collectives copy them through the host. Several ranks share one GPU.
class GpuThreadRank final : public Communicator {
 public:
  explicit GpuThreadRank(std::shared_ptr<Communicator> thread) : thread_(std::move(thread)) {}
  int rank() const override { return thread_->rank(); }
  int size() const override { return thread_->size(); }
  void all_reduce(Stream& stream, float* values, std::int64_t count) override {
    by_host(stream, values, count, &Communicator::all_reduce);
  }
  void reduce_scatter(Stream& stream, float* values, std::int64_t count) override {
    by_host(stream, values, count, &Communicator::reduce_scatter);
  }
  void all_gather(Stream& stream, float* values, std::int64_t count) override {
    by_host(stream, values, count, &Communicator::all_gather);
  }
  void barrier() override { thread_->barrier(); }
  std::vector<std::string> gather(const std::string& text) override { return thread_->gather(text); }
  std::optional<std::vector<std::string>> gather_last(const std::string& text, double seconds) override {
    return thread_->gather_last(text, seconds);
  }
  void abort(int code) override { thread_->abort(code); }
  void while_waiting(WhileWaiting) override {}

 private:
  void by_host(Stream& stream, float* values, std::int64_t count,
               void (Communicator::*function)(Stream&, float*, std::int64_t)) {
    std::vector<float> host(static_cast<std::size_t>(count));
    stream.copy(host.data(), values, host.size() * sizeof(float));
    stream.synchronize();
    (*thread_.*function)(*host_stream_, host.data(), count);
    stream.copy(values, host.data(), host.size() * sizeof(float));
    stream.synchronize();
  }

  std::shared_ptr<Communicator> thread_;
  std::unique_ptr<Stream> host_stream_ = make_stream({});
};

}  // namespace twiddle
