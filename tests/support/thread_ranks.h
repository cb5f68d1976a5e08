#pragma once
#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "framework/ranks/communicator.h"

namespace twiddle {

// Synchronizes the threads of one process that represent ranks.
class Rendezvous {
 public:
  explicit Rendezvous(int size) : size_(size), texts_(static_cast<std::size_t>(size)) {}

  // Returns the contributions of all ranks, by rank, once all have arrived.
  std::vector<std::string> gather(int rank, const std::string& text) {
    std::unique_lock lock(mutex_);
    texts_[static_cast<std::size_t>(rank)] = text;
    const std::int64_t round = round_;
    if (++here_ == size_) {
      all_ = texts_;
      here_ = 0, ++round_;
      came_.notify_all();
    }
    came_.wait(lock, [&] { return round_ != round; });
    return all_;  // no rank starts the next round before all ranks of this one have returned
  }

 private:
  int size_, here_ = 0;
  std::int64_t round_ = 0;
  std::vector<std::string> texts_, all_;
  std::mutex mutex_;
  std::condition_variable came_;
};

// Runs its work when a stream waits for it, as late as allowed.
class LateEvent final : public Event {
 public:
  explicit LateEvent(std::function<void()> work) : work_(std::move(work)) {}
  void wait() const override {
    std::exchange(work_, [] {})();
  }
  double milliseconds_since(const Event&) const override { return 0; }

 private:
  mutable std::function<void()> work_;
};

// One of those ranks: does between threads what MPI does between processes.
class ThreadRank : public Communicator {
 public:
  ThreadRank(std::shared_ptr<Rendezvous> rendezvous, int rank, int size)
      : rendezvous_(std::move(rendezvous)), rank_(rank), size_(size) {}
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  void all_reduce(Stream& stream, float* values, std::int64_t count) override {
    stream.synchronize();
    const auto bytes = static_cast<std::size_t>(count) * sizeof(float);
    const auto all = rendezvous_->gather(rank_, std::string(reinterpret_cast<const char*>(values), bytes));
    for (std::int64_t i = 0; i < count; ++i) {
      values[i] = 0;
      for (const std::string& each : all) values[i] += reinterpret_cast<const float*>(each.data())[i];
    }
  }
  // By all_reduce: overwrites the other ranks' shards with NaN, so that a test fails that reads them.
  void reduce_scatter(Stream& stream, float* values, std::int64_t count) override {
    all_reduce(stream, values, count);
    const std::int64_t shard = count / size_;
    for (std::int64_t i = 0; i < count; ++i)
      if (i / shard != rank_) values[i] = std::numeric_limits<float>::quiet_NaN();
  }
  void all_gather(Stream& stream, float* values, std::int64_t count) override {
    stream.synchronize();
    const auto bytes = static_cast<std::size_t>(count / size_) * sizeof(float);
    const float* const own = values + rank_ * (count / size_);
    std::size_t at = 0;
    for (const std::string& shard :
         rendezvous_->gather(rank_, std::string(reinterpret_cast<const char*>(own), bytes))) {
      std::memcpy(values + at, shard.data(), bytes);
      at += bytes / sizeof(float);
    }
  }
  // Asynchronous calls fill the memory with NaN until the stream waits for them, so that tests detect early reads.
  std::shared_ptr<Event> begin_reduce_scatter(Stream& stream, float* values, std::int64_t count) override {
    std::vector<float> given(values, values + count);
    std::fill(values, values + count, std::numeric_limits<float>::quiet_NaN());
    return std::make_shared<LateEvent>([this, &stream, values, given = std::move(given)]() mutable {
      reduce_scatter(stream, given.data(), static_cast<std::int64_t>(given.size()));
      std::copy(given.begin(), given.end(), values);
    });
  }
  std::shared_ptr<Event> begin_all_gather(Stream& stream, float* values, std::int64_t count) override {
    for (std::int64_t i = 0; i < count; ++i)
      if (i / (count / size_) != rank_) values[i] = std::numeric_limits<float>::quiet_NaN();
    return std::make_shared<LateEvent>([this, &stream, values, count] { all_gather(stream, values, count); });
  }
  void barrier() override { rendezvous_->gather(rank_, ""); }
  std::vector<std::string> gather(const std::string& text) override { return rendezvous_->gather(rank_, text); }
  std::optional<std::vector<std::string>> gather_last(const std::string& text, double) override { return gather(text); }
  void abort(int code) override { std::_Exit(code); }
  void while_waiting(WhileWaiting) override {}

 private:
  std::shared_ptr<Rendezvous> rendezvous_;
  int rank_, size_;
};

// Runs `work` on `size` ranks, one thread per rank, and throws what rank 0 has thrown.
inline void on_ranks(int size, const std::function<void(const std::shared_ptr<Communicator>&)>& work) {
  const auto rendezvous = std::make_shared<Rendezvous>(size);
  std::vector<std::thread> threads;
  std::exception_ptr failure;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      try {
        work(std::make_shared<ThreadRank>(rendezvous, rank, size));
      } catch (...) {
        if (rank == 0) failure = std::current_exception();
      }
    });
  for (std::thread& thread : threads) thread.join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace twiddle
